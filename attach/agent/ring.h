// The program's end of its ring. One writer at a time: the caller holds the lock (agent.cpp).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "attach/agent/ring_format.h"

namespace tt::attach {

// Bytes that grow; made between graphs. If memory is not available, the content is lost and
// `failed` is set.
struct Bytes {
  char* data = nullptr;
  size_t size = 0, capacity = 0;
  bool failed = false;

  void reserve(size_t bytes);
  void add(const void* from, size_t bytes);
  template <class T>
  void add(const T& value) {
    add(&value, sizeof value);
  }
  void add_text(const char* text);
  void clear() { size = 0; }
  void release();
};

struct Part {
  const void* data;
  size_t bytes;
};

class Ring {
 public:
  // Makes the file of this process in the collector's folder. false: there is no collector, or no
  // memory.
  bool open();
  bool is_open() const { return header_ != nullptr; }
  // After a fork: the ring belongs to the parent.
  void forget() { header_ = nullptr; }
  bool paused() const;
  // Whether a record of so many bytes fits. Steps with their times leave the last eighth to graphs
  // and to steps without times.
  bool fits(size_t bytes, bool with_times) const;
  bool write(RecordKind kind, const Part* parts, size_t count);
  bool write_text(RecordKind kind, const char* text);
  void count_lost_step();
  // A step begins (1), or its record was written (-1). Any thread.
  void count_running(int steps);

 private:
  void put(uint64_t at, const void* data, size_t bytes);
  RingHeader* header_ = nullptr;
};

}  // namespace tt::attach
