#include "server/models/metadata_checks.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "tracer/engine/model_check.h"

namespace tt {

using namespace std::chrono_literals;

MetadataChecks::MetadataChecks(Options options) : options_(std::move(options)) {}

MetadataChecks::~MetadataChecks() { stop(); }

void MetadataChecks::set_models(std::vector<Model> models) {
  if (options_.sandbox == nullptr) return;
  const std::scoped_lock lock(mutex_);
  std::map<std::filesystem::path, Entry> wanted;
  for (Model& model : models) {
    const auto known = models_.find(model.path);
    if (known != models_.end() && known->second.files == model.files)
      wanted.insert(models_.extract(known));
    else
      wanted.emplace(std::move(model.path), Entry{.files = std::move(model.files)});
  }
  models_ = std::move(wanted);
  if (models_.empty() || stopping_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  wake_.notify_all();
}

std::string MetadataChecks::error_of(const std::filesystem::path& model) const {
  const std::scoped_lock lock(mutex_);
  const auto found = models_.find(model);
  return found == models_.end() ? "" : found->second.error;
}

void MetadataChecks::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool MetadataChecks::may_run() const {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return false;
  }
  return options_.may_run();
}

void MetadataChecks::run() {
  constexpr auto kPause = 200ms;  // until a running model is looked at again
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto next =
        std::ranges::find_if(models_, [](const auto& model) { return !model.second.is_checked; });
    if (next == models_.end()) {
      wake_.wait(lock);
      continue;
    }
    const std::filesystem::path model = next->first;
    lock.unlock();
    const bool may = may_run();
    lock.lock();
    if (may)
      check_one(lock, model);
    else if (!stopping_)
      wake_.wait_for(lock, kPause);
  }
}

// A model that changed or was removed meanwhile has no result.
void MetadataChecks::check_one(std::unique_lock<std::mutex>& lock,
                               const std::filesystem::path& model) {
  const auto before = models_.find(model);
  if (before == models_.end()) return;
  const std::vector<FileStamp> files = before->second.files;
  lock.unlock();
  bool was_stopped = false;
  std::string error = metadata_error(*options_.sandbox, model, [&] {
    was_stopped = was_stopped || !may_run();
    return !was_stopped;
  });
  lock.lock();
  const auto after = models_.find(model);
  if (was_stopped || after == models_.end() || after->second.files != files) return;
  after->second.is_checked = true;
  after->second.error = std::move(error);
  if (after->second.error.empty() || !options_.on_refused) return;
  lock.unlock();
  options_.on_refused(model);
  lock.lock();
}

}  // namespace tt
