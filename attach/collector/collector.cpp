#include "attach/collector/collector.h"

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

Collector::Collector(fs::path output, std::vector<std::string> command,
                     std::function<void(const std::string&)> message)
    : output_(std::move(output)),
      command_(std::move(command)),
      message_(std::move(message)),
      rings_(make_folder()) {}

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
    process.facts.command = command_;
    process.facts.pid = process.ring.pid();
    process.facts.faults = process.ring.pid() != watched_ || faults_ == nullptr
                               ? "not watched: a process that the program started"
                           : faults_->records_addresses() ? "perf"
                                                          : "none: " + faults_->source();
  }
}

void Collector::pause(bool paused) {
  paused_ = paused;
  for (Process& process : processes_) process.ring.pause(paused);
}

bool Collector::poll() {
  find_rings();
  bool any = false;
  for (Process& process : processes_) any = read(process) || any;
  return any;
}

bool Collector::read(Process& process) {
  bool any = false;
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
  for (auto& [scheduler, context] : process.contexts) context->commit();
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
        const auto context = process.contexts.find(step->head.scheduler);
        if (context != process.contexts.end()) context->second->add(*step, process.faults);
      }
      break;
    case RecordKind::End:
      if (const auto ended = parse_scheduler(record.body))
        end(process, ended->scheduler, SessionState::Done, "");
      break;
  }
}

void Collector::handle_graph(Process& process, const ListedGraph& graph) {
  saw_anything_ = true;
  auto& context = process.contexts[graph.head.scheduler];
  if (context == nullptr) {
    const auto number = process.numbers
                            .try_emplace(graph.head.scheduler,
                                         static_cast<std::uint32_t>(process.numbers.size() + 1))
                            .first->second;
    ProgramFacts facts = process.facts;
    facts.context = number;
    if (const auto library = process.libraries.find(graph.head.library);
        library != process.libraries.end())
      facts.library = library->second;
    auto created = AttachedContext::create(output_, facts, graph);
    if (!created) {
      if (!std::exchange(process.warned, true))
        message_("The program continues and is not recorded: " + created.error());
      process.contexts.erase(graph.head.scheduler);
      return;
    }
    context = *std::move(created);
  }
  context->add(graph);
}

void Collector::end(Process& process, std::uint64_t scheduler, SessionState state,
                    const std::string& error) {
  const auto found = process.contexts.find(scheduler);
  if (found == process.contexts.end()) return;
  AttachedContext& context = *found->second;
  context.finish(state, error, process.ring.steps_lost(), faults_ ? faults_->lost() : 0);
  recorded_.push_back({.file = context.file(),
                       .model = context.model(),
                       .pid = process.facts.pid,
                       .context = process.numbers[scheduler],
                       .written = context.written(),
                       .losses = context.losses(),
                       .error = context.error()});
  process.contexts.erase(found);
}

std::vector<RecordedContext> Collector::finish(const std::string& error) {
  while (poll()) {
  }
  for (Process& process : processes_) {
    while (!process.contexts.empty())
      end(process, process.contexts.begin()->first,
          error.empty() ? SessionState::Done : SessionState::Failed, error);
  }
  return std::move(recorded_);
}

}  // namespace tt::attach
