#include "cli/options/output_path.h"

#include <unistd.h>

#include <algorithm>
#include <format>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "tracer/format/file/session_edit.h"
#include "tracer/gguf/gguf_index.h"

namespace tt::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kJournals[] = {"-journal", "-wal", "-shm"};

// Follows links, the last of which may lead to nothing. fs::weakly_canonical() keeps such a link.
fs::path without_links(fs::path path) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  std::error_code failed;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(path, failed); ++i) {
    const fs::path next = fs::read_symlink(path, failed);
    if (failed) break;
    path = path.parent_path() / next;  // an absolute `next` replaces all
  }
  const fs::path real = fs::weakly_canonical(path, failed);
  return failed ? path : real;
}

// The input that is the same file as `output`, by device and inode; a journal also by its name: it
// need not exist, and SQLite would use the output as one.
std::optional<fs::path> same_input(const fs::path& output, const std::vector<fs::path>& inputs) {
  std::error_code none;
  const fs::path written = without_links(fs::absolute(output, none));
  const auto is_output = [&](const fs::path& file) { return fs::equivalent(output, file, none); };
  for (const fs::path& input : inputs) {
    if (is_output(input)) return input;
    const fs::path read = without_links(fs::absolute(input, none));  // empty: no input
    for (const char* journal : kJournals)
      if (const fs::path file = fs::path(read) += journal; is_output(file) || file == written)
        return fs::path(input) += journal;
    // A run folder has no folders in it.
    if (!fs::is_directory(input, none)) continue;
    std::error_code failed;
    for (fs::directory_iterator file(input, failed), end; !failed && file != end;
         file.increment(failed))
      if (is_output(file->path())) return file->path();
  }
  return std::nullopt;
}

// The session whose journal a file of this name would be. SQLite applies it, or removes it.
std::optional<fs::path> session_of_journal(const fs::path& output) {
  std::error_code none;
  for (const std::string_view journal : kJournals) {
    const std::string name = without_links(fs::absolute(output, none)).string();
    if (!name.ends_with(journal)) continue;
    const fs::path session = name.substr(0, name.size() - journal.size());
    if (fs::is_regular_file(session, none)) return session;
  }
  return std::nullopt;
}

std::string no_folder(const fs::path& folder) {
  return std::format("the folder {} does not exist. Create it or choose another.", folder.string());
}

}  // namespace

std::expected<fs::path, std::string> output_path(const fs::path& output, Target target,
                                                 const std::vector<fs::path>& inputs, bool force) {
  const auto wrong = [&](std::string_view what) {
    return std::unexpected(std::format("{} {}", output.string(), what));
  };
  if (output.empty()) return std::unexpected("the output path is empty. Specify a file.");
  if (output == "-")
    return std::unexpected("this output cannot go to standard output. Specify a file.");
  std::error_code none, failed;
  const fs::file_status status = fs::status(output, failed);
  if (status.type() == fs::file_type::none)  // for example: name too long, symlink loop
    return std::unexpected(std::format("{}: {}", output.string(), failed.message()));
  if (target == Target::Folder) {
    if (fs::exists(status) && !fs::is_directory(status))
      return wrong("is not a folder. Choose another name.");
    if (!fs::is_symlink(output, none)) return output;  // made with the folders that it is in
    const fs::path folder = without_links(output);
    // A link was made for what it leads to, which has gone.
    if (const fs::path parent = folder.parent_path();
        !fs::exists(status) && !fs::is_directory(parent, none))
      return std::unexpected(no_folder(parent));
    return folder;
  }
  if (fs::is_directory(status) || !output.has_filename())
    return wrong("is a folder. Specify a file.");
  if (const auto input = same_input(output, inputs))
    return wrong(
        std::format("is the same file as the input {}. Choose another name.", input->string()));
  if (const auto session = session_of_journal(output))
    return wrong(std::format("would be a journal of {}. Choose another name.", session->string()));
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (target == Target::FileOrPipe) return output;
    return wrong("is not a regular file. Choose another name.");
  }
  if (fs::exists(status) && !force)
    return wrong("already exists. Choose another name or use --force.");
  const fs::path file =
      fs::exists(status) ? fs::canonical(output, none) : without_links(fs::absolute(output));
  if (fs::exists(status) && is_being_recorded(file).value_or(false))
    return wrong("is being recorded. Choose another name or wait until it has ended.");
  const fs::path folder = file.parent_path();
  if (!fs::is_directory(folder, none)) return std::unexpected(no_folder(folder));
  if (access(folder.c_str(), W_OK) != 0)
    return std::unexpected(
        std::format("the folder {} is not writable. Choose another.", folder.string()));
  return file;
}

std::expected<std::vector<fs::path>, std::string> run_files(const fs::path& folder,
                                                            std::uint32_t runs,
                                                            const std::vector<fs::path>& inputs,
                                                            bool force) {
  const auto target = output_path(folder, Target::Folder, inputs, true);
  if (!target) return std::unexpected(target.error());
  std::error_code failed;
  fs::create_directories(*target, failed);
  if (failed) return std::unexpected(std::format("{}: {}", target->string(), failed.message()));
  const std::size_t digits = std::max(std::to_string(runs).size(), std::size_t{2});
  std::vector<fs::path> files;
  for (std::uint32_t i = 1; i <= runs; ++i) {
    auto file = output_path(*target / std::format("run-{:0{}}.ttrace", i, digits), Target::File,
                            inputs, force);
    if (!file) return std::unexpected(file.error());
    files.push_back(*std::move(file));
  }
  return files;
}

std::vector<fs::path> model_files(const fs::path& model) {
  std::vector<fs::path> files = {model};
  if (const auto index = GgufIndex::open(model))
    for (const ModelFile& part : index->files()) files.emplace_back(part.path);
  return files;
}

std::error_code replace_session(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  for (const char* journal : kJournals) fs::remove(fs::path(to) += journal, failed);
  fs::rename(from, to, failed);
  return failed;
}

}  // namespace tt::cli
