#include "server/models/model_folder.h"

#include <algorithm>
#include <cctype>
#include <format>
#include <regex>
#include <set>
#include <system_error>
#include <utility>

#include "tracer/engine/model_kind.h"
#include "tracer/gguf/gguf_index.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

// ".gguf" in any case.
bool has_model_extension(const fs::path& file) {
  std::string extension = file.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".gguf";
}

// "model-00002-of-00003" is a part of the split model "model".
struct PartName {
  std::string stem;
  std::string of;  // "-of-00003"; empty: not a split model
};

PartName part_name(const std::string& stem) {
  static const std::regex kPart("(.+)-[0-9]{5}(-of-[0-9]{5})");
  std::smatch found;
  if (!std::regex_match(stem, found, kPart)) return {.stem = stem, .of = {}};
  return {.stem = found[1], .of = found[2]};
}

std::string text_value(const GgufIndex& index, const char* key) {
  return value_of<std::string>(index.metadata(), key).value_or("");
}

std::vector<FileStamp> stamps_of(const std::vector<fs::path>& files) {
  std::vector<FileStamp> stamps;
  for (const fs::path& file : files) stamps.push_back(stamp_of(file));
  return stamps;
}

// A link whose target is not a file inside the folder. The target is neither opened nor
// described: its path, size and existence are not the client's business.
FoundModel outside_link(const fs::path& link, bool is_folder) {
  const std::string stem = part_name(link.stem().string()).stem;
  return {.path = link,
          .stem = stem,
          .name = stem,
          .files = {FileStamp{.path = link}},
          .error = is_folder
                       ? std::format("{}: links to folders are not followed. Move the models into "
                                     "the models folder, or start the server with --models-dir.",
                                     link.string())
                       : std::format("{}: this link does not lead to a file in the models folder. "
                                     "Move the file into the folder, or start the server with "
                                     "--model.",
                                     link.string()),
          .is_outside = true};
}

}  // namespace

std::uint64_t FoundModel::bytes() const {
  std::uint64_t sum = 0;
  for (const FileStamp& file : files) sum += file.size;
  return sum;
}

FoundModel inspect_model(const fs::path& first_file) {
  FoundModel model{.path = first_file,
                   .stem = part_name(first_file.stem().string()).stem,
                   .name = {},
                   .files = {},
                   .error = {},
                   .is_importance_matrix = false,
                   .is_outside = false};
  model.name = model.stem;
  const auto index = GgufIndex::open(first_file);
  if (!index) {
    model.files = {stamp_of(first_file)};
    model.error = index.error();
    return model;
  }
  for (const ModelFile& file : index->files()) model.files.push_back(stamp_of(file.path));
  if (const std::string name = text_value(*index, "general.name"); !name.empty()) model.name = name;
  model.error = not_a_model(*index);
  model.is_importance_matrix = is_importance_matrix(*index);
  return model;
}

bool ModelFolder::is_outside(const fs::path& file) const {
  std::error_code failed;
  const fs::path root = fs::canonical(folder_, failed);
  const fs::path real = failed ? fs::path() : fs::canonical(file, failed);
  if (failed) return true;
  return std::ranges::mismatch(root, real).in1 != root.end();
}

std::map<fs::path, ModelFolder::Parts> ModelFolder::walk() const {
  std::map<fs::path, Parts> models;  // key: path without the part number
  std::map<fs::path, fs::path> links;
  std::set<fs::path> files, outside, folders;
  std::error_code failed;
  fs::recursive_directory_iterator entry(folder_, fs::directory_options::skip_permission_denied,
                                         failed);
  std::size_t visited = 0;
  for (; !failed && entry != fs::end(entry) && visited < kMaxEntries; entry.increment(failed)) {
    ++visited;
    std::error_code gone;
    if (entry->is_symlink(gone) && entry->is_directory(gone)) {
      folders.insert(entry->path());
      continue;
    }
    if (!has_model_extension(entry->path())) continue;
    if (entry->is_symlink(gone)) {
      if (entry->is_regular_file(gone) && !is_outside(entry->path()))
        links.emplace(entry->path(), fs::canonical(entry->path(), gone));
      else
        outside.insert(entry->path());
    } else if (entry->is_regular_file(gone)) {
      files.insert(entry->path());
    }
  }
  std::set<fs::path> real;
  for (const fs::path& file : files) real.insert(fs::canonical(file, failed));
  for (const auto& [link, target] : links)
    if (real.insert(target).second) files.insert(link);  // else the target is listed already

  const auto key_of = [](const fs::path& file) {
    const auto [stem, of] = part_name(file.stem().string());
    return file.parent_path() / (stem + of);
  };
  for (const fs::path& file : files) models[key_of(file)].files.push_back(file);
  // A link that is a part of a split model is reported as such a part by scan().
  for (const fs::path& link : outside)
    models.try_emplace(key_of(link), Parts{.files = {link}, .is_outside = true});
  for (const fs::path& link : folders)
    models.try_emplace(link, Parts{.files = {link}, .is_outside = true, .is_folder = true});
  return models;
}

std::vector<FoundModel> ModelFolder::scan() {
  std::vector<FoundModel> models;
  if (folder_.empty()) return models;
  std::map<fs::path, CachedModel> known;
  for (auto& [key, parts] : walk()) {
    const fs::path& first = parts.files.front();
    if (parts.is_outside) {
      models.push_back(outside_link(first, parts.is_folder));
      continue;
    }
    auto stamps = stamps_of(parts.files);
    if (auto before = cache_.find(first);
        before != cache_.end() && before->second.parts == stamps) {
      known.emplace(first, std::move(before->second));
    } else {
      known.emplace(first, CachedModel{.parts = std::move(stamps), .model = inspect_model(first)});
    }
    FoundModel& model = known.at(first).model;
    // A part listed in the first file may be a link that was skipped above.
    for (const FileStamp& file : model.files) {
      if (!is_outside(file.path)) continue;
      model.is_outside = true;
      model.error = file.path.string() + " is outside the models folder.";
    }
    models.push_back(model);
  }
  cache_ = std::move(known);
  return models;
}

}  // namespace tt
