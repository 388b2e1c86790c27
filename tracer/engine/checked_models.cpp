#include "tracer/engine/checked_models.h"

#include <sys/stat.h>

#include <algorithm>
#include <format>
#include <sstream>
#include <system_error>

#include "tracer/engine/backends.h"
#include "tracer/format/file/input_file.h"
#include "tracer/format/file/replace_file.h"
#include "tracer/gguf/gguf_index.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// With the time of the last change of the inode, which programs cannot set.
std::string identity_of(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return "absent";
  return std::format("{}:{}:{}:{}:{}", found.st_dev, found.st_ino, found.st_size,
                     nanoseconds(found.st_mtim), nanoseconds(found.st_ctim));
}

// The path, without characters that separate fields and lines.
std::string name_of_model(const fs::path& model) {
  std::error_code failed;
  std::string name;
  for (const char c : fs::weakly_canonical(model, failed).string())
    name += static_cast<unsigned char>(c) <= ' ' || c == '%' ? std::format("%{:02x}", c)
                                                             : std::string(1, c);
  return name + ' ';
}

}  // namespace

std::string CheckedModels::key_of(const ModelOptions& model, const ContextOptions& context) const {
  const auto index = GgufIndex::open(model.path);
  if (file_.empty() || !index) return "";
  const LibraryVersions library = library_versions();
  std::string key = name_of_model(model.path) +
                    std::format(
                        "llama-{}-ggml-{}-{} repack:{} ctx:{} batch:{} ubatch:{} threads:{}:{} "
                        "fa:{} cache:{}:{} swa-full:{}",
                        library.llama, library.ggml, library.ggml_commit, model.repacks(),
                        context.context, context.batch, context.ubatch, context.threads,
                        context.threads_batch, static_cast<int>(context.flash_attention),
                        context.cache_type_k, context.cache_type_v, context.swa_full);
  for (const ModelFile& file : index->files()) key += " " + identity_of(file.path);
  return key;
}

std::vector<std::string> CheckedModels::keys() const {
  // Another file than ours counts as empty, and is replaced.
  constexpr std::uint64_t kMaxBytes = 4U << 20;
  const auto text = read_input(file_, kMaxBytes);
  std::vector<std::string> all;
  std::istringstream lines(text.value_or(""));
  for (std::string line; std::getline(lines, line) && all.size() < kMaxModels;) all.push_back(line);
  return all;
}

void CheckedModels::write(const std::vector<std::string>& keys) const {
  std::string text;
  for (const std::string& key : keys) text += key + '\n';
  (void)replace_file(file_, text);
}

bool CheckedModels::contains(const std::string& key) const {
  if (key.empty()) return false;
  const std::lock_guard lock(mutex_);
  return std::ranges::contains(keys(), key);
}

void CheckedModels::add(const std::string& key) {
  if (key.empty()) return;
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all = keys();
  if (std::ranges::contains(all, key)) return;
  all.push_back(key);
  if (all.size() > kMaxModels) all.erase(all.begin(), all.end() - kMaxModels);
  write(all);
}

void CheckedModels::remove(const fs::path& model) {
  if (file_.empty()) return;
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all = keys();
  const std::string name = name_of_model(model);
  if (std::erase_if(all, [&](const std::string& key) { return key.starts_with(name); }) > 0)
    write(all);
}

}  // namespace tt
