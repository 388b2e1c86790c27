// Where a command is to write, as -o names it: looked at before any work.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tt::cli {

// FileOrPipe: what is no file (a pipe, a terminal, /dev/null) is written as it is.
enum class Target : bool { File, FileOrPipe };

// What is in the way of writing there; none. It is never one of `inputs`, by whatever
// name or link it is meant, not even with `force`, without which no file that exists is
// replaced. "-" names no file: a command that can write to standard output does not ask.
std::optional<std::string> output_complaint(const std::filesystem::path& output, Target target,
                                            const std::vector<std::filesystem::path>& inputs,
                                            bool force);

}  // namespace tt::cli
