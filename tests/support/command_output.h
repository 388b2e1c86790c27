// Runs another program, which must exit with 0, and returns its stdout and stderr.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace tt::test {

inline std::string command_output(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "cannot be started";
  std::string output;
  for (int c = 0; (c = fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << output;
  return output;
}

}  // namespace tt::test
