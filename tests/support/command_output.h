// Runs another program and returns its stdout and stderr.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace tt::test {

struct CommandResult {
  int status = -1;  // as of waitpid(2); 0: it exited with 0
  std::string output;
};

inline CommandResult run_command(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {.status = -1, .output = "cannot be started"};
  CommandResult result;
  for (int c = 0; (c = fgetc(pipe)) != EOF;) result.output += static_cast<char>(c);
  result.status = pclose(pipe);
  return result;
}

// It must exit with 0.
inline std::string command_output(const std::string& command) {
  const CommandResult result = run_command(command);
  EXPECT_EQ(result.status, 0) << command << "\n" << result.output;
  return result.output;
}

}  // namespace tt::test
