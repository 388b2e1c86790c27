#include "tracer/engine/generation_queue.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <format>
#include <memory>
#include <new>
#include <stop_token>
#include <utility>

#include "tracer/engine/compute_threads.h"
#include "tracer/engine/model_check.h"
#include "tracer/engine/self_check.h"
#include "tracer/gguf/file_stamp.h"
#include "tracer/memory/plan/stored_pattern.h"
#include "tracer/recorder/recorder.h"

namespace tt {

namespace {

constexpr std::size_t kMaxFinished = 1000;  // finished requests whose status is kept

// Throws std::bad_alloc unless there is room for what the first request allocates: the stacks of
// the library's threads, and its graphs. ggml ends the process if it cannot start a thread.
void require_room(std::size_t threads) {
  constexpr std::size_t kStackBytes = 8U << 20, kOther = 32U << 20;
  const std::unique_ptr<std::byte[]> room(new std::byte[threads * kStackBytes + kOther]);
}

void add_changes(SessionInfo& info, const std::vector<MadeChange>& changes) {
  for (std::size_t i = 0; i < changes.size(); ++i)
    info.facts.emplace_back(std::format("altered.{}", i), to_text(changes[i]));
}

}  // namespace

struct GenerationQueue::Job {
  GenerationRequest request;
  std::shared_ptr<Debugger> debugger;  // null: nothing stops it
  SessionInfo info;
  JobStatus status;
  bool cancelled = false;
};

// `mutex` guards the jobs and the load state. The inference thread locks it only between steps,
// for a few assignments.
struct GenerationQueue::Impl final : GenerationListener {
  Impl(Options queue_options, SessionListener& sink)
      : options(std::move(queue_options)), listener(sink) {}

  void run();
  bool load();
  bool load_or_throw();
  bool fail_load(std::string message, bool is_refused = false);
  void run_job(Job& job);
  std::shared_ptr<Job> next_job();
  void note_stop(Job& job);
  void finish_job(Job& job, const GenerationResult& result, const RecordingResult& recording);
  JobStatus status_of(const Job& job) const;                               // mutex held
  JobStatus without_text(Job& job) const;                                  // mutex held
  std::vector<JobStatus> cancel_waiting(const std::shared_ptr<Job>& job);  // mutex held
  void end(Job& job);                                                      // mutex held
  bool idle() const { return waiting.empty() && running == nullptr; }      // mutex held

  void on_token(const Token& token, std::string_view piece) override;
  void on_text(std::string_view rest) override;
  void on_progress(std::uint32_t prompt_done, std::uint32_t prompt_tokens,
                   std::uint32_t generated) override;

  const Options options;
  SessionListener& listener;

  // Held from a state change until the listener was called, so that states arrive in order. Lock
  // before `mutex`.
  std::mutex notify_mutex;
  mutable std::mutex mutex;
  std::condition_variable wake;
  LoadState load_state;
  std::unordered_map<std::string, std::shared_ptr<Job>> jobs;
  std::deque<std::shared_ptr<Job>> waiting;
  std::deque<std::string> finished;  // oldest first
  std::shared_ptr<Job> running;
  bool stopping = false;
  bool closed = false;
  std::chrono::steady_clock::time_point last_ended = std::chrono::steady_clock::now();
  std::vector<FileStamp> files;  // of the loaded model
  std::stop_source stop_loading;

  bool exact_only = false;  // the self-check failed: fast times are unreliable
  std::string self_check_fact;
  std::optional<MemoryOptions> memory;  // set while the model loads
  std::unique_ptr<Engine> engine;       // set once by the inference thread, under the mutex
  std::unique_ptr<PageFaults> faults;   // before the recorder, which takes from both
  std::unique_ptr<MachineState> machine;
  std::unique_ptr<Recorder> recorder;
  std::thread thread;
};

// ---------------------------------------------------------------- inference thread

void GenerationQueue::Impl::run() {
  const bool loaded = load();
  if (options.on_load) options.on_load(load_state);  // final: no lock needed
  if (!loaded) return;
  while (const auto job = next_job()) run_job(*job);
}

bool GenerationQueue::Impl::fail_load(std::string message, bool is_refused) {
  const std::lock_guard lock(mutex);
  load_state = {.phase = LoadState::Phase::Failed,
                .progress = 0,
                .error = std::move(message),
                .warning = {},
                .is_refused = is_refused};
  return false;
}

// Engine::load() throws nothing; this is about the recorder, the check and the rest.
bool GenerationQueue::Impl::load() {
  try {
    return load_or_throw();
  } catch (const std::exception& thrown) {
    const bool no_memory = dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr;
    return fail_load(std::format(
        "{}: loading it failed: {}. Free memory or raise the limit of this process, or use a "
        "smaller context (-c) or model.",
        options.model.path.string(), no_memory ? "not enough memory" : thrown.what()));
  }
}

bool GenerationQueue::Impl::load_or_throw() {
  faults = PageFaults::watch();
  machine = std::make_unique<MachineState>();
  // The child evaluates the model while this thread loads the weights.
  std::optional<ModelCheck> check;
  const std::string key = options.checked_models == nullptr
                              ? ""
                              : options.checked_models->key_of(options.model, options.context);
  if (options.check_model && (key.empty() || !options.checked_models->contains(key))) {
    check.emplace(*options.sandbox, options.model, options.context,
                  model_check_timeout(options.model.path), stop_loading.get_token());
    if (const auto valid = check->loaded(); !valid)
      return fail_load(valid.error(), check->is_refused());
  }
  std::string warning;
  if (!options.self_check_model.empty()) {
    const auto checked = self_check(options.self_check_model);
    exact_only = !checked;
    self_check_fact = checked ? std::format("passed, {} ops", checked->ops) : checked.error();
    warning = checked ? checked->warning
                      : std::format(
                            "Fast timing does not work ({}). "
                            "Every session uses exact timing, which is slower.",
                            checked.error());
  }
  const CrashMarker::Evaluation evaluation(options.crash_marker, options.model.path);
  bool check_failed = false, check_refuses = false;
  auto loaded = Engine::load(
      options.model, options.context,
      [this](float progress) {
        const std::lock_guard lock(mutex);
        load_state.progress = progress;
        return !stopping;
      },
      options.sandbox,
      [&]() -> std::expected<void, std::string> {
        if (!check) return {};
        auto valid = check->evaluated();
        check_failed = !valid;
        check_refuses = check->is_refused();
        check.reset();  // the child ends and frees its memory
        if (valid && !key.empty()) options.checked_models->add(key);
        return valid;
      });
  if (!loaded) {
    using Kind = EngineError::Kind;
    const Kind kind = loaded.error().kind;
    return fail_load(
        loaded.error().message,
        check_failed ? check_refuses : kind == Kind::NotAModel || kind == Kind::Unsupported);
  }
  const auto warn = [&](std::string_view text) {
    warning += warning.empty() || text.empty() ? "" : " ";
    warning += text;
  };
  for (const std::string& text : (*loaded)->facts().warnings) warn(text);
  warn((*loaded)->facts().context_warning);
  if (options.model.repack && !options.model.repacks())
    warn("Weights are not repacked, because there is a memory budget.");
  std::vector<FileStamp> stamps;
  for (const ModelFile& file : (*loaded)->gguf().files()) {
    const FileStamp stamp = stamp_of(file.path);
    if (stamp.size != file.size || stamp.mtime_ns != file.mtime_ns)
      return fail_load(file.path + " changed while it was loaded. Load it again.");
    stamps.push_back(stamp);
  }

  const RecorderSize size = (*loaded)->recorder_size();
  auto new_recorder = std::make_unique<Recorder>(
      size.max_ops, size.slot_bytes,
      [this](const std::string& session, const Step& step, const KnownGraphPtr& graph) {
        listener.on_step(session, step, graph);
      },
      faults.get(), machine.get());
  require_room(static_cast<std::size_t>(std::max((*loaded)->facts().threads, 1)));
  const std::lock_guard lock(mutex);
  files = std::move(stamps);
  last_ended = std::chrono::steady_clock::now();
  recorder = std::move(new_recorder);
  engine = *std::move(loaded);
  if (memory) engine->set_memory(*memory);
  load_state = {
      .phase = LoadState::Phase::Ready, .progress = 1, .error = {}, .warning = std::move(warning)};
  return true;
}

std::shared_ptr<GenerationQueue::Job> GenerationQueue::Impl::next_job() {
  std::unique_lock lock(mutex, std::defer_lock);
  std::unique_lock notify_lock(notify_mutex, std::defer_lock);
  for (;;) {
    lock.lock();
    const bool is_idle = waiting.empty();
    lock.unlock();
    if (is_idle) end_compute_threads();  // another model may run meanwhile
    lock.lock();
    wake.wait(lock, [this] { return stopping || !waiting.empty(); });
    lock.unlock();
    notify_lock.lock();
    lock.lock();
    if (stopping) return nullptr;
    if (!waiting.empty()) break;
    lock.unlock();  // cancelled in the meantime
    notify_lock.unlock();
  }
  running = waiting.front();
  waiting.pop_front();
  running->status.state = JobState::Running;
  engine->reset_cancel();
  const auto job = running;
  const JobStatus status = status_of(*job);
  // All other waiting jobs moved up by one.
  std::vector<JobStatus> moved;
  for (const auto& other : waiting) moved.push_back(status_of(*other));
  lock.unlock();
  listener.on_state(status);
  for (const JobStatus& other : moved) listener.on_state(other);
  return job;
}

void GenerationQueue::Impl::run_job(Job& job) {
  if (const auto changed = find_changed_file(files)) {
    GenerationResult rejected;
    rejected.reason = StopReason::Error;
    rejected.error = *changed;
    return finish_job(job, rejected, {});
  }
  const bool recorded = job.request.level != Level::Off;
  job.request.queued_ns =
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - job.status.submitted).count();
  job.info.facts.emplace_back("result.queue_ns", std::to_string(job.request.queued_ns));
  if (recorded) {
    std::error_code ignored;
    std::filesystem::create_directories(options.data_dir, ignored);
    recorder->begin(job.info, options.data_dir / (job.info.id + ".ttrace"),
                    engine->recording_options(job.request));
  }
  const CrashMarker::Evaluation evaluation(options.crash_marker, options.model.path);
  const GenerationResult result =
      engine->generate(job.request, recorded ? recorder.get() : nullptr, *this, job.debugger.get());
  RecordingResult recording;
  if (recorded) {
    engine->complete(job.info, result);
    if (job.debugger != nullptr) add_changes(job.info, job.debugger->changes());
    job.info.facts.emplace_back("trace.conditions", machine->source());
    recording = recorder->finish(job.info);
  }
  finish_job(job, result, recording);
}

// A stop of the running job begins or has ended.
void GenerationQueue::Impl::note_stop(Job& job) {
  const auto stop = job.debugger->stop();
  const std::lock_guard notify_lock(notify_mutex);
  std::vector<JobStatus> changed;
  {
    const std::lock_guard lock(mutex);
    job.status.stopped = stop ? to_text(stop->place) : "";
    if (stop) job.status.stops = stop->number;
    changed.push_back(status_of(job));
    for (const auto& other : waiting) changed.push_back(status_of(*other));
  }
  for (const JobStatus& status : changed) listener.on_state(status);
}

void GenerationQueue::Impl::finish_job(Job& job, const GenerationResult& result,
                                       const RecordingResult& recording) {
  const std::lock_guard notify_lock(notify_mutex);
  JobStatus status;
  {
    const std::lock_guard lock(mutex);
    job.status.stop_reason = result.reason;
    job.status.error = result.error;
    if (!recording.error.empty()) {
      job.status.error += std::format("{}The recording ended early: {}",
                                      result.error.empty() ? "" : " ", recording.error);
    }
    job.status.steps = result.steps;
    job.status.prompt_ns = result.prompt_ns;
    job.status.generate_ns = result.generate_ns;
    job.status.recording = recording;
    job.status.reused_tokens = result.reused_tokens;
    job.status.prompt_tokens = result.prompt_tokens;
    job.status.generated = result.generated;
    job.status.state = result.reason == StopReason::Cancelled ? JobState::Cancelled
                       : result.reason == StopReason::Error   ? JobState::Failed
                                                              : JobState::Done;
    running.reset();
    last_ended = std::chrono::steady_clock::now();
    end(job);
    status = status_of(job);
  }
  listener.on_state(status);
}

// Keeps only the status of a finished job, because its prompt may be long.
void GenerationQueue::Impl::end(Job& job) {
  job.request = {};
  job.debugger.reset();
  job.info = {};
  finished.push_back(job.status.id);
  while (finished.size() > kMaxFinished) {
    jobs.erase(finished.front());
    finished.pop_front();
  }
}

void GenerationQueue::Impl::on_token(const Token& token, std::string_view piece) {
  std::string session;
  {
    const std::lock_guard lock(mutex);
    session = running->status.id;
    running->status.text += piece;
  }
  listener.on_token(session, token, piece);
}

void GenerationQueue::Impl::on_text(std::string_view rest) {
  std::string session;
  {
    const std::lock_guard lock(mutex);
    session = running->status.id;
    running->status.text += rest;
  }
  listener.on_text(session, rest);
}

void GenerationQueue::Impl::on_progress(std::uint32_t prompt_done, std::uint32_t prompt_tokens,
                                        std::uint32_t generated) {
  JobStatus status;
  {
    const std::lock_guard lock(mutex);
    running->status.prompt_done = prompt_done;
    running->status.prompt_tokens = prompt_tokens;
    running->status.generated = generated;
    status = without_text(*running);
  }
  listener.on_progress(status);
}

// ---------------------------------------------------------------- any thread

JobStatus GenerationQueue::Impl::status_of(const Job& job) const {
  JobStatus status = job.status;
  if (status.state == JobState::Queued) {
    const auto found =
        std::ranges::find_if(waiting, [&](const auto& other) { return other.get() == &job; });
    status.position = static_cast<std::uint32_t>(found - waiting.begin()) + (running ? 1 : 0);
    if (running) status.stopped_ahead = running->status.stopped;
  }
  return status;
}

// Avoids copying the text, which may be long, for every token.
JobStatus GenerationQueue::Impl::without_text(Job& job) const {
  std::string text = std::exchange(job.status.text, {});
  JobStatus status = status_of(job);
  job.status.text = std::move(text);
  return status;
}

// Cancels a waiting job. Returns the changed statuses: this job, and the positions after it.
std::vector<JobStatus> GenerationQueue::Impl::cancel_waiting(const std::shared_ptr<Job>& job) {
  job->status.state = JobState::Cancelled;
  job->status.stop_reason = StopReason::Cancelled;
  std::vector<JobStatus> changed = {status_of(*job)};
  for (auto other = waiting.erase(std::ranges::find(waiting, job)); other != waiting.end();
       ++other) {
    changed.push_back(status_of(**other));
  }
  end(*job);
  return changed;
}

GenerationQueue::GenerationQueue(Options options, SessionListener& listener)
    : impl_(std::make_unique<Impl>(std::move(options), listener)) {
  impl_->thread = std::thread([this] { impl_->run(); });
}

GenerationQueue::~GenerationQueue() { stop(); }

LoadState GenerationQueue::load_state() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->load_state;
}

std::optional<ModelFacts> GenerationQueue::facts() const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->engine == nullptr) return std::nullopt;
  return impl_->engine->facts();
}

const ModelOptions& GenerationQueue::model_options() const { return impl_->options.model; }

std::optional<std::string> GenerationQueue::changed() const {
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->engine == nullptr) return std::nullopt;
  }
  return find_changed_file(impl_->files);  // constant once the engine is set
}

std::expected<JobStatus, SubmitError> GenerationQueue::submit(GenerationRequest request) {
  using Kind = SubmitError::Kind;
  const auto reject = [](Kind kind, std::string message) {
    return std::unexpected(SubmitError{kind, std::move(message)});
  };
  const Engine* engine = nullptr;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->load_state.phase == LoadState::Phase::Failed) {
      return reject(Kind::LoadFailed, "The model is not loaded: " + impl_->load_state.error);
    }
    if (impl_->engine == nullptr) {
      return reject(Kind::NotReady, std::format("The model is still loading ({:.0f} %). Try again "
                                                "in a moment.",
                                                100 * impl_->load_state.progress));
    }
    engine = impl_->engine.get();
  }
  // The engine lives as long as the queue; its text functions need no lock.
  if (const auto changed = find_changed_file(impl_->files)) return reject(Kind::Changed, *changed);
  auto tokens = engine->check(request);
  if (!tokens) {
    const EngineError& error = tokens.error();
    return reject(error.kind == EngineError::Kind::TooLong ? Kind::TooLong
                  : error.kind == EngineError::Kind::Busy  ? Kind::Full
                                                           : Kind::BadRequest,
                  error.message);
  }
  if (impl_->exact_only) request.exact_timing = true;
  if (request.id.empty()) request.id = new_session_id();
  auto job = std::make_shared<Job>();
  job->info = engine->describe(request);
  if (!impl_->self_check_fact.empty()) {
    job->info.facts.emplace_back("trace.self_check", impl_->self_check_fact);
  }
  if (!impl_->load_state.warning.empty())
    job->info.facts.emplace_back("load.warning", impl_->load_state.warning);
  job->info.facts.emplace_back("trace.page_faults", impl_->faults->source());
  if (request.minor_faults)
    job->info.facts.emplace_back("trace.minor_faults", impl_->faults->minor_source());
  job->status.id = job->info.id;
  job->status.model = impl_->options.name;
  job->status.n_layers = job->info.n_layers;
  job->status.max_tokens = request.max_tokens;
  job->status.submitted = std::chrono::steady_clock::now();
  if (request.debug) {
    auto debugger = Debugger::make(*request.debug, job->info.n_heads,
                                   [this, of = job.get()] { impl_->note_stop(*of); });
    if (!debugger) return reject(Kind::BadRequest, debugger.error());
    job->debugger = *std::move(debugger);
  }
  job->request = std::move(request);
  job->request.prompt = *std::move(tokens);  // not converted again when it runs
  JobStatus status;
  const std::lock_guard notify_lock(impl_->notify_mutex);
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->stopping || impl_->closed)
      return reject(Kind::Stopping, "The model is being unloaded.");
    if (impl_->waiting.size() >= impl_->options.max_queued) {
      return reject(Kind::Full,
                    std::format("{} requests are waiting, which is the maximum. Try again later.",
                                impl_->waiting.size()));
    }
    impl_->waiting.push_back(job);
    impl_->jobs.emplace(job->info.id, job);
    status = impl_->status_of(*job);
  }
  impl_->listener.on_state(status);
  impl_->wake.notify_one();
  return status;
}

std::optional<JobStatus> GenerationQueue::status(const std::string& id) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->jobs.find(id);
  if (found == impl_->jobs.end()) return std::nullopt;
  return impl_->status_of(*found->second);
}

std::vector<JobStatus> GenerationQueue::statuses() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<JobStatus> all;
  for (const auto& [id, job] : impl_->jobs) all.push_back(impl_->status_of(*job));
  return all;
}

void GenerationQueue::set_memory(const MemoryOptions& options) {
  const std::lock_guard lock(impl_->mutex);
  impl_->memory = options;
  if (impl_->engine != nullptr) impl_->engine->set_memory(options);
}

void GenerationQueue::use_pattern(StoredPattern pattern) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->engine != nullptr) impl_->engine->use_pattern(std::move(pattern));
}

MemoryState GenerationQueue::memory_state() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->engine == nullptr ? MemoryState{} : impl_->engine->memory_state();
}

MemoryMap GenerationQueue::memory_map() const {
  const Engine* engine = nullptr;
  {
    const std::lock_guard lock(impl_->mutex);
    engine = impl_->engine.get();
  }
  return engine == nullptr ? MemoryMap{} : engine->memory_map();
}

std::optional<std::chrono::steady_clock::time_point> GenerationQueue::idle_since() const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->engine == nullptr || !impl_->idle()) return std::nullopt;
  return impl_->last_ended;
}

bool GenerationQueue::close_if_idle() {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->idle()) return false;
  impl_->closed = true;
  return true;
}

bool GenerationQueue::cancel(const std::string& id) {
  const std::lock_guard notify_lock(impl_->notify_mutex);
  std::vector<JobStatus> changed;
  {
    const std::lock_guard lock(impl_->mutex);
    const auto found = impl_->jobs.find(id);
    if (found == impl_->jobs.end()) return false;
    Job& job = *found->second;
    if (impl_->running.get() == &job) {
      impl_->engine->cancel();
      return true;
    }
    if (job.status.state != JobState::Queued) return true;
    changed = impl_->cancel_waiting(found->second);
  }
  for (const JobStatus& status : changed) impl_->listener.on_state(status);
  return true;
}

std::shared_ptr<Debugger> GenerationQueue::debugger(const std::string& id) const {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->jobs.find(id);
  return found == impl_->jobs.end() ? nullptr : found->second->debugger;
}

std::optional<StepInFlight> GenerationQueue::in_flight(const std::string& id,
                                                       std::uint32_t from_op) const {
  StepInFlight step;
  step.session = id;
  const Engine* engine = nullptr;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->running == nullptr || impl_->running->status.id != id) return std::nullopt;
    engine = impl_->engine.get();
  }
  const StepBuffer* buffer = engine->probe().in_flight();
  if (buffer == nullptr) return std::nullopt;
  step.graph_nodes = engine->facts().graph_nodes;
  const std::uint64_t generation = buffer->generation.load(std::memory_order_acquire);
  step.step = StepId{buffer->step_id.load(std::memory_order_acquire)};
  step.first_op = Ns{buffer->first_op_ns.load(std::memory_order_acquire)};
  step.first = from_op;
  const std::uint32_t done = buffer->ops_done.load(std::memory_order_acquire);
  for (std::uint32_t op = from_op; op < done; ++op) {
    step.ends.push_back(Ns{buffer->op_ends[op].load(std::memory_order_relaxed)});
  }
  {
    const std::lock_guard lock(buffer->new_op_mutex);
    step.new_op = buffer->new_op;
  }
  // The buffer was reused while being read: discard the copy.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (buffer->generation.load(std::memory_order_relaxed) != generation ||
      engine->probe().in_flight() != buffer) {
    return std::nullopt;
  }
  return step;
}

void GenerationQueue::stop() {
  {
    const std::lock_guard notify_lock(impl_->notify_mutex);
    std::vector<JobStatus> cancelled;
    {
      const std::lock_guard lock(impl_->mutex);
      if (impl_->stopping && !impl_->thread.joinable()) return;
      impl_->stopping = true;
      if (impl_->running != nullptr) impl_->engine->cancel();
      while (!impl_->waiting.empty()) {
        cancelled.push_back(impl_->cancel_waiting(impl_->waiting.back()).front());
      }
    }
    for (const JobStatus& status : cancelled) impl_->listener.on_state(status);
  }
  impl_->stop_loading.request_stop();
  impl_->wake.notify_all();
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace tt
