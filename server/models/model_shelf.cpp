#include "server/models/model_shelf.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
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
std::string as_id(const std::string& stem) {
  constexpr std::size_t kLongest = 190;  // leaves room for a suffix
  std::string id = stem.substr(0, kLongest);
  for (char& c : id) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
    if (!fits) c = '_';
  }
  if (id.empty() || id.front() == '.') id.insert(0, 1, '_');
  return id;
}

// No new references can be created; existing ones are released when their calls return.
void wait_until_only_one_holds(const std::shared_ptr<GenerationQueue>& queue) {
  while (queue.use_count() > 1) std::this_thread::sleep_for(1ms);
}

}  // namespace

ModelShelf::ModelShelf(Options options, SessionListener& listener)
    : options_(std::move(options)), listener_(listener), folder_(options_.folder) {
  rescan();
  if (!options_.model.path.empty()) {
    const std::string& id = ids_.at(real_path(options_.model.path));
    Slot& slot = slots_.at(id);
    if (slot.found.error.empty()) {
      want(slot);
    } else {
      slot.failed = ++wishes_;
      if (options_.on_change) options_.on_change(entry_of(id, slot));
    }
  }
  thread_ = std::thread([this] { run(); });  // single-threaded until here
}

ModelShelf::~ModelShelf() { stop(); }

void ModelShelf::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    for (auto& [id, slot] : slots_) let_go(id, slot);
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// ---------------------------------------------------------------- scanning

std::filesystem::path ModelShelf::real_path(const std::filesystem::path& path) {
  std::error_code failed;
  auto real = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : real;
}

// Ids are permanent: a model that reappears has the same id.
std::string ModelShelf::id_for(const FoundModel& found) {
  const auto [known, fresh] = ids_.try_emplace(real_path(found.path));
  if (!fresh) return known->second;
  const auto taken = [&](const std::string& id) {
    return std::ranges::any_of(ids_, [&](const auto& entry) { return entry.second == id; });
  };
  std::string id = as_id(found.stem);
  for (int number = 2; taken(id); ++number) id = std::format("{}-{}", as_id(found.stem), number);
  known->second = id;
  return id;
}

void ModelShelf::rescan() {
  const std::scoped_lock scanning(scanning_);
  std::vector<FoundModel> found;
  if (!options_.model.path.empty()) found.push_back(look_at_model(options_.model.path));
  std::ranges::move(folder_.scan(), std::back_inserter(found));

  const std::scoped_lock lock(mutex_);
  for (auto& [id, slot] : slots_) slot.listed = false;
  for (FoundModel& model : found) {
    Slot& slot = slots_[id_for(model)];
    slot.listed = true;
    if (slot.found.files != model.files) slot.error.clear();  // changed: retry
    slot.found = std::move(model);
  }
  std::erase_if(slots_, [&](const auto& entry) {
    const auto& [id, slot] = entry;
    return !slot.listed && slot.wanted == 0 && !is_leaving(id);
  });
}

ModelShelf::Slot* ModelShelf::slot_of(const std::string& id) {
  const auto found = slots_.find(id);
  return found == slots_.end() ? nullptr : &found->second;
}

// 0: never requested. A load that has just failed may not be recorded in `failed` yet.
std::uint64_t ModelShelf::failed_wish(const Slot& slot) {
  return slot.wanted != 0 ? slot.wanted : slot.failed;
}

bool ModelShelf::is_leaving(const std::string& id) const {
  return std::ranges::contains(leaving_, id, &Leaving::id);
}

ModelEntry ModelShelf::entry_of(const std::string& id, const Slot& slot) const {
  ModelEntry entry{.id = id,
                   .name = slot.found.name,
                   .path = slot.found.path.string(),
                   .bytes = slot.found.bytes(),
                   .files = slot.found.files.size()};
  const std::string& error = slot.error.empty() ? slot.found.error : slot.error;
  if (slot.wanted != 0) {
    entry.state = ModelState::Loading;
    if (!slot.queue) return entry;
    const LoadState load = slot.queue->load_state();
    entry.load_progress = load.progress;
    entry.error = load.error;
    entry.warning = load.warning;
    if (load.phase == LoadPhase::Failed) entry.state = ModelState::Failed;
    if (load.phase == LoadPhase::Ready) {
      entry.state = ModelState::Loaded;
      entry.facts = slot.queue->facts();
      if (const auto changed = slot.queue->changed()) entry.warning = *changed;
    }
  } else if (!error.empty()) {
    entry.state = ModelState::Failed;
    entry.error = error;
  } else if (is_leaving(id)) {
    entry.state = ModelState::Unloading;
  }
  return entry;
}

std::vector<ModelEntry> ModelShelf::models() {
  rescan();
  const std::scoped_lock lock(mutex_);
  std::vector<ModelEntry> out;
  for (const auto& [id, slot] : slots_) out.push_back(entry_of(id, slot));
  return out;
}

std::expected<ModelEntry, Problem> ModelShelf::model(const std::string& id) {
  {
    const std::scoped_lock lock(mutex_);
    if (const Slot* slot = slot_of(id)) return entry_of(id, *slot);
  }
  rescan();  // it may be new
  const std::scoped_lock lock(mutex_);
  if (const Slot* slot = slot_of(id)) return entry_of(id, *slot);
  return std::unexpected(no_such_model(id));
}

std::expected<GgufIndex, Problem> ModelShelf::structure(const std::string& id) {
  rescan();
  std::filesystem::path path;
  {
    const std::scoped_lock lock(mutex_);
    const Slot* slot = slot_of(id);
    if (slot == nullptr) return std::unexpected(no_such_model(id));
    if (slot->found.leads_out)
      return std::unexpected(Problem{Fault::ModelDamaged, slot->found.error});
    path = slot->found.path;
  }
  auto index = GgufIndex::open(path);
  if (!index) return std::unexpected(Problem{Fault::ModelDamaged, index.error()});
  return *std::move(index);
}

std::optional<ModelEntry> ModelShelf::current() const {
  const std::scoped_lock lock(mutex_);
  // Priority: loaded, then loading, then failed; ties by time.
  using Rank = std::pair<int, std::int64_t>;
  std::optional<std::pair<Rank, ModelEntry>> best;
  for (const auto& [id, slot] : slots_) {
    ModelEntry entry = entry_of(id, slot);
    Rank rank{0, static_cast<std::int64_t>(slot.wanted)};
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
        if (failed_wish(slot) == 0) continue;  // it was never requested
        rank = {1, static_cast<std::int64_t>(failed_wish(slot))};
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

void ModelShelf::want(Slot& slot) {
  slot.wanted = ++wishes_;
  slot.error.clear();
  slot.failed = 0;
  wake_.notify_all();
}

void ModelShelf::let_go(const std::string& id, Slot& slot) {
  slot.wanted = 0;
  if (slot.queue) leaving_.push_back({.id = id, .queue = std::move(slot.queue)});
  slot.queue.reset();
  wake_.notify_all();
}

std::expected<void, Problem> ModelShelf::make_room() {
  for (;;) {
    std::size_t loaded = 0;
    std::pair<const std::string, Slot>* longest = nullptr;
    std::chrono::steady_clock::time_point since;
    for (auto& entry : slots_) {
      const Slot& slot = entry.second;
      if (slot.wanted == 0) continue;
      ++loaded;
      const auto idle = slot.queue ? slot.queue->idle_since() : std::nullopt;
      if (!idle || (longest != nullptr && since <= *idle)) continue;
      longest = &entry;
      since = *idle;
    }
    if (loaded < options_.most_loaded) return {};
    if (longest == nullptr) {
      return std::unexpected(Problem{
          Fault::ModelBusy,
          std::format("{} of at most {} models (--models-max) are loaded, and none is idle. Wait, "
                      "cancel their requests, or unload a model that is loading.",
                      loaded, options_.most_loaded)});
    }
    // retire() fails when the queue has received a request meanwhile.
    if (longest->second.queue->retire()) let_go(longest->first, longest->second);
  }
}

std::expected<ModelEntry, Problem> ModelShelf::load(const std::string& id) {
  rescan();
  const std::scoped_lock lock(mutex_);
  Slot* slot = slot_of(id);
  if (slot == nullptr) return std::unexpected(no_such_model(id));
  if (stopping_) return std::unexpected(Problem{Fault::Stopping, "The server is stopping."});
  const bool is_old = slot->queue && slot->queue->changed();
  if (slot->wanted != 0 && !is_old) return entry_of(id, *slot);
  if (!slot->listed || !slot->found.error.empty()) {
    return std::unexpected(
        Problem{Fault::ModelFailed, slot->listed
                                        ? slot->found.error
                                        : slot->found.path.string() + " does not exist any more."});
  }
  if (is_old) {
    if (!slot->queue->retire()) return std::unexpected(busy(id));
    let_go(id, *slot);
  }
  if (auto room = make_room(); !room) return std::unexpected(room.error());
  want(*slot);
  return entry_of(id, *slot);
}

std::expected<ModelEntry, Problem> ModelShelf::unload(const std::string& id) {
  const std::scoped_lock lock(mutex_);
  Slot* slot = slot_of(id);
  if (slot == nullptr) return std::unexpected(no_such_model(id));
  if (slot->wanted != 0) {
    if (slot->queue && !slot->queue->retire()) return std::unexpected(busy(id));
    let_go(id, *slot);
  }
  return entry_of(id, *slot);
}

Problem ModelShelf::no_such_model(const std::string& id) {
  return {Fault::NotFound,
          std::format("Model \"{}\" not found. GET /api/v1/models lists the models.", id)};
}

Problem ModelShelf::busy(const std::string& id) {
  return {Fault::ModelBusy,
          std::format("{} is running or has queued requests. Wait, or cancel them with "
                      "DELETE /api/v1/generate/ID.",
                      id)};
}

// Runs on the inference thread of the queue created for load request `wish`.
void ModelShelf::load_ended(const std::string& id, std::uint64_t wish, const LoadState& state) {
  ModelEntry entry;
  {
    const std::scoped_lock lock(mutex_);
    Slot* slot = slot_of(id);
    if (slot == nullptr || slot->wanted != wish) return;  // released meanwhile
    if (state.phase == LoadPhase::Failed) {
      slot->error = state.error;
      slot->failed = wish;
      let_go(id, *slot);
    }
    entry = entry_of(id, *slot);
  }
  if (options_.on_change) options_.on_change(entry);
}

// ---------------------------------------------------------------- loader thread

void ModelShelf::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !leaving_.empty() || next_wanted(); });
    if (!leaving_.empty()) {
      free_one(lock);
    } else if (stopping_) {
      return;
    } else if (const auto id = next_wanted()) {
      load_one(lock, *id);
    }
  }
}

std::optional<std::string> ModelShelf::next_wanted() const {
  std::optional<std::string> next;
  std::uint64_t first = UINT64_MAX;
  for (const auto& [id, slot] : slots_) {
    if (slot.wanted == 0 || slot.queue || slot.wanted > first) continue;
    next = id;
    first = slot.wanted;
  }
  return next;
}

void ModelShelf::free_one(std::unique_lock<std::mutex>& lock) {
  Leaving& leaving = leaving_.front();  // only this thread removes elements
  QueuePtr queue = leaving.queue;
  lock.unlock();
  const bool was_loaded = queue->load_state().phase == LoadPhase::Ready;
  queue->stop();
  std::vector<JobStatus> said = queue->statuses();
  lock.lock();
  remember(std::move(said));
  leaving.queue.reset();
  lock.unlock();
  wait_until_only_one_holds(queue);
  queue.reset();
  // Returns freed memory to the system. Without this call the allocator would keep it in the
  // arena of the inference thread, which has exited.
  malloc_trim(0);
  lock.lock();
  const std::string id = leaving.id;
  leaving_.pop_front();
  const Slot* slot = slot_of(id);
  if (!was_loaded || slot == nullptr || !options_.on_change) return;
  const ModelEntry entry = entry_of(id, *slot);
  lock.unlock();
  options_.on_change(entry);
  lock.lock();
}

void ModelShelf::load_one(std::unique_lock<std::mutex>& lock, const std::string& id) {
  const std::uint64_t wish = slots_.at(id).wanted;
  ModelOptions model = options_.model;
  model.path = slots_.at(id).found.path;
  lock.unlock();
  auto queue = std::make_shared<GenerationQueue>(
      GenerationQueue::Options{
          .name = id,
          .model = std::move(model),
          .context = options_.context,
          .data_dir = options_.data_dir,
          .checker = options_.checker,
          .self_check_model = options_.self_check_model,
          .max_queued = options_.max_queued,
          .on_load = [this, id, wish](const LoadState& state) { load_ended(id, wish, state); }},
      listener_);
  lock.lock();
  Slot* slot = slot_of(id);
  if (slot != nullptr && slot->wanted == wish) {
    slot->queue = std::move(queue);
  } else {
    leaving_.push_back({.id = id, .queue = std::move(queue)});  // no longer requested
  }
}
}  // namespace tt
