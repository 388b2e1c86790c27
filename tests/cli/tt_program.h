// Runs the program tt in a folder through a shell.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"

namespace tt {

struct Result {
  int code = 0;  // -1: ended by a signal
  std::string out, err;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// `environment`: shell text before the program, usually variable assignments.
inline Result run_tt(const test::TempFolder& folder, const std::string& arguments,
                     const std::string& environment = "") {
  const std::string command = std::format("cd {} && {} {} {} >out 2>err", folder.path().string(),
                                          environment, kTestPaths.tt, arguments);
  const int status = std::system(command.c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = contents(folder / "out"),
          .err = contents(folder / "err")};
}

// All verbs in the order of `tt --help`.
inline std::vector<std::string> verbs_of_tt(const test::TempFolder& folder) {
  const std::string help = run_tt(folder, "--help").out;
  std::vector<std::string> verbs;
  std::istringstream lines(help.substr(std::min(help.find("SUBCOMMANDS:"), help.size())));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ") && line[2] != ' ')
      verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
  EXPECT_GE(verbs.size(), 16u) << help;
  return verbs;
}

}  // namespace tt
