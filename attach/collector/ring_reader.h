// The collector's end of the ring of one process (attach/agent/ring_format.h). One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "attach/agent/ring_format.h"

namespace tt::attach {

class RingReader {
 public:
  // Maps the file and removes its name, so that nothing remains when both processes have ended.
  // nullopt: it is not a ring of this version.
  static std::optional<RingReader> open(const std::filesystem::path& file);
  ~RingReader();
  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&&) = delete;

  struct Record {
    RecordKind kind{};
    std::vector<std::byte> body;  // without the head
  };
  // nullopt: there is no further record at the moment, or the ring is damaged.
  std::optional<Record> next();
  bool damaged() const { return damaged_; }
  std::int64_t pid() const { return pid_; }
  std::uint64_t steps_lost() const;
  // Whether the program evaluates a step whose record is not written yet.
  bool is_running() const;
  // The program records nothing until it is resumed.
  void pause(bool paused);

 private:
  RingReader(RingHeader* header, std::uint64_t capacity);
  void copy(std::uint64_t from, void* to, std::size_t bytes) const;

  RingHeader* header_;
  std::uint64_t capacity_;  // as it was when the ring was opened
  std::int64_t pid_;
  std::uint64_t tail_ = 0;
  bool damaged_ = false;
};

}  // namespace tt::attach
