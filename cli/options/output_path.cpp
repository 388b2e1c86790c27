#include "cli/options/output_path.h"

#include <unistd.h>

#include <format>

namespace tt::cli {

namespace fs = std::filesystem;

std::optional<std::string> output_path_error(const fs::path& output, Target target,
                                             const std::vector<fs::path>& inputs, bool force) {
  if (output.empty()) return "the output path is empty. Specify a file.";
  if (output == "-") return "this output cannot go to standard output. Specify a file.";
  std::error_code none, failed;
  const fs::file_status status = fs::status(output, failed);
  if (status.type() == fs::file_type::none)  // for example: name too long, symlink loop
    return std::format("{}: {}", output.string(), failed.message());
  if (fs::is_directory(status) || !output.has_filename())
    return std::format("{} is a folder. Specify a file.", output.string());
  for (const fs::path& input : inputs) {
    // Compares device and inode.
    if (fs::equivalent(output, input, none)) {
      return std::format("{} is the same file as the input {}. Choose another name.",
                         output.string(), input.string());
    }
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (target == Target::FileOrPipe) return std::nullopt;
    return std::format("{} is not a regular file. Choose another name.", output.string());
  }
  if (fs::exists(status) && !force)
    return std::format("{} already exists. Choose another name or use --force.", output.string());
  const fs::path file = fs::exists(status) ? fs::canonical(output, none) : fs::absolute(output);
  const fs::path folder = file.parent_path();
  if (!fs::is_directory(folder, none))
    return std::format("the folder {} does not exist. Create it or choose another.",
                       folder.string());
  if (access(folder.c_str(), W_OK) != 0)
    return std::format("the folder {} is not writable. Choose another.", folder.string());
  return std::nullopt;
}

}  // namespace tt::cli
