// A file with the models that passed the check (model_check.h), so that an unchanged model is
// checked only once.
//
// A model is identified by path, size, times and inode of its files, the options that the check
// uses and the version of the library. Any thread; several processes may use the same file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "tracer/request/model_options.h"

namespace tt {

class CheckedModels {
 public:
  static constexpr std::size_t kMaxModels = 200;  // the latest

  // Empty: remembers nothing. A file that cannot be written is ignored.
  explicit CheckedModels(std::filesystem::path file) : file_(std::move(file)) {}

  // Take the key before the check, so that a file that changes meanwhile is checked again.
  std::string key_of(const ModelOptions& model, const ContextOptions& context) const;
  bool contains(const std::string& key) const;
  void add(const std::string& key);
  // Removes all keys of the model: it is checked again.
  void remove(const std::filesystem::path& model);

 private:
  std::vector<std::string> keys() const;
  void write(const std::vector<std::string>& keys) const;

  const std::filesystem::path file_;
  mutable std::mutex mutex_;
};

}  // namespace tt
