// Runs the program tt in a folder, by a shell, as a person would.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/format/temp_folder.h"
#include "tests/places.h"

namespace tt {

struct Result {
  int code = 0;  // -1: a signal ended it
  std::string out, err;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Result run_tt(const testing::TempFolder& folder, const std::string& arguments) {
  const std::string command =
      std::format("cd {} && {} {} >out 2>err", folder.path().string(), kPlaces.tt, arguments);
  const int status = std::system(command.c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = contents(folder / "out"),
          .err = contents(folder / "err")};
}

}  // namespace tt
