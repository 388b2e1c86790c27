#include "attach/collector/collector.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <format>
#include <utility>

namespace tt::attach {

namespace fs = std::filesystem;

namespace {

constexpr std::ptrdiff_t kMaxFaults = 100'000;  // that wait for their step
constexpr std::size_t kRecordsAtOnce = 256;     // between two looks at the other rings
// A request without a step for so long is over.
constexpr std::int64_t kIdleNs = 2'000'000'000;

// An empty folder for the rings; empty: none can be made.
fs::path make_folder() {
  std::error_code none;
  for (const fs::path& place : {fs::path("/dev/shm"), fs::temp_directory_path(none)}) {
    std::string name = (place / "tt-attach-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) return name;
  }
  return {};
}

}  // namespace

Collector::Collector(CollectorOptions options, std::function<void(const std::string&)> message)
    : options_(std::move(options)),
      message_(std::move(message)),
      rings_(make_folder()),
      quota_(options_.output, options_.keep),
      wanted_(options_.requests.value_or(0)) {}

Collector::~Collector() {
  std::error_code none;
  if (!rings_.empty()) fs::remove_all(rings_, none);
}

void Collector::watch(pid_t pid) {
  watched_ = pid;
  faults_ = PageFaults::watch(pid);
  faults_->start();
}

void Collector::find_rings() {
  std::error_code none;
  for (fs::directory_iterator entry(rings_, none), last; !none && entry != last;
       entry.increment(none)) {
    if (entry->path().extension() != kRingEnding) continue;
    auto ring = RingReader::open(entry->path());
    if (!ring) {
      message_("a program has another version of the agent; its steps are not recorded");
      continue;
    }
    Process& process = processes_.emplace_back(*std::move(ring));
    saw_anything_ = true;
    process.ring.pause(paused_);
    process.facts.command = options_.command;
    process.facts.machine_folder = options_.machine_folder;
    process.facts.pid = process.ring.pid();
    process.facts.name = fs::path(options_.command.front()).filename();
    process.facts.faults = process.ring.pid() == watched_ && faults_ != nullptr
                               ? faults_->source()
                               : "getrusage: a process that the program started";
  }
}

void Collector::pause(bool paused) {
  was_paused_ = was_paused_ || paused;
  if (std::exchange(paused_, paused) && !paused && std::exchange(enough_, false))
    wanted_ = requests_.kept + *options_.requests;
  for (Process& process : processes_) {
    process.ring.pause(paused);
    for (auto& [scheduler, recording] : process.contexts) recording->context.forget_cache();
  }
}

bool Collector::poll() {
  find_rings();
  bool any = false;
  for (Process& process : processes_) any = read(process) || any;
  return any;
}

bool Collector::read(Process& process) {
  bool any = false;
  // Before the records: then those of all steps that have ended are read below.
  const bool running = process.ring.is_running();
  if (faults_ != nullptr && faults_->records_addresses() && process.ring.pid() == watched_) {
    std::vector<PageFault> minor;
    faults_->take(process.faults, minor);
    // Those between steps, or while the recording is paused, belong to nothing.
    if (std::ssize(process.faults) > kMaxFaults)
      process.faults.erase(process.faults.begin(), process.faults.end() - kMaxFaults / 2);
  }
  for (std::size_t i = 0; i < kRecordsAtOnce; ++i) {
    const auto record = process.ring.next();
    if (!record) break;
    any = true;
    handle(process, *record);
  }
  if (process.ring.damaged() && !std::exchange(process.warned, true))
    message_(
        std::format("process {} has damaged its records; the rest is lost", process.facts.pid));
  for (auto& [scheduler, recording] : process.contexts) recording->context.commit();
  if (options_.per_request && !any && !running) end_idle(process);
  return any;
}

void Collector::handle(Process& process, const RingReader::Record& record) {
  switch (record.kind) {
    case RecordKind::Library:
      if (auto library = parse_library(record.body))
        process.libraries.insert_or_assign(library->head.library, *std::move(library));
      break;
    case RecordKind::Message:
      if (const auto text = parse_text(record.body)) {
        saw_anything_ = true;
        message_(*text);
      }
      break;
    case RecordKind::Program:
      if (const auto path = parse_text(record.body))
        process.facts.name = fs::path(*path).filename();
      break;
    case RecordKind::Model:
      if (auto path = parse_text(record.body)) process.facts.models.push_back(*std::move(path));
      break;
    case RecordKind::Maps:
      if (auto maps = parse_text(record.body)) process.facts.maps = *std::move(maps);
      break;
    case RecordKind::Graph:
      if (const auto graph = parse_graph(record.body)) handle_graph(process, *graph);
      break;
    case RecordKind::Step:
      if (const auto step = parse_step(record.body)) {
        const auto found = process.contexts.find(step->head.scheduler);
        if (found != process.contexts.end()) handle_step(process, *found->second, *step);
      }
      break;
    case RecordKind::End:
      if (const auto ended = parse_scheduler(record.body))
        end_context(process, ended->scheduler, SessionState::Done, "");
      break;
  }
}

void Collector::handle_graph(Process& process, const ListedGraph& graph) {
  saw_anything_ = true;
  auto& recording = process.contexts[graph.head.scheduler];
  if (recording == nullptr) {
    ProgramFacts facts = process.facts;
    facts.context = ++process.context_count;
    if (const auto library = process.libraries.find(graph.head.library);
        library != process.libraries.end())
      facts.library = library->second;
    AttachedContext context(facts, graph);
    RecordedContext ended{.name = context.name(),
                          .model = context.model(),
                          .pid = facts.pid,
                          .context = facts.context,
                          .sessions = {}};
    recording = std::make_unique<Recording>(std::move(context), std::move(ended));
    if (was_paused_) recording->context.forget_cache();  // it may have begun before
  }
  recording->context.add(graph);
}

void Collector::handle_step(Process& process, Recording& recording, const RunStep& step) {
  AttachedContext& context = recording.context;
  if (enough_) return;
  if (options_.per_request) {
    if (context.is_warm_up(step)) return;
    using EndsBefore = AttachedContext::EndsBefore;
    const bool waits = !recording.waiting.empty();
    const std::int64_t last = waits ? recording.waiting.back().head.end : context.last_end();
    EndsBefore ends = EndsBefore::No;
    if (context.is_open() && !context.is_draft()) {
      ends = step.head.begin - last > kIdleNs ? EndsBefore::Yes
             : waits                          ? context.ends_before(recording.waiting, step)
                                              : context.ends_before(step);
    }
    // The sessions of a draft model are those of its target.
    if (ends == EndsBefore::Unknown && process.contexts.size() > 1) ends = EndsBefore::Yes;
    if (ends == EndsBefore::Unknown) {
      recording.waiting.push_back(step);
      return;
    }
    if (waits) {
      take_waiting(process, recording,
                   ends == EndsBefore::Yes ? Waiting::Begin : Waiting::Continue);
      return handle_step(process, recording, step);
    }
    if (ends == EndsBefore::Yes) end_session(process, recording, SessionState::Done, "");
    if (enough_) return;
  }
  add(process, recording, step);
}

void Collector::add(Process& process, Recording& recording, const RunStep& step) {
  if (!recording.context.is_open()) open(process, recording, step);
  recording.context.add(step, process.faults);
}

void Collector::take_waiting(Process& process, Recording& recording, Waiting decided) {
  const std::vector<RunStep> waiting = std::exchange(recording.waiting, {});
  if (waiting.empty()) return;
  if (decided == Waiting::Begin) end_session(process, recording, SessionState::Done, "");
  bool first = true;
  for (const RunStep& step : waiting) {
    if (enough_) return;
    if (std::exchange(first, false) || decided == Waiting::Continue)
      add(process, recording, step);
    else
      handle_step(process, recording, step);
  }
}

void Collector::open(Process& process, Recording& recording, const RunStep& first) {
  std::optional<std::uint32_t> request;
  if (options_.per_request) {
    // The requests of a draft model are those of its target.
    if (!recording.context.is_draft()) process.request = recording.requests + 1;
    request = process.request;
  }
  const auto is_open_draft = [](const auto& other) {
    return other.second->context.is_draft() && other.second->context.is_open();
  };
  if (!recording.context.is_draft() && std::ranges::none_of(process.contexts, is_open_draft))
    process.draft_session.clear();  // of an earlier request
  const auto opened = recording.context.open(options_.output, first, request);
  if (recording.context.is_draft()) process.draft_session = recording.context.session_id();
  if (!opened && !std::exchange(process.warned, true))
    message_("The program continues and is not recorded: " + opened.error());
}

// A session of a draft model ends with that of its target, and is kept if that one is.
void Collector::end_session(Process& process, Recording& recording, SessionState state,
                            const std::string& error) {
  if (!recording.context.is_open()) return;
  // Without more steps, the requests before were over.
  while (!recording.waiting.empty()) take_waiting(process, recording, Waiting::Begin);
  if (!recording.context.is_open()) return;
  if (options_.per_request && recording.context.is_draft()) {
    for (auto& [scheduler, other] : process.contexts)
      if (!other->context.is_draft()) end_session(process, *other, state, error);
    if (!recording.context.is_open()) return;
  }
  settle(process, recording, state, error, std::nullopt);
  if (wanted_ == 0 || enough_ || requests_.kept < wanted_) return;
  pause(true);
  enough_ = true;
  message_(std::format("{} requests are recorded. Recording is paused; SIGUSR1 starts it again.",
                       requests_.kept));
}

void Collector::settle(Process& process, Recording& recording, SessionState state,
                       const std::string& error, std::optional<bool> keep) {
  if (!recording.context.is_draft() && !process.draft_session.empty())
    recording.context.set_draft_session(process.draft_session);
  const std::uint64_t steps_lost = process.ring.steps_lost();
  const std::uint64_t faults_lost = faults_ ? faults_->lost() : 0;
  EndedSession ended = recording.context.finish(
      state, error, steps_lost - std::exchange(process.steps_lost, steps_lost),
      faults_lost - std::exchange(faults_lost_, faults_lost));
  recording.requests += std::max(1U, ended.requests);
  const bool kept = keep.value_or(!options_.slower_than_ns || ended.slowest_ns_per_token.value_or(
                                                                  0) > *options_.slower_than_ns);
  (kept ? requests_.kept : requests_.dropped) += ended.requests;
  if (options_.per_request && !recording.context.is_draft()) {
    for (auto& [scheduler, other] : process.contexts)
      if (other->context.is_draft() && other->context.is_open())
        settle(process, *other, state, error, kept);
  }
  if (!kept) {
    if (!ended.file.empty()) remove_session(ended.file);
    return;
  }
  if (!ended.file.empty()) quota_.add(ended.file, ended.start_utc_ns);
  recording.ended.sessions.push_back(std::move(ended));
}

// No record is left of the steps that have ended, and none was running.
void Collector::end_idle(Process& process) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  for (auto& [scheduler, recording] : process.contexts)
    if (const std::int64_t last = recording->waiting.empty() ? recording->context.last_end()
                                                             : recording->waiting.back().head.end;
        !recording->context.is_draft() && now - last > kIdleNs)
      end_session(process, *recording, SessionState::Done, "");
}

void Collector::end_context(Process& process, std::uint64_t scheduler, SessionState state,
                            const std::string& error) {
  const auto found = process.contexts.find(scheduler);
  if (found == process.contexts.end()) return;
  end_session(process, *found->second, state, error);
  recorded_.push_back(std::move(found->second->ended));
  process.contexts.erase(found);
}

std::vector<RecordedContext> Collector::finish(const std::string& error) {
  while (poll()) {
  }
  for (Process& process : processes_) {
    while (!process.contexts.empty())
      end_context(process, process.contexts.begin()->first,
                  error.empty() ? SessionState::Done : SessionState::Failed, error);
  }
  return std::move(recorded_);
}

}  // namespace tt::attach
