// Runs arguments_of() on a command line as main() receives it.
#pragma once

#include <string>
#include <vector>

#include "program/command_line.h"

namespace tt {

inline std::vector<std::string> expand_arguments(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tt");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  return arguments_of(static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace tt
