#include "server/models/model_manager.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <format>
#include <iterator>
#include <system_error>
#include <utility>

namespace tt {

namespace {

using namespace std::chrono_literals;
using LoadPhase = LoadState::Phase;

// Converts a file name stem to an id that is safe in a URL path: letters, digits, '-', '_' and
// '.', not starting with '.'.
std::string make_id(const std::string& stem) {
  constexpr std::size_t kMaxLength = 190;  // leaves room for a suffix
  std::string id = stem.substr(0, kMaxLength);
  for (char& c : id) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
    if (!fits) c = '_';
  }
  if (id.empty() || id.front() == '.') id.insert(0, 1, '_');
  return id;
}

// No new references can be created; existing ones are released when their calls return.
void wait_until_unique(const std::shared_ptr<GenerationQueue>& queue) {
  while (queue.use_count() > 1) std::this_thread::sleep_for(1ms);
}

}  // namespace

ModelManager::ModelManager(Options options, SessionListener& listener)
    : options_(std::move(options)),
      listener_(listener),
      folder_(options_.folder),
      metadata_checks_({.sandbox = options_.check_models ? options_.sandbox : nullptr,
                        .may_run = [this] { return is_idle(); },
                        .on_refused = [this](const auto& model) { metadata_refused(model); }}) {
  rescan();
  if (!options_.model.path.empty()) {
    const std::string& id = ids_.at(real_path(options_.model.path));
    Slot& slot = slots_.at(id);
    slot.error = crash_reason(id, slot);
    if (slot.found.error.empty() && slot.error.empty()) {
      request_load(slot);
    } else {
      slot.failed = ++last_sequence_;
      if (options_.on_change) options_.on_change(entry_of(id, slot));
    }
  }
  thread_ = std::thread([this] { run(); });  // single-threaded until here
}

ModelManager::~ModelManager() { stop(); }

// Why the model is not loaded at startup; empty: it is.
std::string ModelManager::crash_reason(const std::string& id, const Slot& slot) const {
  if (options_.crash_marker == nullptr) return "";
  const auto signal = options_.crash_marker->crash_of(slot.found.path);
  if (!signal) return "";
  if (options_.checked_models != nullptr) options_.checked_models->remove(slot.found.path);
  return std::format(
      "{}: the server crashed ({}) while llama.cpp evaluated this model. Therefore it is not "
      "loaded at startup. Its file is probably damaged: replace it. To load it nevertheless, use "
      "POST "
      "/api/v1/models/{}/load.",
      slot.found.path.string(), *signal, id);
}

void ModelManager::stop() {
  metadata_checks_.stop();
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    for (auto& [id, slot] : slots_) release(id, slot);
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// ---------------------------------------------------------------- scanning

std::filesystem::path ModelManager::real_path(const std::filesystem::path& path) {
  std::error_code failed;
  auto real = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : real;
}

// Ids are permanent: a model that reappears has the same id.
std::string ModelManager::id_for(const FoundModel& found) {
  // A link that leads outside the folder is not the file that it leads to.
  const auto [known, fresh] = ids_.try_emplace(
      found.is_outside ? real_path(found.path.parent_path()) / found.path.filename()
                       : real_path(found.path));
  if (!fresh) return known->second;
  const auto taken = [&](const std::string& id) {
    return std::ranges::any_of(ids_, [&](const auto& entry) { return entry.second == id; });
  };
  std::string id = make_id(found.stem);
  for (int number = 2; taken(id); ++number) id = std::format("{}-{}", make_id(found.stem), number);
  known->second = id;
  return id;
}

void ModelManager::rescan() {
  const std::scoped_lock scanning(scan_mutex_);
  std::vector<FoundModel> found;
  if (!options_.model.path.empty()) found.push_back(inspect_model(options_.model.path));
  std::ranges::move(folder_.scan(), std::back_inserter(found));

  std::vector<ModelEntry> outside;  // found for the first time
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [id, slot] : slots_) slot.listed = false;
    for (FoundModel& model : found) {
      const std::string id = id_for(model);
      Slot& slot = slots_[id];
      slot.listed = true;
      if (slot.found.files != model.files) slot.error.clear();  // changed: retry
      const bool is_new = model.is_outside && !slot.found.is_outside;
      slot.found = std::move(model);
      if (is_new) outside.push_back(entry_of(id, slot));
    }
    std::erase_if(slots_, [&](const auto& entry) {
      const auto& [id, slot] = entry;
      return !slot.listed && slot.load_sequence == 0 && !is_unloading(id);
    });
    check_metadata();
  }
  if (!options_.on_change) return;
  for (const ModelEntry& entry : outside) options_.on_change(entry);
}

// Those that look valid and that no load has tried: a load says itself what it finds.
void ModelManager::check_metadata() {
  std::vector<MetadataChecks::Model> models;
  for (const auto& [id, slot] : slots_) {
    if (slot.listed && slot.found.error.empty() && slot.error.empty() && slot.load_sequence == 0)
      models.push_back({.path = slot.found.path, .files = slot.found.files});
  }
  metadata_checks_.set_models(std::move(models));
}

bool ModelManager::is_idle() const {
  const std::scoped_lock lock(mutex_);
  return std::ranges::none_of(slots_, [](const auto& entry) {
    const Slot& slot = entry.second;
    return slot.load_sequence != 0 && (!slot.queue || !slot.queue->idle_since());
  });
}

void ModelManager::metadata_refused(const std::filesystem::path& model) {
  std::optional<ModelEntry> refused;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [id, slot] : slots_)
      if (slot.found.path == model && slot.load_sequence == 0) refused = entry_of(id, slot);
  }
  if (refused && options_.on_change) options_.on_change(*refused);
}

ModelManager::Slot* ModelManager::slot_of(const std::string& id) {
  const auto found = slots_.find(id);
  return found == slots_.end() ? nullptr : &found->second;
}

bool ModelManager::is_unloading(const std::string& id) const {
  return std::ranges::contains(unloading_, id, &PendingUnload::id);
}

ModelEntry ModelManager::entry_of(const std::string& id, const Slot& slot) const {
  ModelEntry entry{.id = id,
                   .name = slot.found.name,
                   .path = slot.found.path.string(),
                   .bytes = slot.found.bytes(),
                   .files = slot.found.files.size(),
                   .is_importance_matrix = slot.found.is_importance_matrix};
  std::string error = slot.error.empty() ? slot.found.error : slot.error;
  if (error.empty()) error = metadata_checks_.error_of(slot.found.path);
  if (slot.load_sequence != 0) {
    entry.state = ModelState::Loading;
    if (!slot.queue) return entry;
    const LoadState load = slot.queue->load_state();
    entry.load_progress = load.progress;
    entry.warning = load.warning;
    // Until load_ended() has made its room free again, a load that failed is still a load.
    if (load.phase == LoadPhase::Ready) {
      entry.state = ModelState::Loaded;
      entry.facts = slot.queue->facts();
      if (const auto changed = slot.queue->changed()) entry.warning = *changed;
    }
  } else if (!error.empty()) {
    entry.state = ModelState::Failed;
    entry.error = error;
  } else if (is_unloading(id)) {
    entry.state = ModelState::Unloading;
  }
  return entry;
}

std::vector<ModelEntry> ModelManager::models() {
  rescan();
  const std::shared_lock lock(mutex_);
  std::vector<ModelEntry> out;
  for (const auto& [id, slot] : slots_) out.push_back(entry_of(id, slot));
  return out;
}

std::expected<ModelEntry, Problem> ModelManager::model(const std::string& id) {
  {
    const std::shared_lock lock(mutex_);
    if (const Slot* slot = slot_of(id)) return entry_of(id, *slot);
  }
  rescan();  // it may be new
  const std::shared_lock lock(mutex_);
  if (const Slot* slot = slot_of(id)) return entry_of(id, *slot);
  return std::unexpected(no_such_model(id));
}

std::expected<GgufIndex, Problem> ModelManager::structure(const std::string& id) {
  rescan();
  std::filesystem::path path;
  {
    const std::shared_lock lock(mutex_);
    const Slot* slot = slot_of(id);
    if (slot == nullptr) return std::unexpected(no_such_model(id));
    if (slot->found.is_outside)
      return std::unexpected(Problem{ErrorCode::ModelDamaged, slot->found.error});
    path = slot->found.path;
  }
  auto index = GgufIndex::open(path);
  if (!index) return std::unexpected(Problem{ErrorCode::ModelDamaged, index.error()});
  return *std::move(index);
}

std::optional<ModelEntry> ModelManager::current() const {
  const std::shared_lock lock(mutex_);
  // Priority: loaded, then loading, then failed; ties by time.
  using Rank = std::pair<int, std::int64_t>;
  std::optional<std::pair<Rank, ModelEntry>> best;
  for (const auto& [id, slot] : slots_) {
    ModelEntry entry = entry_of(id, slot);
    Rank rank{0, static_cast<std::int64_t>(slot.load_sequence)};
    switch (entry.state) {
      case ModelState::Loaded: {
        const auto idle = slot.queue->idle_since();
        rank = {3, idle ? idle->time_since_epoch().count() : INT64_MAX};
        break;
      }
      case ModelState::Loading:
        rank.first = 2;
        break;
      case ModelState::Failed:
        if (slot.failed == 0) continue;  // it was never requested
        rank = {1, static_cast<std::int64_t>(slot.failed)};
        break;
      default:
        continue;
    }
    if (!best || rank > best->first) best.emplace(rank, std::move(entry));
  }
  if (!best) return std::nullopt;
  return std::move(best->second);
}

// ---------------------------------------------------------------- loading

void ModelManager::request_load(Slot& slot) {
  slot.load_sequence = ++last_sequence_;
  slot.error.clear();
  slot.failed = 0;
  wake_.notify_all();
}

void ModelManager::release(const std::string& id, Slot& slot) {
  slot.load_sequence = 0;
  if (slot.queue) unloading_.push_back({.id = id, .queue = std::move(slot.queue)});
  slot.queue.reset();
  wake_.notify_all();
}

std::expected<void, Problem> ModelManager::evict_idle() {
  for (;;) {
    std::size_t loaded = 0;
    std::pair<const std::string, Slot>* longest = nullptr;
    std::chrono::steady_clock::time_point since;
    for (auto& entry : slots_) {
      const Slot& slot = entry.second;
      if (slot.load_sequence == 0) continue;
      ++loaded;
      const auto idle = slot.queue ? slot.queue->idle_since() : std::nullopt;
      if (!idle || (longest != nullptr && since <= *idle)) continue;
      longest = &entry;
      since = *idle;
    }
    if (loaded < options_.max_loaded) return {};
    if (longest == nullptr) {
      return std::unexpected(Problem{
          ErrorCode::ModelBusy,
          std::format("{} of at most {} models (--models-max) are loaded, and none is idle. Wait, "
                      "cancel their requests, or unload a model that is loading.",
                      loaded, options_.max_loaded)});
    }
    // close_if_idle() fails when the queue has received a request meanwhile.
    if (longest->second.queue->close_if_idle()) release(longest->first, longest->second);
  }
}

std::expected<ModelEntry, Problem> ModelManager::load(const std::string& id) {
  rescan();
  const std::scoped_lock lock(mutex_);
  Slot* slot = slot_of(id);
  if (slot == nullptr) return std::unexpected(no_such_model(id));
  if (stopping_) return std::unexpected(Problem{ErrorCode::Stopping, "The server is stopping."});
  const bool is_old = slot->queue && slot->queue->changed();
  if (slot->load_sequence != 0 && !is_old) return entry_of(id, *slot);
  if (!slot->listed || !slot->found.error.empty()) {
    return std::unexpected(
        slot->listed
            ? failed(slot->found.error, true)
            : failed(slot->found.path.string() + " does not exist any more. Choose another model.",
                     false));
  }
  if (is_old) {
    if (!slot->queue->close_if_idle()) return std::unexpected(busy(id));
    release(id, *slot);
  }
  if (auto room = evict_idle(); !room) return std::unexpected(room.error());
  if (options_.crash_marker != nullptr) options_.crash_marker->forget(slot->found.path);
  request_load(*slot);
  return entry_of(id, *slot);
}

std::expected<ModelEntry, Problem> ModelManager::unload(const std::string& id) {
  const std::scoped_lock lock(mutex_);
  Slot* slot = slot_of(id);
  if (slot == nullptr) return std::unexpected(no_such_model(id));
  if (slot->load_sequence != 0) {
    if (slot->queue && !slot->queue->close_if_idle()) return std::unexpected(busy(id));
    release(id, *slot);
  }
  return entry_of(id, *slot);
}

// Whether the model failed because of its file.
bool ModelManager::is_refused(const Slot& slot) {
  return slot.error.empty() ? !slot.found.error.empty() : slot.is_refused;
}

Problem ModelManager::failed(std::string detail, bool is_refused) {
  constexpr int kRefused = 422;
  return {ErrorCode::ModelFailed, std::move(detail), is_refused ? kRefused : 0};
}

Problem ModelManager::no_such_model(const std::string& id) {
  return {ErrorCode::NotFound,
          std::format("Model \"{}\" not found. GET /api/v1/models lists the models.", id)};
}

Problem ModelManager::busy(const std::string& id) {
  return {ErrorCode::ModelBusy,
          std::format("{} is running or has queued requests. Wait, or cancel them with "
                      "DELETE /api/v1/generate/ID.",
                      id)};
}

// Runs on the inference thread of the queue created for load request `wish`.
void ModelManager::load_ended(const std::string& id, std::uint64_t sequence,
                              const LoadState& state) {
  ModelEntry entry;
  {
    const std::scoped_lock lock(mutex_);
    Slot* slot = slot_of(id);
    if (slot == nullptr || slot->load_sequence != sequence) return;  // released meanwhile
    if (state.phase == LoadPhase::Failed) {
      slot->error = state.error;
      slot->is_refused = state.is_refused;
      slot->failed = sequence;
      release(id, *slot);
    }
    entry = entry_of(id, *slot);
  }
  if (options_.on_change) options_.on_change(entry);
}

// ---------------------------------------------------------------- loader thread

void ModelManager::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !unloading_.empty() || next_to_load(); });
    if (!unloading_.empty()) {
      unload_one(lock);
    } else if (stopping_) {
      return;
    } else if (const auto id = next_to_load()) {
      load_one(lock, *id);
    }
  }
}

std::optional<std::string> ModelManager::next_to_load() const {
  std::optional<std::string> next;
  std::uint64_t first = UINT64_MAX;
  for (const auto& [id, slot] : slots_) {
    if (slot.load_sequence == 0 || slot.queue || slot.load_sequence > first) continue;
    next = id;
    first = slot.load_sequence;
  }
  return next;
}

void ModelManager::unload_one(std::unique_lock<std::shared_mutex>& lock) {
  PendingUnload& pending = unloading_.front();  // only this thread removes elements
  QueuePtr queue = pending.queue;
  lock.unlock();
  const bool was_loaded = queue->load_state().phase == LoadPhase::Ready;
  queue->stop();
  std::vector<JobStatus> ended_jobs = queue->statuses();
  lock.lock();
  keep_ended(std::move(ended_jobs));
  pending.queue.reset();
  lock.unlock();
  wait_until_unique(queue);
  queue.reset();
  // Returns freed memory to the system. Without this call the allocator would keep it in the
  // arena of the inference thread, which has exited.
  malloc_trim(0);
  lock.lock();
  const std::string id = pending.id;
  unloading_.pop_front();
  const Slot* slot = slot_of(id);
  if (!was_loaded || slot == nullptr || !options_.on_change) return;
  const ModelEntry entry = entry_of(id, *slot);
  lock.unlock();
  options_.on_change(entry);
  lock.lock();
}

void ModelManager::load_one(std::unique_lock<std::shared_mutex>& lock, const std::string& id) {
  const std::uint64_t sequence = slots_.at(id).load_sequence;
  ModelOptions model = options_.model;
  model.path = slots_.at(id).found.path;
  if (slots_.at(id).memory) model.memory = *slots_.at(id).memory;
  if (!options_.data_dir.empty()) model.pattern_folder = options_.data_dir / kPatternFolder;
  // The access pattern is that of the model of --model.
  if (real_path(model.path) != real_path(options_.model.path)) model.access_pattern.clear();
  lock.unlock();
  QueuePtr queue;
  try {
    queue = std::make_shared<GenerationQueue>(
        GenerationQueue::Options{
            .name = id,
            .model = model,
            .context = options_.context,
            .data_dir = options_.data_dir,
            .self_check_model = options_.self_check_model,
            .sandbox = options_.sandbox,
            .check_model = options_.check_models,
            .checked_models = options_.checked_models,
            .crash_marker = options_.crash_marker,
            .max_queued = options_.max_queued,
            .on_load = [this, id,
                        sequence](const LoadState& state) { load_ended(id, sequence, state); }},
        listener_);
  } catch (const std::exception& thrown) {
    // The thread cannot be started.
    load_ended(id, sequence,
               {.phase = LoadPhase::Failed,
                .progress = 0,
                .error = std::format("{}: loading it failed: {}. Free memory or raise the limits "
                                     "of the server, and load it again.",
                                     model.path.string(), thrown.what()),
                .warning = {}});
    lock.lock();
    return;
  }
  lock.lock();
  Slot* slot = slot_of(id);
  if (slot != nullptr && slot->load_sequence == sequence) {
    slot->queue = std::move(queue);
    slot->model = std::move(model);
  } else {
    unloading_.push_back({.id = id, .queue = std::move(queue)});  // no longer requested
  }
}
}  // namespace tt
