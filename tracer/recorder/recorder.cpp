#include "tracer/recorder/recorder.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <ranges>
#include <utility>

#include "tracer/format/file/blob_codec.h"

namespace tt {

namespace {
constexpr std::size_t kBatchSteps = 8;  // a full batch is written immediately
// After a delay more wait. Each commit frees their memory, and makes them safe from a kill.
constexpr std::size_t kMaxBatchSteps = 128;
constexpr std::chrono::milliseconds kCollectTime{4};
constexpr std::chrono::milliseconds kFaultPollInterval{50};  // often enough for the kernel's rings
}  // namespace

Recorder::Recorder(std::size_t max_ops, std::size_t slot_bytes, StepListener listener,
                   PageFaults* faults, MachineState* machine, std::size_t max_waiting_bytes)
    : pool_(kBuffers, max_ops, slot_bytes),
      max_waiting_bytes_(max_waiting_bytes),
      listener_(std::move(listener)),
      faults_(faults),
      machine_(machine) {
  thread_ = std::thread([this] { run(); });  // last: the thread uses all members
  if (machine_ != nullptr) machine_->set_recorder(thread_.native_handle());
}

Recorder::~Recorder() {
  post(Quit{});
  thread_.join();
}

// ---------------------------------------------------------------- inference thread

void Recorder::begin(SessionInfo& info, const std::filesystem::path& file,
                     RecordingOptions options) {
  next_step_ = {};
  residency_ = std::move(options.residency);
  residency_interval_ = Ns{std::chrono::nanoseconds(options.residency_interval).count()};
  last_residency_.reset();
  resident_bytes_.reset();
  if (residency_) {
    const bool is_known = residency_->unavailable().empty();
    info.facts.emplace_back("trace.residency", is_known ? "mincore" : residency_->unavailable());
    if (!is_known) residency_.reset();
  }
  post(Begin{info, file, options.minor_faults});
  {
    std::unique_lock lock(mutex_);
    session_changed_.wait(lock, [this] { return session_open_; });
  }
  if (machine_ != nullptr) machine_->begin();
  epoch_ = std::chrono::steady_clock::now();
  info.start_utc_ns =
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  post(Started{epoch_, info.start_utc_ns});
}

void Recorder::take_conditions(Step& step) {
  if (machine_ != nullptr) step.conditions = machine_->take(step.threads, step.conditions);
  step.conditions.resident_bytes = resident_bytes_;
}

void Recorder::take_residency() {
  // After a step that was merged there would be two snapshots of one step.
  if (!residency_ || (last_residency_ && last_residency_step_ == next_step_)) return;
  const Ns at = now();
  if (last_residency_ && at - *last_residency_ < residency_interval_) return;
  last_residency_ = at;
  last_residency_step_ = next_step_;
  StepResidency snapshot;
  snapshot.step = next_step_;
  snapshot.at = at;
  snapshot.unit = residency_->unit();
  snapshot.resident = residency_->read().resident;
  resident_bytes_ = 0;
  for (const FileRange& range : snapshot.resident) *resident_bytes_ += range.length;
  post(std::move(snapshot));
}

// Appends to the last message if it has tokens too: when steps are merged, no message is added. A
// session's tokens are bounded by its context.
void Recorder::tokens(std::vector<Token> tokens) {
  {
    const std::lock_guard lock(mutex_);
    auto* last = messages_.empty() ? nullptr : std::get_if<std::vector<Token>>(&messages_.back());
    if (last != nullptr) {
      bytes_waiting_ += bytes_of(tokens);
      last->insert(last->end(), std::move_iterator(tokens.begin()),
                   std::move_iterator(tokens.end()));
      return;
    }
  }
  post(std::move(tokens));
}

void Recorder::values(StepValues values) { post(std::move(values)); }

Ns Recorder::now() const {
  return Ns{std::chrono::nanoseconds(std::chrono::steady_clock::now() - epoch_).count()};
}

Recorder::OpenStep Recorder::open_step(Step header, bool timed) {
  OpenStep step;
  step.buffer = timed ? acquire() : nullptr;
  header.id = next_step_;
  header.dropped = timed && step.buffer == nullptr;
  take_residency();
  header.begin = now();
  step.header() = std::move(header);
  if (step.buffer != nullptr) step.buffer->step_id.store(next_step_.v, std::memory_order_release);
  return step;
}

void Recorder::close_step(OpenStep step, bool complete) {
  step.header().end = now();
  if (step.buffer != nullptr) {
    submit(step.buffer);
  } else {
    step.untimed.aborted = !complete;
    submit_without_times(std::move(step.untimed));
  }
}

StepBuffer* Recorder::acquire() {
  if (faults_ != nullptr && !faults_->records_addresses()) faults_before_ = PageFaults::count();
  {
    const std::lock_guard lock(mutex_);
    if (bytes_waiting_ >= max_waiting_bytes_) return nullptr;
  }
  return pool_.try_acquire();
}

void Recorder::submit(StepBuffer* buffer) {
  if (faults_ != nullptr && !faults_->records_addresses())
    buffer->page_faults = PageFaults::count() - faults_before_;
  take_conditions(buffer->header);
  ++next_step_.v;
  if (pool_.has_free()) return post(buffer);
  Recorded recorded = take_from(*buffer);
  pool_.release(buffer);
  post(std::move(recorded));
}

void Recorder::submit_without_times(Step step) {
  take_conditions(step);
  if (merge(step)) return;
  ++next_step_.v;
  post(Untimed{std::move(step)});
}

// Returns true if too much waits and `step` was merged into the last of them.
bool Recorder::merge(const Step& step) {
  const std::lock_guard lock(mutex_);
  if (bytes_waiting_ < max_waiting_bytes_) return false;
  const auto newest = std::ranges::find_if(messages_ | std::views::reverse, is_step);
  if (newest == messages_.rend()) return false;
  auto* untimed = std::get_if<Untimed>(&*newest);
  if (untimed == nullptr) return false;
  Step& last = untimed->step;
  if (last.phase != step.phase || last.first_token + last.n_tokens != step.first_token)
    return false;
  last.n_tokens += step.n_tokens;
  last.end = step.end;
  last.conditions += step.conditions;
  last.aborted = step.aborted;
  last.dropped = true;  // also at level MINIMAL: begin and end now span several steps
  ++untimed->evaluations;
  return true;
}

void Recorder::flush() {
  post(Flush{});
  std::unique_lock lock(mutex_);
  session_changed_.wait(lock, [this] { return std::exchange(flushed_, false); });
}

RecordingResult Recorder::finish(const SessionInfo& info) {
  post(Finish{info});
  std::unique_lock lock(mutex_);
  session_changed_.wait(lock, [this] { return !session_open_; });
  return std::exchange(result_, {});
}

bool Recorder::is_step(const Message& message) {
  return std::holds_alternative<StepBuffer*>(message) ||
         std::holds_alternative<Recorded>(message) || std::holds_alternative<Untimed>(message);
}

bool Recorder::is_urgent(const Message& message) {
  return std::holds_alternative<Begin>(message) || std::holds_alternative<Finish>(message) ||
         std::holds_alternative<Flush>(message) || std::holds_alternative<Quit>(message);
}

std::size_t Recorder::bytes_of(const std::vector<Token>& tokens) {
  std::size_t bytes = 0;
  for (const Token& token : tokens) bytes += sizeof token + token.text.size();
  return bytes;
}

std::size_t Recorder::bytes_of(const StepValues& values) {
  std::size_t bytes = 0;
  for (const OutputValues& output : values.outputs)
    bytes += sizeof output + output.values.size() * sizeof output.values[0];
  return bytes;
}

// Memory that the message takes, except that of a StepBuffer, which is there anyway.
std::size_t Recorder::bytes_of(const Message& message) {
  std::size_t bytes = sizeof message;
  if (const auto* tokens = std::get_if<std::vector<Token>>(&message)) {
    bytes += bytes_of(*tokens);
  } else if (const auto* residency = std::get_if<StepResidency>(&message)) {
    bytes += residency->resident.size() * sizeof(FileRange);
  } else if (const auto* buffer = std::get_if<StepBuffer*>(&message)) {
    bytes += bytes_of((*buffer)->values);
  } else if (const auto* values = std::get_if<StepValues>(&message)) {
    bytes += bytes_of(*values);
  } else if (const auto* recorded = std::get_if<Recorded>(&message)) {
    const Step& step = recorded->step;
    bytes += bytes_of(recorded->values);
    bytes += step.op_ends.size() * sizeof(Ns) + step.stats.size() * sizeof(ValueStats);
    for (const SlotValues& slot : step.slots)
      bytes += sizeof slot + slot.ints.size() * sizeof slot.ints[0] +
               slot.floats.size() * sizeof slot.floats[0];
  }
  return bytes;
}

// Wakes the writer for the first message, and when it should stop collecting.
void Recorder::post(Message message) {
  bool first = false;
  bool urgent = false;
  {
    const std::lock_guard lock(mutex_);
    first = messages_.empty();
    if (is_step(message)) ++steps_queued_;
    bytes_waiting_ += bytes_of(message);
    urgent = is_urgent(message) || steps_queued_ == kBatchSteps;
    urgent_queued_ = urgent_queued_ || urgent;
    messages_.push_back(std::move(message));
  }
  if (first) wake_.notify_one();
  if (urgent) urgent_.notify_one();
}

// ---------------------------------------------------------------- writer thread

void Recorder::run() {
  // Not the name of the inference thread, by which its workers are found.
  pthread_setname_np(pthread_self(), "recorder");
  std::deque<Message> batch;
  for (bool quit = false; !quit;) {
    {
      std::unique_lock lock(mutex_);
      const auto some = [this] { return !messages_.empty(); };
      // Drain the rings during long steps, before they overflow.
      while (writer_ != nullptr && faults_ != nullptr && faults_->records_addresses() &&
             !wake_.wait_for(lock, kFaultPollInterval, some)) {
        lock.unlock();
        faults_->take(new_faults_, new_minor_faults_);
        lock.lock();
      }
      wake_.wait(lock, some);
      urgent_.wait_for(lock, kCollectTime, [this] { return urgent_queued_; });
      batch.swap(messages_);
      steps_queued_ = 0;
      urgent_queued_ = false;
    }
    for (Message& message : batch) {
      quit = quit || std::holds_alternative<Quit>(message);
      bytes_uncommitted_ += bytes_of(message);
      std::visit(
          [this](auto& what) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(what)>, Quit>) handle(what);
          },
          message);
      if (uncommitted_.size() >= kMaxBatchSteps) commit();
    }
    commit();
    batch.clear();
  }
}

void Recorder::handle(Begin& begin) {
  session_ = begin.info.id;
  templates_.clear();
  allocations_.clear();
  losses_ = {};
  steps_written_ = 0;
  error_.clear();
  if (faults_ != nullptr) {
    faults_->start(begin.minor_faults);
    faults_lost_before_ = faults_->lost();
  }
  new_faults_.clear();
  new_minor_faults_.clear();
  new_residency_.reset();
  writer_.reset();
  auto writer = SessionWriter::create(begin.file, begin.info);
  if (writer) {
    writer_ = *std::move(writer);
  } else {
    fail(writer.error());
  }
  set_open(true);
}

void Recorder::handle(Started& started) {
  epoch_ns_ = std::chrono::nanoseconds(started.epoch.time_since_epoch()).count();
  if (!writing()) return;
  if (auto set = writer_->set_start(started.utc_ns); !set) fail(set.error());
}

void Recorder::set_open(bool open) {
  {
    const std::lock_guard lock(mutex_);
    session_open_ = open;
  }
  session_changed_.notify_all();
}

void Recorder::handle(std::vector<Token>& tokens) {
  if (!writing()) return;
  if (auto added = writer_->add_tokens(tokens); !added) fail(added.error());
}

void Recorder::handle(StepResidency& residency) { new_residency_ = std::move(residency); }

void Recorder::handle(StepValues& values) { write_values(std::move(values)); }

void Recorder::handle(StepBuffer* buffer) {
  Recorded recorded = take_from(*buffer);
  pool_.release(buffer);
  handle(recorded);
}

void Recorder::handle(Recorded& recorded) {
  auto& [step, graph, addresses, faults, slots_lost, count_mismatch, values] = recorded;
  losses_.slot_values_dropped += slots_lost;
  losses_.count_mismatches += count_mismatch ? 1 : 0;
  losses_.steps_without_times += step.dropped ? 1 : 0;

  if (graph != nullptr && writing()) {
    const auto [known, fresh] = templates_.try_emplace(
        graph, TemplateId{static_cast<std::uint32_t>(templates_.size() + 1)});
    step.graph = known->second;
    if (fresh) {
      if (auto added = writer_->add_template(known->second, graph->graph); !added) {
        fail(added.error());
      }
    }
    const auto [allocation, moved] = allocations_.try_emplace(
        addresses, AllocationId{static_cast<std::uint32_t>(allocations_.size() + 1)});
    step.allocation = allocation->second;
    if (moved && writing()) {
      if (auto added = writer_->add_allocation(
              {.id = allocation->second, .graph = known->second, .addresses = *addresses});
          !added) {
        fail(added.error());
      }
    }
  }
  write(std::move(step), std::move(graph), faults, std::move(values));
}

void Recorder::handle(Untimed& untimed) {
  if (untimed.step.dropped) losses_.steps_without_times += untimed.evaluations;
  write(std::move(untimed.step), nullptr, 0, {});
}

void Recorder::write(Step step, KnownGraphPtr graph, std::uint64_t faults, StepValues values) {
  if (writing()) {
    if (auto added = writer_->add_step(step); !added) fail(added.error());
  }
  write_residency(step);
  values.step = step.id;
  write_values(std::move(values));
  if (faults_ != nullptr && faults_->records_addresses()) {
    faults_->take(new_faults_, new_minor_faults_);
    write_faults(step, assign_to(step, new_faults_), FaultKind::Major);
    write_faults(step, assign_to(step, new_minor_faults_), FaultKind::Minor);
  } else {
    write_faults(step, {.step = step.id, .count = faults, .faults = {}}, FaultKind::Major);
  }
  uncommitted_.push_back({.step = std::move(step), .graph = std::move(graph)});
}

void Recorder::write_residency(const Step& step) {
  if (!new_residency_ || new_residency_->step != step.id) return;
  if (writing())
    if (auto added = writer_->add_residency(*new_residency_); !added) fail(added.error());
  new_residency_.reset();
}

void Recorder::write_values(StepValues values) {
  if ((values.outputs.empty() && values.not_captured == 0) || !writing()) return;
  if (auto added = writer_->add_values(values); !added) fail(added.error());
}

void Recorder::write_faults(const Step& step, const StepFaults& faults, FaultKind kind) {
  if (faults.count == 0 || !writing()) return;
  if (auto added = writer_->add_faults(faults, step.begin, kind); !added) fail(added.error());
}

// Takes those of `faults` that are the step's, and drops those before it. Steps arrive in order of
// time, and all faults of a step ended before its end. Faults before its begin belong to no step.
StepFaults Recorder::assign_to(const Step& step, std::vector<PageFault>& faults) {
  StepFaults of_step{.step = step.id, .count = 0, .faults = {}};
  const auto at = [this](const PageFault& fault) { return Ns{fault.at.v - epoch_ns_}; };
  const auto first = std::ranges::lower_bound(faults, step.begin, {}, at);
  const auto last = std::ranges::upper_bound(first, faults.end(), step.end, {}, at);
  for (const PageFault& fault : std::ranges::subrange(first, last)) {
    if (of_step.faults.size() == kMaxStepFaults) {
      ++losses_.page_faults_lost;
      continue;
    }
    of_step.faults.push_back({.at = at(fault), .address = fault.address});
  }
  of_step.count = of_step.faults.size();
  faults.erase(faults.begin(), last);
  return of_step;
}

// Listeners are called after a step is committed, or has failed to be written.
void Recorder::commit() {
  if (writing()) {
    if (auto committed = writer_->commit(); !committed) fail(committed.error());
  }
  (writing() ? steps_written_ : losses_.steps_not_written) += uncommitted_.size();
  for (const Uncommitted& done : uncommitted_) listener_(session_, done.step, done.graph);
  uncommitted_.clear();
  const std::lock_guard lock(mutex_);
  bytes_waiting_ -= std::exchange(bytes_uncommitted_, 0);
}

void Recorder::fail(const TraceError& error) {
  if (error_.empty()) error_ = error.message;
}

bool Recorder::writing() const { return writer_ != nullptr && error_.empty(); }

void Recorder::handle(Finish& finish) {
  commit();
  if (faults_ != nullptr) {
    faults_->stop();
    losses_.page_faults_lost += faults_->lost() - faults_lost_before_;
  }
  RecordingResult result;
  if (writer_ != nullptr) {
    result.file_bytes = writer_->bytes_written();
    if (!error_.empty()) {
      // Committed steps stay; the session is marked as failed.
      finish.info.state = SessionState::Failed;
      finish.info.error = error_;
    }
    if (auto done = writer_->finish(finish.info, losses_); !done) fail(done.error());
    writer_.reset();
  }
  result.losses = losses_;
  result.steps = steps_written_;
  result.error = error_;
  templates_.clear();
  allocations_.clear();
  result_ = std::move(result);
  set_open(false);
}

void Recorder::handle(Flush& /*flush*/) {
  commit();
  {
    const std::lock_guard lock(mutex_);
    flushed_ = true;
  }
  session_changed_.notify_all();
}

// ---------------------------------------------------------------- a step as a value

// On the thread that owns the buffer.
Recorder::Recorded Recorder::take_from(StepBuffer& buffer) {
  return {.step = step_from(buffer),
          .graph = std::move(buffer.graph),
          .addresses = std::move(buffer.addresses),
          .faults = buffer.page_faults,
          .slots_lost = buffer.slots_lost,
          .count_mismatch = buffer.count_mismatch,
          .values = std::exchange(buffer.values, {})};
}

Step step_from(const StepBuffer& buffer) {
  Step step = buffer.header;
  step.first_op = Ns{buffer.first_op_ns.load(std::memory_order_relaxed)};
  if (buffer.graph == nullptr) return step;
  const std::uint32_t done = buffer.ops_done.load(std::memory_order_acquire);
  step.op_ends.reserve(done);
  for (std::uint32_t i = 0; i < done; ++i) {
    step.op_ends.push_back(Ns{buffer.op_ends[i].load(std::memory_order_relaxed)});
  }
  if (buffer.count_mismatch && step.timing == Timing::Fast) step.timing = Timing::None;

  step.slots.resize(buffer.graph->graph.slots.size());
  for (const CapturedSlot& captured : buffer.captured) {
    if (captured.count == 0) continue;  // an empty list
    SlotValues& values = step.slots[captured.slot];
    const std::byte* from = buffer.arena.get() + captured.offset;
    switch (captured.values) {
      case CapturedSlot::Values::Float:
        values.floats.resize(captured.count);
        std::memcpy(values.floats.data(), from, captured.count * sizeof(float));
        break;
      case CapturedSlot::Values::Int64:
        values.ints.resize(captured.count);
        std::memcpy(values.ints.data(), from, captured.count * sizeof(std::int64_t));
        break;
      case CapturedSlot::Values::Int32:
        values.ints.resize(captured.count);
        for (std::uint32_t i = 0; i < captured.count; ++i) {
          std::int32_t value = 0;
          std::memcpy(&value, from + i * sizeof value, sizeof value);
          values.ints[i] = value;
        }
        break;
    }
  }
  step.stats = buffer.stats;
  return step;
}

}  // namespace tt
