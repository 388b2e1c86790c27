// The generated part of docs/command-line.md: all verbs and options of tt and tt-server.
#pragma once

#include <string>

namespace tt::test {

std::string command_line_reference();

}  // namespace tt::test
