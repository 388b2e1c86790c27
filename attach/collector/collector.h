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
#include "attach/collector/session_quota.h"
#include "tracer/recorder/page_faults.h"

namespace tt::attach {

// What became of one context, for the user.
struct RecordedContext {
  std::string name;   // begin of the names of its sessions
  std::string model;  // file name; empty: not found
  std::int64_t pid = 0;
  std::uint32_t context = 0;
  std::vector<EndedSession> sessions;
};

struct CollectorOptions {
  std::filesystem::path output;  // folder for the sessions
  std::vector<std::string> command;
  std::filesystem::path machine_folder;  // as in ProgramFacts
  // A session per request of a context, or for requests at the same time; otherwise one per
  // context.
  bool per_request = false;
  // With per_request:
  QuotaLimits keep;
  std::optional<std::uint32_t> requests;  // after so many were kept, recording is paused
  std::optional<std::int64_t>
      slower_than_ns;  // keeps those with tokens that took longer, on average
};

// Requests that have ended.
struct RequestCounts {
  std::uint64_t kept = 0, dropped = 0;
};

class Collector {
 public:
  // `message`: for the user, without a line break.
  Collector(CollectorOptions options, std::function<void(const std::string&)> message);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // The folder of the rings, in memory if possible.
  const std::filesystem::path& rings() const { return rings_; }
  // Page faults of this process, from now on. Call before it starts the program.
  void watch(pid_t pid);
  // Whether steps are recorded from now on. After a number of requests it pauses itself.
  void pause(bool paused);
  bool paused() const { return paused_; }
  // Reads what is there. false: there was nothing.
  bool poll();
  // The last call, when the program has ended. `error`: empty, or how it ended.
  std::vector<RecordedContext> finish(const std::string& error);
  const RequestCounts& requests() const { return requests_; }
  // Sessions that were removed, because newer ones are kept.
  std::size_t removed() const { return quota_.removed(); }
  // Whether any graph was seen, or a message says why not.
  bool saw_anything() const { return saw_anything_; }

 private:
  struct Recording {
    AttachedContext context;
    RecordedContext ended;
    std::uint32_t requests = 0;  // of the sessions that have ended
    // Steps of which is not known yet whether another session begins with them.
    std::vector<RunStep> waiting{};
  };
  struct Process {
    explicit Process(RingReader&& reader) : ring(std::move(reader)) {}
    RingReader ring;
    ProgramFacts facts;
    std::map<std::uint32_t, FoundLibrary> libraries;
    std::map<std::uint64_t, std::unique_ptr<Recording>> contexts;  // by scheduler
    std::uint32_t context_count = 0;
    std::uint32_t request = 0;  // the last one that began
    std::string draft_session;  // the last one that began; empty: the request has none
    std::uint64_t steps_lost = 0;
    std::vector<PageFault> faults;
    bool warned = false;
  };

  void find_rings();
  bool read(Process& process);
  void handle(Process& process, const RingReader::Record& record);
  void handle_graph(Process& process, const ListedGraph& graph);
  void handle_step(Process& process, Recording& recording, const RunStep& step);
  void add(Process& process, Recording& recording, const RunStep& step);
  // Decides about the steps that wait: another session begins with the first of them, or not.
  enum class Waiting { Continue, Begin };
  void take_waiting(Process& process, Recording& recording, Waiting decided);
  void open(Process& process, Recording& recording, const RunStep& first);
  void end_session(Process& process, Recording& recording, SessionState state,
                   const std::string& error);
  void settle(Process& process, Recording& recording, SessionState state, const std::string& error,
              std::optional<bool> keep);
  void end_idle(Process& process);
  void end_context(Process& process, std::uint64_t scheduler, SessionState state,
                   const std::string& error);

  const CollectorOptions options_;
  const std::function<void(const std::string&)> message_;
  std::filesystem::path rings_;
  SessionQuota quota_;
  std::list<Process> processes_;
  std::unique_ptr<PageFaults> faults_;
  pid_t watched_ = 0;
  std::uint64_t faults_lost_ = 0;  // that a session has
  std::vector<RecordedContext> recorded_;
  RequestCounts requests_;
  std::uint64_t wanted_ = 0;  // kept requests after which recording is paused; 0: any number
  bool saw_anything_ = false, paused_ = false, was_paused_ = false;
  bool enough_ = false;  // requests; what is still in the rings is not recorded
};

}  // namespace tt::attach
