// What cannot be written or read, also by root.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tt::test {

// Root reads and writes in spite of permissions. Takes that power from this thread for good, and
// from the threads and programs that it starts. False: it cannot be given up.
bool obey_permissions();

// As long as this lives, nothing in `folder` can be written by this thread and by what it starts.
// The folder is mounted read-only over itself (EROFS) where this process may mount
// (own_mounts.h); else it and what is in it lose the permission to be written, and this thread
// obeys permissions from then on (EACCES).
class ReadOnlyFolder {
 public:
  explicit ReadOnlyFolder(const std::filesystem::path& folder);
  ~ReadOnlyFolder();
  ReadOnlyFolder(const ReadOnlyFolder&) = delete;
  ReadOnlyFolder& operator=(const ReadOnlyFolder&) = delete;

  // Why it can be written still; empty: it cannot.
  const std::string& problem() const { return problem_; }

 private:
  std::filesystem::path folder_;
  bool mounted_ = false;
  std::vector<std::pair<std::filesystem::path, std::filesystem::perms>> before_;
  std::string problem_;
};

}  // namespace tt::test
