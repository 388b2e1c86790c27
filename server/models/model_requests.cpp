// ModelShelf: generation requests.
#include <algorithm>
#include <format>
#include <iterator>
#include <utility>

#include "server/models/model_shelf.h"

namespace tt {

std::string ModelShelf::known_ids() const {
  std::string ids;
  for (const auto& [id, slot] : slots_) {
    if (slot.found.error.empty()) ids += (ids.empty() ? "" : ", ") + id;
  }
  return ids;
}

std::expected<ModelShelf::QueuePtr, Problem> ModelShelf::queue_for(const std::string& wanted) {
  const auto refuse = [](Fault fault, std::string detail) {
    return std::unexpected(Problem{fault, std::move(detail)});
  };
  if (stopping_) return refuse(Fault::Stopping, "The server is stopping.");
  if (!wanted.empty() && slot_of(wanted) == nullptr)
    return refuse(Fault::BadRequest, no_such_model(wanted).detail);

  std::vector<std::pair<std::string, QueuePtr>> loaded;
  std::optional<float> progress;
  std::string error;
  std::uint64_t last_failed = 0;
  for (const auto& [id, slot] : slots_) {
    if (!wanted.empty() && id != wanted) continue;
    const ModelEntry entry = entry_of(id, slot);
    if (entry.state == ModelState::Loaded) loaded.emplace_back(id, slot.queue);
    if (entry.state == ModelState::Loading) progress = entry.load_progress;
    const std::uint64_t wish = failed_wish(slot);
    const bool asked_for = wish > 0 || !wanted.empty();
    if (entry.state == ModelState::Failed && asked_for && wish >= last_failed) {
      error = entry.error;
      last_failed = wish;
    }
  }
  if (loaded.size() == 1) return loaded.front().second;
  if (loaded.size() > 1) {
    std::string ids;
    for (const auto& [id, queue] : loaded) ids += (ids.empty() ? "" : ", ") + id;
    return refuse(Fault::BadRequest,
                  std::format("Several models are loaded. Set \"model\" to one of: {}.", ids));
  }
  if (progress) {
    return refuse(Fault::ModelLoading,
                  std::format("The model is still loading ({:.0f} %). Try again in a moment.",
                              100 * *progress));
  }
  if (!error.empty()) return refuse(Fault::ModelFailed, "The model is not loaded: " + error);
  const std::string ids = known_ids();
  if (ids.empty()) {
    return refuse(Fault::ModelNotLoaded,
                  "This server has no model. Start it with --model FILE or --models-dir DIR.");
  }
  return refuse(
      Fault::ModelNotLoaded,
      wanted.empty()
          ? std::format("No model is loaded. Load one with POST /api/v1/models/ID/load; "
                        "available: {}.",
                        ids)
          : std::format("{0} is not loaded. Load it with POST /api/v1/models/{0}/load.", wanted));
}

std::expected<JobStatus, Problem> ModelShelf::submit(const std::string& id,
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
    if (stopping_) return std::unexpected(Problem{Fault::Stopping, "The server is stopping."});
    return std::unexpected(Problem{Fault::ModelNotLoaded,
                                   "The model has just been unloaded. Load it again with POST "
                                   "/api/v1/models/ID/load."});
  }
  return std::unexpected(problem_of(status.error()));
}

std::vector<ModelShelf::QueuePtr> ModelShelf::queues() const {
  std::vector<QueuePtr> out;
  for (const auto& [id, slot] : slots_)
    if (slot.queue) out.push_back(slot.queue);
  for (const Leaving& leaving : leaving_)
    if (leaving.queue) out.push_back(leaving.queue);
  return out;
}

std::optional<JobStatus> ModelShelf::status(const std::string& session) const {
  const std::scoped_lock lock(mutex_);
  for (const QueuePtr& queue : queues())
    if (auto status = queue->status(session)) return status;
  const JobStatus* status = ended(session);
  if (status == nullptr) return std::nullopt;
  return *status;
}

void ModelShelf::remember(std::vector<JobStatus> said) {
  std::ranges::move(said, std::back_inserter(ended_));
  std::ranges::sort(ended_, {}, &JobStatus::submitted);
  if (ended_.size() > kRemembered)
    ended_.erase(ended_.begin(), ended_.end() - std::ptrdiff_t{kRemembered});
}

const JobStatus* ModelShelf::ended(const std::string& session) const {
  const auto found = std::ranges::find(ended_, session, &JobStatus::id);
  return found == ended_.end() ? nullptr : &*found;
}

std::vector<JobStatus> ModelShelf::statuses() const {
  std::vector<JobStatus> all;
  {
    const std::scoped_lock lock(mutex_);
    for (const QueuePtr& queue : queues())
      std::ranges::move(queue->statuses(), std::back_inserter(all));
    std::ranges::copy(ended_, std::back_inserter(all));
  }
  std::ranges::sort(all, std::ranges::greater(), &JobStatus::submitted);
  std::size_t ended = 0;
  std::erase_if(all, [&](const JobStatus& status) {
    return has_ended(status.state) && ++ended > kRemembered;
  });
  for (JobStatus& status : all) status.text.clear();
  return all;
}

bool ModelShelf::cancel(const std::string& session) {
  std::vector<QueuePtr> asked;
  {
    const std::scoped_lock lock(mutex_);
    if (ended(session) != nullptr) return true;
    asked = queues();
  }
  return std::ranges::any_of(asked, [&](const QueuePtr& queue) { return queue->cancel(session); });
}

std::optional<StepInFlight> ModelShelf::in_flight(const std::string& session,
                                                  std::uint32_t from_op) const {
  std::vector<QueuePtr> asked;
  {
    const std::scoped_lock lock(mutex_);
    asked = queues();
  }
  for (const QueuePtr& queue : asked)
    if (auto step = queue->in_flight(session, from_op)) return step;
  return std::nullopt;
}

}  // namespace tt
