// The models of this server: those in a folder (--models-dir) and one at any path (--model).
// Each loaded model is a GenerationQueue with its own inference thread. At most `max_loaded`
// models are loaded; loading another unloads the one that has been idle longest. A busy model
// is never unloaded for this.
//
// A request goes to the model that it names, or to the only loaded one. The status of a
// request remains available after its model is unloaded.
//
// Any thread; no function waits for a model. A loader thread frees models and then loads, in
// that order, so that the limit holds for memory, too.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <expected>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/json/model_json.h"
#include "api/json/problem.h"
#include "server/models/metadata_checks.h"
#include "server/models/model_folder.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

class ModelManager {
 public:
  struct Options {
    std::filesystem::path folder{};  // empty: none
    // Loaded at startup; empty path: none. Its other options apply to every model.
    ModelOptions model{};
    ContextOptions context{};
    std::size_t max_loaded = 1;
    std::filesystem::path data_dir{};          // see GenerationQueue::Options
    std::filesystem::path self_check_model{};  //
    Sandbox* sandbox = nullptr;                //
    bool check_models = false;                 //
    CheckedModels* checked_models = nullptr;   //
    CrashMarker* crash_marker = nullptr;       // its models are loaded only on request
    std::size_t max_queued = 64;               // queued requests per model
    // Called when a model was loaded, failed to load, or was unloaded, and when a model was found
    // that is outside the folder or whose metadata llama.cpp refuses. Any thread; must not block.
    std::function<void(const ModelEntry&)> on_change{};
  };
  // `listener` must outlive this object.
  ModelManager(Options options, SessionListener& listener);
  ~ModelManager();  // stop()
  ModelManager(const ModelManager&) = delete;
  ModelManager& operator=(const ModelManager&) = delete;

  // Below data_dir: the order in which each model reads its weights.
  static constexpr const char* kPatternFolder = "access-patterns";

  const Options& options() const { return options_; }

  // All models, sorted by id. Scans the folder.
  std::vector<ModelEntry> models();
  std::expected<ModelEntry, Problem> model(const std::string& id);
  // The model shown as current: the most recently used loaded model, else one that is loading,
  // else the one that failed last. nullopt: none of these.
  std::optional<ModelEntry> current() const;

  // Starts loading and returns immediately. A loaded model is reloaded only if its files have
  // changed.
  std::expected<ModelEntry, Problem> load(const std::string& id);
  // Unloads the model or cancels its loading. No effect when it is not loaded; fails when it
  // is busy.
  std::expected<ModelEntry, Problem> unload(const std::string& id);

  // The memory budget of a loaded model. set_memory() reloads a model whose weights were repacked
  // at load if the new options need them mapped; it fails if the model is busy then. The options
  // also apply when the model is loaded again. While it loads, nothing is known yet.
  std::expected<MemoryState, Problem> memory(const std::string& id) const;
  std::expected<MemoryMap, Problem> memory_map(const std::string& id) const;
  std::expected<MemoryState, Problem> set_memory(const std::string& id,
                                                 const MemoryOptions& options);

  // Keeps the text of an access_pattern.json for the next load of the model, and uses it at once if
  // the model is loaded and has not learned the order of its reads.
  std::expected<MemoryState, Problem> set_access_pattern(const std::string& id,
                                                         std::string_view text);

  // Reads the GGUF metadata from the files, without loading the model.
  std::expected<GgufIndex, Problem> structure(const std::string& id);

  // `id` empty: the only loaded model.
  std::expected<JobStatus, Problem> submit(const std::string& id, GenerationRequest request);
  std::optional<JobStatus> status(const std::string& session) const;
  // Newest first: all queued and running requests, and the last kMaxEnded
  // that ended.
  std::vector<JobStatus> statuses() const;
  bool cancel(const std::string& session);  // false: unknown request
  std::optional<StepInFlight> in_flight(const std::string& session, std::uint32_t from_op) const;
  // As GenerationQueue::debugger().
  std::shared_ptr<Debugger> debugger(const std::string& session) const;

  // Cancels all requests, finishes the files of running sessions, frees the models.
  // Idempotent.
  void stop();

  static constexpr std::size_t kMaxEnded = 1000;

 private:
  using QueuePtr = std::shared_ptr<GenerationQueue>;
  struct Slot {
    FoundModel found;
    bool listed = true;                   // in the folder, or set by --model
    std::uint64_t load_sequence = 0;      // sequence number of the load request; 0: none
    QueuePtr queue;                       // null until the loader thread has created it
    ModelOptions model{};                 // that the queue was created with
    std::optional<MemoryOptions> memory;  // set at run time
    std::string error;                    // of the last failed load
    bool is_refused = false;              // that load failed because of the file
    std::uint64_t failed = 0;             // sequence number of that load request
  };
  struct PendingUnload {
    std::string id;
    QueuePtr queue;  // null: stopped, memory is being freed
  };

  void run();
  void unload_one(std::unique_lock<std::shared_mutex>& lock);
  void load_one(std::unique_lock<std::shared_mutex>& lock, const std::string& id);
  void load_ended(const std::string& id, std::uint64_t sequence, const LoadState& state);
  void rescan();
  void check_metadata();  // requires mutex_
  bool is_idle() const;   // no model loads or runs
  void metadata_refused(const std::filesystem::path& model);
  std::string id_for(const FoundModel& found);  // requires mutex_
  static std::filesystem::path real_path(const std::filesystem::path& path);
  std::string crash_reason(const std::string& id, const Slot& slot) const;
  static bool is_refused(const Slot& slot);
  static Problem failed(std::string detail, bool is_refused);
  static Problem busy(const std::string& id);
  static Problem no_such_model(const std::string& id);

  // These require mutex_.
  Slot* slot_of(const std::string& id);
  std::optional<std::string> next_to_load() const;
  bool is_unloading(const std::string& id) const;
  void request_load(Slot& slot);
  void release(const std::string& id, Slot& slot);
  std::expected<void, Problem> evict_idle();
  ModelEntry entry_of(const std::string& id, const Slot& slot) const;
  std::expected<QueuePtr, Problem> queue_for(const std::string& id);
  std::expected<QueuePtr, Problem> loaded_queue(const std::string& id) const;
  std::string known_ids() const;
  // Unloads the model of the queue, unless it is busy. Takes mutex_ itself.
  void unload_changed(const QueuePtr& queue, const std::string& reason);
  std::vector<QueuePtr> queues() const;
  void keep_ended(std::vector<JobStatus> ended_jobs);
  const JobStatus* ended(const std::string& session) const;  // null: not found

  const Options options_;
  SessionListener& listener_;

  std::mutex scan_mutex_;  // locked before mutex_
  ModelFolder folder_;
  MetadataChecks metadata_checks_;  // never calls while it holds its own lock

  // Shared by those that only read: /health does not wait for a slow list of the models.
  mutable std::shared_mutex mutex_;
  std::condition_variable_any wake_;
  std::map<std::string, Slot> slots_;
  std::map<std::filesystem::path, std::string> ids_;  // of every path ever seen; never removed
  std::list<PendingUnload> unloading_;
  std::vector<JobStatus> ended_;  // of unloaded models, oldest first
  std::uint64_t last_sequence_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tt
