// Whether llama.cpp accepts the metadata of models that nobody has loaded: keys, tokenizer, names
// and shapes of tensors (metadata_error() in tracer/engine/model_check.h). GgufIndex cannot know
// this, and the check takes 50 to 300 ms: it runs in the background, one model at a time, at the
// lowest priority.
//
// Any thread; no function waits for a check.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tracer/gguf/file_stamp.h"
#include "tracer/sandbox/sandbox.h"

namespace tt {

class MetadataChecks {
 public:
  struct Model {
    std::filesystem::path path;    // of the first file
    std::vector<FileStamp> files;  // of all files: a model that has changed is checked again
  };
  struct Options {
    Sandbox* sandbox = nullptr;  // null: nothing is checked
    // Returns false while a check would disturb a model that loads or runs: then the check waits,
    // or is stopped and made again. On the thread of the checks.
    std::function<bool()> may_run;
    // A model was refused. On the thread of the checks.
    std::function<void(const std::filesystem::path& model)> on_refused;
  };

  explicit MetadataChecks(Options options);
  ~MetadataChecks();  // stop()
  MetadataChecks(const MetadataChecks&) = delete;
  MetadataChecks& operator=(const MetadataChecks&) = delete;

  // The models to check; results of other models are forgotten.
  void set_models(std::vector<Model> models);
  // Why llama.cpp refuses the model; empty: it does not, or the check has not ended.
  std::string error_of(const std::filesystem::path& model) const;
  void stop();  // ends a running check; idempotent

 private:
  struct Entry {
    std::vector<FileStamp> files;
    bool is_checked = false;
    std::string error{};
  };
  void run();
  void check_one(std::unique_lock<std::mutex>& lock, const std::filesystem::path& model);
  bool may_run() const;

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::filesystem::path, Entry> models_;
  bool stopping_ = false;
  std::thread thread_;  // started by the first models
};

}  // namespace tt
