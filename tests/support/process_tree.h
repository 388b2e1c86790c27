// The descendants of a process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <format>
#include <fstream>
#include <system_error>
#include <vector>

namespace tt::test {

// The process and its descendants. Reads only these processes: looking through /proc takes a
// millisecond of a core, which tests would spend a hundred times per second.
inline std::vector<pid_t> process_tree(pid_t process) {
  std::vector<pid_t> tree{process};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    std::error_code ended;
    const std::filesystem::path tasks = std::format("/proc/{}/task", tree[i]);
    for (std::filesystem::directory_iterator task(tasks, ended), end; !ended && task != end;
         task.increment(ended)) {
      std::ifstream children(task->path() / "children");
      for (pid_t child = 0; children >> child;) tree.push_back(child);
    }
  }
  return tree;
}

}  // namespace tt::test
