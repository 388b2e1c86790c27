// Reads the rings of a traced program and of the processes that it starts, and writes one session
// per context. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attach/collector/attached_context.h"
#include "attach/collector/ring_reader.h"
#include "tracer/recorder/page_faults.h"

namespace tt::attach {

// What became of one context, for the user.
struct RecordedContext {
  std::filesystem::path file;
  std::string model;  // file name; empty: not found
  std::int64_t pid = 0;
  std::uint32_t context = 0;
  AttachedContext::Written written;
  LossCounters losses;
  std::string error;
};

class Collector {
 public:
  // `output`: folder for the sessions. `message`: for the user, without a line break.
  Collector(std::filesystem::path output, std::vector<std::string> command,
            std::function<void(const std::string&)> message);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // The folder of the rings, in memory if possible.
  const std::filesystem::path& rings() const { return rings_; }
  // Page faults of this process, from now on. Call before it starts the program.
  void watch(pid_t pid);
  // Whether steps are recorded from now on.
  void pause(bool paused);
  // Reads what is there. false: there was nothing.
  bool poll();
  // The last call, when the program has ended. `error`: empty, or how it ended.
  std::vector<RecordedContext> finish(const std::string& error);
  // Whether any graph was seen, or a message says why not.
  bool saw_anything() const { return saw_anything_; }

 private:
  struct Process {
    explicit Process(RingReader&& reader) : ring(std::move(reader)) {}
    RingReader ring;
    ProgramFacts facts;
    std::map<std::uint32_t, FoundLibrary> libraries;
    std::map<std::uint64_t, std::unique_ptr<AttachedContext>> contexts;  // by scheduler
    std::map<std::uint64_t, std::uint32_t> numbers;                      // of contexts
    std::vector<PageFault> faults;
    bool warned = false;
  };

  void find_rings();
  bool read(Process& process);
  void handle(Process& process, const RingReader::Record& record);
  void handle_graph(Process& process, const ListedGraph& graph);
  void end(Process& process, std::uint64_t scheduler, SessionState state, const std::string& error);

  const std::filesystem::path output_;
  const std::vector<std::string> command_;
  const std::function<void(const std::string&)> message_;
  std::filesystem::path rings_;
  std::list<Process> processes_;
  std::unique_ptr<PageFaults> faults_;
  pid_t watched_ = 0;
  std::vector<RecordedContext> recorded_;
  bool saw_anything_ = false, paused_ = false;
};

}  // namespace tt::attach
