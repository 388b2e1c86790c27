#include "cli/options/output_path.h"

#include <unistd.h>

#include <format>

namespace tt::cli {

namespace fs = std::filesystem;

std::optional<std::string> output_complaint(const fs::path& output, Target target,
                                            const std::vector<fs::path>& inputs, bool force) {
  if (output.empty()) return "the output has no name. Name a file";
  if (output == "-") return "this cannot go to standard output. Name a file";
  std::error_code none, failed;
  const fs::file_status there = fs::status(output, failed);
  if (there.type() == fs::file_type::none)  // a name too long, a link to itself
    return std::format("{}: {}", output.string(), failed.message());
  if (fs::is_directory(there) || !output.has_filename())
    return std::format("{} is a folder. Name a file", output.string());
  for (const fs::path& input : inputs) {
    // By device and inode.
    if (fs::equivalent(output, input, none)) {
      return std::format("{} is {} itself, which is read. Choose another name", output.string(),
                         input.string());
    }
  }
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    if (target == Target::FileOrPipe) return std::nullopt;
    return std::format("{} is no file. Choose another name", output.string());
  }
  if (fs::exists(there) && !force)
    return std::format("{} exists. Choose another name, or --force", output.string());
  const fs::path file = fs::exists(there) ? fs::canonical(output, none) : fs::absolute(output);
  const fs::path folder = file.parent_path();
  if (!fs::is_directory(folder, none))
    return std::format("the folder {} does not exist", folder.string());
  if (access(folder.c_str(), W_OK) != 0)
    return std::format("the folder {} cannot be written", folder.string());
  return std::nullopt;
}

}  // namespace tt::cli
