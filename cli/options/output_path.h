// The output path (-o) of a command: one rule for all verbs, applied before any work starts.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <vector>

namespace tt::cli {

// FileOrPipe: also allows pipes, terminals and devices such as /dev/null. Folder: to be created,
// or to be filled.
enum class Target : char { File, FileOrPipe, Folder };

// Returns the path to write, or an error message if `output` must not be written.
// - If `output` is a link, its target is written, or created if it does not exist. The returned
// path
//   contains no links, so the link is kept.
// - Without `force`, existing files are not allowed; a session that is being recorded never is.
// - One of the `inputs` is never allowed, also not through a link or another path: nor the journal
//   files of an input, nor a file in an input that is a folder.
// - "-" is not allowed: commands that can write to standard output check for it before the call.
std::expected<std::filesystem::path, std::string> output_path(
    const std::filesystem::path& output, Target target,
    const std::vector<std::filesystem::path>& inputs, bool force);

// The files run-01.ttrace... of a set of `runs` sessions in `folder`, which is created. Errors are
// those of output_path().
std::expected<std::vector<std::filesystem::path>, std::string> run_files(
    const std::filesystem::path& folder, std::uint32_t runs,
    const std::vector<std::filesystem::path>& inputs, bool force);

// Of a model, with every part of a split one. Only `model` if it cannot be read.
std::vector<std::filesystem::path> model_files(const std::filesystem::path& model);

// Moves the finished session `from` to `to`, a path that output_path() returned. The journal files
// of a session that is replaced are removed: SQLite would apply them to the new one.
std::error_code replace_session(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace tt::cli
