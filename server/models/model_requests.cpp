// ModelManager: generation requests.
#include <algorithm>
#include <format>
#include <iterator>
#include <utility>

#include "server/models/model_manager.h"
#include "tracer/memory/plan/stored_pattern.h"
#include "tracer/text/join.h"

namespace tt {

std::string ModelManager::known_ids() const {
  const auto is_valid = [](const auto& entry) { return entry.second.found.error.empty(); };
  return join(slots_ | std::views::filter(is_valid) | std::views::keys);
}

std::expected<ModelManager::QueuePtr, Problem> ModelManager::queue_for(
    const std::string& model_id) {
  const auto reject = [](ErrorCode error_code, std::string detail) {
    return std::unexpected(Problem{error_code, std::move(detail)});
  };
  if (stopping_) return reject(ErrorCode::Stopping, "The server is stopping.");
  if (!model_id.empty() && slot_of(model_id) == nullptr)
    return reject(ErrorCode::BadRequest, no_such_model(model_id).detail);

  std::vector<std::pair<std::string, QueuePtr>> loaded;
  std::optional<float> progress;
  std::string error;
  bool refused = false;
  std::uint64_t last_failed = 0;
  for (const auto& [id, slot] : slots_) {
    if (!model_id.empty() && id != model_id) continue;
    const ModelEntry entry = entry_of(id, slot);
    if (entry.state == ModelState::Loaded) loaded.emplace_back(id, slot.queue);
    if (entry.state == ModelState::Loading) progress = entry.load_progress;
    const bool was_requested = slot.failed > 0 || !model_id.empty();
    if (entry.state == ModelState::Failed && was_requested && slot.failed >= last_failed) {
      error = entry.error;
      refused = is_refused(slot);
      last_failed = slot.failed;
    }
  }
  if (loaded.size() == 1) return loaded.front().second;
  if (loaded.size() > 1) {
    return reject(ErrorCode::BadRequest,
                  std::format("Several models are loaded. Set \"model\" to one of: {}.",
                              join(loaded | std::views::keys)));
  }
  if (progress) {
    return reject(ErrorCode::ModelLoading,
                  std::format("The model is still loading ({:.0f} %). Try again in a moment.",
                              100 * *progress));
  }
  if (!error.empty()) return std::unexpected(failed("The model is not loaded: " + error, refused));
  const std::string ids = known_ids();
  if (ids.empty()) {
    return reject(ErrorCode::ModelNotLoaded,
                  "This server has no model. Start it with --model FILE or --models-dir DIR.");
  }
  return reject(
      ErrorCode::ModelNotLoaded,
      model_id.empty()
          ? std::format("No model is loaded. Load one with POST /api/v1/models/ID/load; "
                        "available: {}.",
                        ids)
          : std::format("{0} is not loaded. Load it with POST /api/v1/models/{0}/load.", model_id));
}

std::expected<JobStatus, Problem> ModelManager::submit(const std::string& id,
                                                       GenerationRequest request) {
  QueuePtr queue;
  {
    const std::scoped_lock lock(mutex_);
    auto found = queue_for(id);
    if (!found) return std::unexpected(found.error());
    queue = *std::move(found);
  }
  auto status = queue->submit(std::move(request));
  if (status) return *std::move(status);
  if (status.error().kind == SubmitError::Kind::Stopping) {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return std::unexpected(Problem{ErrorCode::Stopping, "The server is stopping."});
    return std::unexpected(Problem{ErrorCode::ModelNotLoaded,
                                   "The model has just been unloaded. Load it again with POST "
                                   "/api/v1/models/ID/load."});
  }
  if (status.error().kind == SubmitError::Kind::LoadFailed)
    return std::unexpected(failed(status.error().message, queue->load_state().is_refused));
  if (status.error().kind == SubmitError::Kind::Changed)
    unload_changed(queue, status.error().message);
  return std::unexpected(problem_of(status.error()));
}

// Its mapped weights are no longer those of the file; pages that a shorter file lacks cannot even
// be read.
void ModelManager::unload_changed(const QueuePtr& queue, const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  for (auto& [id, slot] : slots_) {
    if (slot.queue != queue || !queue->close_if_idle()) continue;
    const std::uint64_t sequence = slot.load_sequence;
    release(id, slot);
    slot.error = reason;
    slot.is_refused = false;
    slot.failed = sequence;
  }
}

// ---------------------------------------------------------------- memory budget

std::expected<ModelManager::QueuePtr, Problem> ModelManager::loaded_queue(
    const std::string& id) const {
  const auto found = slots_.find(id);
  if (found == slots_.end()) return std::unexpected(no_such_model(id));
  const ModelEntry entry = entry_of(id, found->second);
  if (entry.state == ModelState::Loaded) return found->second.queue;
  if (entry.state == ModelState::Loading) {
    return std::unexpected(
        Problem{ErrorCode::ModelLoading,
                std::format("The model is still loading ({:.0f} %). Try again in a moment.",
                            100 * entry.load_progress)});
  }
  return std::unexpected(
      Problem{ErrorCode::ModelNotLoaded,
              std::format("{} is not loaded. Load it with POST /api/v1/models/{}/load.", id, id)});
}

std::expected<MemoryState, Problem> ModelManager::memory(const std::string& id) const {
  const std::scoped_lock lock(mutex_);
  const auto queue = loaded_queue(id);
  if (queue) return (*queue)->memory_state();
  if (queue.error().error_code != ErrorCode::ModelLoading) return std::unexpected(queue.error());
  MemoryState state;
  state.phase = MemoryState::Phase::Learning;
  state.options = slots_.at(id).memory.value_or(options_.model.memory);
  state.message = queue.error().detail;
  return state;
}

std::expected<MemoryMap, Problem> ModelManager::memory_map(const std::string& id) const {
  std::expected<QueuePtr, Problem> queue;
  {
    const std::scoped_lock lock(mutex_);
    queue = loaded_queue(id);
  }
  if (queue) return (*queue)->memory_map();
  if (queue.error().error_code == ErrorCode::ModelLoading) return MemoryMap{};
  return std::unexpected(queue.error());
}

std::expected<MemoryState, Problem> ModelManager::set_memory(const std::string& id,
                                                             const MemoryOptions& options) {
  const std::scoped_lock lock(mutex_);
  const auto queue = loaded_queue(id);
  if (!queue) return std::unexpected(queue.error());
  Slot& slot = slots_.at(id);
  ModelOptions model = slot.model;
  model.memory = options;
  if (slot.model.repacks() && !model.repacks()) {
    if (!slot.queue->close_if_idle()) return std::unexpected(busy(id));
    slot.memory = options;
    release(id, slot);
    request_load(slot);
    MemoryState state;
    state.phase = MemoryState::Phase::Learning;
    state.options = options;
    state.message = "The model is loaded again without repacking, so that its weights are mapped.";
    return state;
  }
  slot.memory = options;
  (*queue)->set_memory(options);
  return (*queue)->memory_state();
}

std::expected<MemoryState, Problem> ModelManager::set_access_pattern(const std::string& id,
                                                                     std::string_view text) {
  const auto index = structure(id);
  if (!index) return std::unexpected(index.error());
  const auto pattern = parse_pattern(text, index->files());
  if (!pattern) {
    return std::unexpected(
        Problem{ErrorCode::BadRequest,
                std::format("The access pattern {}. Export one from a session of this model: GET "
                            "/api/v1/sessions/ID/pattern.",
                            pattern.error())});
  }
  const std::scoped_lock lock(mutex_);
  const auto queue = loaded_queue(id);
  const auto slot = slots_.find(id);
  if (slot == slots_.end()) return std::unexpected(queue.error());
  if (!options_.data_dir.empty() &&
      !write_pattern(pattern_file(options_.data_dir / kPatternFolder, slot->second.found.path),
                     pattern_text(*pattern, index->files()))) {
    return std::unexpected(
        Problem{ErrorCode::StorageFailed, "The access pattern cannot be stored."});
  }
  if (!queue) return MemoryState{};
  (*queue)->use_pattern(*pattern);
  return (*queue)->memory_state();
}

// ---------------------------------------------------------------- requests

std::vector<ModelManager::QueuePtr> ModelManager::queues() const {
  std::vector<QueuePtr> out;
  for (const auto& [id, slot] : slots_)
    if (slot.queue) out.push_back(slot.queue);
  for (const PendingUnload& pending : unloading_)
    if (pending.queue) out.push_back(pending.queue);
  return out;
}

std::optional<JobStatus> ModelManager::status(const std::string& session) const {
  const std::scoped_lock lock(mutex_);
  for (const QueuePtr& queue : queues())
    if (auto status = queue->status(session)) return status;
  const JobStatus* status = ended(session);
  if (status == nullptr) return std::nullopt;
  return *status;
}

void ModelManager::keep_ended(std::vector<JobStatus> ended_jobs) {
  std::ranges::move(ended_jobs, std::back_inserter(ended_));
  std::ranges::sort(ended_, {}, &JobStatus::submitted);
  if (ended_.size() > kMaxEnded)
    ended_.erase(ended_.begin(), ended_.end() - std::ptrdiff_t{kMaxEnded});
}

const JobStatus* ModelManager::ended(const std::string& session) const {
  const auto found = std::ranges::find(ended_, session, &JobStatus::id);
  return found == ended_.end() ? nullptr : &*found;
}

std::vector<JobStatus> ModelManager::statuses() const {
  std::vector<JobStatus> all;
  {
    const std::scoped_lock lock(mutex_);
    for (const QueuePtr& queue : queues())
      std::ranges::move(queue->statuses(), std::back_inserter(all));
    std::ranges::copy(ended_, std::back_inserter(all));
  }
  std::ranges::sort(all, std::ranges::greater(), &JobStatus::submitted);
  std::size_t ended = 0;
  std::erase_if(
      all, [&](const JobStatus& status) { return has_ended(status.state) && ++ended > kMaxEnded; });
  return all;
}

bool ModelManager::cancel(const std::string& session) {
  std::vector<QueuePtr> running_queues;
  {
    const std::scoped_lock lock(mutex_);
    if (ended(session) != nullptr) return true;
    running_queues = queues();
  }
  return std::ranges::any_of(running_queues,
                             [&](const QueuePtr& queue) { return queue->cancel(session); });
}

std::shared_ptr<Debugger> ModelManager::debugger(const std::string& session) const {
  const std::scoped_lock lock(mutex_);
  for (const QueuePtr& queue : queues())
    if (auto found = queue->debugger(session)) return found;
  return nullptr;
}

std::optional<StepInFlight> ModelManager::in_flight(const std::string& session,
                                                    std::uint32_t from_op) const {
  std::vector<QueuePtr> running_queues;
  {
    const std::scoped_lock lock(mutex_);
    running_queues = queues();
  }
  for (const QueuePtr& queue : running_queues)
    if (auto step = queue->in_flight(session, from_op)) return step;
  return std::nullopt;
}

}  // namespace tt
