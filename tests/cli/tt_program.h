// Runs the program tt in a folder through a shell.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

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

// What the command prints with --json; discarded if it is not JSON.
inline nlohmann::json run_json(const test::TempFolder& folder, const std::string& arguments) {
  const Result result = run_tt(folder, arguments + " --json");
  EXPECT_EQ(result.code, 0) << result.err;
  return nlohmann::json::parse(result.out, nullptr, false);
}

}  // namespace tt
