// Folders that cannot be written, and files that cannot be read, also by root.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tt::test {

// Drops root's capability to bypass file permissions, permanently, for this thread and for the
// threads and programs that it starts. Returns false if it cannot be dropped.
bool drop_permission_override();

// While this object lives, this thread and what it starts cannot write in `folder`. The folder
// is mounted read-only over itself (EROFS) if this process may mount (unshare_mounts.h). Otherwise
// the write permissions of the folder and its content are removed, and this thread obeys
// permissions from then on (EACCES).
class ReadOnlyFolder {
 public:
  explicit ReadOnlyFolder(const std::filesystem::path& folder);
  ~ReadOnlyFolder();
  ReadOnlyFolder(const ReadOnlyFolder&) = delete;
  ReadOnlyFolder& operator=(const ReadOnlyFolder&) = delete;

  // Why the folder is still writable; empty: it is not.
  const std::string& problem() const { return problem_; }

 private:
  std::filesystem::path folder_;
  bool mounted_ = false;
  std::vector<std::pair<std::filesystem::path, std::filesystem::perms>> before_;
  std::string problem_;
};

}  // namespace tt::test
