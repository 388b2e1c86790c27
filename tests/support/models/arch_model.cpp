#include "tests/support/models/arch_model.h"
#include "tests/support/test_paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <format>

#include "tests/support/temp_folder.h"

namespace tt::test {

std::filesystem::path arch_model(const std::string& file) {
  static const TempFolder folder;
  const std::filesystem::path path = folder.path() / (file + ".gguf");
  if (std::filesystem::exists(path)) return path;
  const std::string arch = file.substr(0, file.rfind('-'));
  const std::string out = folder.path().string();
  const std::string command =
      std::format("'{}' -a '^{}$' -o '{}' > '{}/log' 2>&1", kTestPaths.llama_archs, arch, out, out);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_TRUE(std::filesystem::exists(path)) << command;
  return path;
}

}  // namespace tt::test
