// Validation of the output path (-o) of a command, before it starts any work.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tt::cli {

// FileOrPipe: also allows pipes, terminals and devices such as /dev/null.
enum class Target : bool { File, FileOrPipe };

// Returns an error message if `output` must not be written; nullopt: it can be written.
// Without `force`, existing files are not allowed. One of the `inputs` is never allowed, also
// not through a link or another path. "-" is not allowed: commands that can write to standard
// output check for it before the call.
std::optional<std::string> output_path_error(const std::filesystem::path& output, Target target,
                                             const std::vector<std::filesystem::path>& inputs,
                                             bool force);

}  // namespace tt::cli
