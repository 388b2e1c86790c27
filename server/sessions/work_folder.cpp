#include "server/sessions/work_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "server/sessions/move_file.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

constexpr const char* kName = ".work";

// Locks a folder and returns its descriptor. Returns -1 and sets errno when it is locked by
// another process or on error.
int lock_folder(const fs::path& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return -1;
}

template <class Each>
void for_each_in(const fs::path& folder, Each each) {
  std::error_code failed;
  if (fs::symlink_status(folder, failed).type() != fs::file_type::directory) return;
  for (fs::directory_iterator file(folder, failed), end; !failed && file != end;
       file.increment(failed)) {
    each(*file);
  }
}

}  // namespace

std::expected<WorkFolder, TraceError> WorkFolder::make(const fs::path& data_folder) {
  const fs::path parent = data_folder / kName;
  std::error_code failed;
  fs::create_directory(parent, failed);
  if (!failed && fs::symlink_status(parent, failed).type() != fs::file_type::directory)
    failed = std::make_error_code(std::errc::not_a_directory);
  if (failed) return std::unexpected(file_error(parent, failed));
  std::string name = (parent / "XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    return std::unexpected(file_error(parent, {errno, std::generic_category()}));
  const int lock = lock_folder(name);
  if (lock < 0) return std::unexpected(file_error(name, {errno, std::generic_category()}));
  return WorkFolder(std::move(name), lock);
}

WorkFolder::WorkFolder(WorkFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

void WorkFolder::remove_abandoned(const fs::path& data_folder) {
  for_each_in(data_folder / kName, [](const fs::directory_entry& folder) {
    if (const int lock = lock_folder(folder.path()); lock >= 0) {
      std::error_code ignored;
      fs::remove_all(folder.path(), ignored);
      close(lock);
    }
  });
}

}  // namespace tt
