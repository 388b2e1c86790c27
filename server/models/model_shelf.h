// The models of this server, those that lie in a folder (--models-dir) and one that
// may lie anywhere (--model), and which of them are loaded: each loaded one is a
// GenerationQueue with its own inference thread, and at most `most_loaded` are
// loaded at a time. Loading another unloads the one that has been idle longest;
// a model that works is never interrupted by that.
//
// Requests go to the model that they name, or to the only loaded one. What was
// said about a request stays answerable after its model is gone.
//
// Every function may be called from any thread, none waits for a model: a thread
// of the shelf's own frees and loads, in that order, so that two models are in
// memory only where two may be.
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
#include <string>
#include <thread>
#include <vector>

#include "api/json/model_json.h"
#include "api/json/problem.h"
#include "server/models/model_folder.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

class ModelShelf {
 public:
  struct Options {
    std::filesystem::path folder{};  // empty: none
    // Loaded from the start; without a path nothing is. Every model is loaded as this one.
    ModelOptions model{};
    ContextOptions context{};
    std::size_t most_loaded = 1;
    std::filesystem::path data_dir{};          // as of GenerationQueue::Options
    std::filesystem::path checker{};           //
    std::filesystem::path self_check_model{};  //
    std::size_t max_queued = 64;               // requests that wait, per model
    // A model was loaded, failed to load, or was unloaded. Any thread; must not block.
    std::function<void(const ModelEntry&)> on_change{};
  };
  // `listener` outlives the shelf.
  ModelShelf(Options options, SessionListener& listener);
  ~ModelShelf();  // stop()
  ModelShelf(const ModelShelf&) = delete;
  ModelShelf& operator=(const ModelShelf&) = delete;

  const Options& options() const { return options_; }

  // All, by id. Looks into the folder.
  std::vector<ModelEntry> models();
  std::expected<ModelEntry, Problem> model(const std::string& id);
  // What the server is about: the loaded model that worked last, else one that
  // loads, else the one that failed last. Empty: none of them.
  std::optional<ModelEntry> current() const;

  // Also: it is loaded already. A loaded one whose files have changed is loaded anew.
  std::expected<ModelEntry, Problem> load(const std::string& id);
  // Also: it is not loaded. Loading is cancelled; a busy model is left alone.
  std::expected<ModelEntry, Problem> unload(const std::string& id);

  // What its files say, read now and without loading it.
  std::expected<GgufIndex, Problem> structure(const std::string& id);

  // `id` empty: the loaded one.
  std::expected<JobStatus, Problem> submit(const std::string& id, GenerationRequest request);
  std::optional<JobStatus> status(const std::string& session) const;
  // Newest first, without their text: all that wait or run, and kRemembered that ended.
  std::vector<JobStatus> statuses() const;
  bool cancel(const std::string& session);  // false: no such request
  std::optional<StepInFlight> in_flight(const std::string& session, std::uint32_t from_op) const;

  // Cancels everything, finishes the running sessions' files, frees the models. Idempotent.
  void stop();

  static constexpr std::size_t kRemembered = 1000;

 private:
  using QueuePtr = std::shared_ptr<GenerationQueue>;
  struct Slot {
    FoundModel found;
    bool listed = true;        // still in the folder, or the --model
    std::uint64_t wanted = 0;  // number of the wish to have it loaded; 0: none
    QueuePtr queue;            // null while the shelf's thread has not come to it
    std::string error;         // why the last load failed
    std::uint64_t failed = 0;  // number of that wish
  };
  struct Leaving {
    std::string id;
    QueuePtr queue;  // null: stopped, its memory is being freed
  };

  void run();
  void free_one(std::unique_lock<std::mutex>& lock);
  void load_one(std::unique_lock<std::mutex>& lock, const std::string& id);
  void load_ended(const std::string& id, std::uint64_t wish, const LoadState& state);
  void rescan();
  std::string id_for(const FoundModel& found);  // the mutex is held
  static std::filesystem::path real_path(const std::filesystem::path& path);
  static std::uint64_t failed_wish(const Slot& slot);
  static Problem busy(const std::string& id);
  static Problem no_such_model(const std::string& id);

  // The mutex is held in all of these.
  Slot* slot_of(const std::string& id);
  std::optional<std::string> next_wanted() const;
  bool is_leaving(const std::string& id) const;
  void want(Slot& slot);
  void let_go(const std::string& id, Slot& slot);
  std::expected<void, Problem> make_room();
  ModelEntry entry_of(const std::string& id, const Slot& slot) const;
  std::expected<QueuePtr, Problem> queue_for(const std::string& id);
  std::string known_ids() const;
  std::vector<QueuePtr> queues() const;
  void remember(std::vector<JobStatus> said);
  const JobStatus* ended(const std::string& session) const;  // null: no such

  const Options options_;
  SessionListener& listener_;

  std::mutex scanning_;  // before mutex_
  ModelFolder folder_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, Slot> slots_;
  std::map<std::filesystem::path, std::string> ids_;  // of every path ever seen: they stay
  std::list<Leaving> leaving_;
  std::vector<JobStatus> ended_;  // of models that were unloaded, oldest first
  std::uint64_t wishes_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tt
