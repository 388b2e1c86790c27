// The models that lie in a folder: every .gguf below it, the files of a split
// model as one. Files that are no model by themselves (projectors for images,
// adapters, vocabularies) and broken ones are there with the reason.
//
// Links to folders are not followed, and links to files only where they end
// inside of the folder: nothing outside of it can be named or loaded.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tracer/gguf/file_stamp.h"

namespace tt {

struct FoundModel {
  std::filesystem::path path;  // of the first file
  std::string stem;            // its name without .gguf and without the number of a part
  std::string name;            // that it gives itself, else the stem
  std::vector<FileStamp> files;
  std::string error;       // why it cannot be loaded, and what to do; empty: it looks sound
  bool leads_out = false;  // a part of it lies outside of the folder: it is not opened

  std::uint64_t bytes() const;
};

// One model, wherever it lies. Reads its header.
FoundModel look_at_model(const std::filesystem::path& first_file);

class ModelFolder {
 public:
  // Empty: no folder, and no models.
  explicit ModelFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& path() const { return folder_; }

  // What is there now, by path. A walk through the folder; headers are read
  // only of files that are new or changed since the last time. At most
  // kMostEntries files and folders are looked at.
  std::vector<FoundModel> scan();
  static constexpr std::size_t kMostEntries = 100'000;

 private:
  // Parts of one model, in order: a file, or the files of a split.
  using Parts = std::vector<std::filesystem::path>;
  std::map<std::filesystem::path, Parts> walk() const;
  bool leads_out(const std::filesystem::path& file) const;

  std::filesystem::path folder_;
  struct Known {
    std::vector<FileStamp> parts;  // as they were when it was looked at
    FoundModel model;
  };
  std::map<std::filesystem::path, Known> known_;  // by the path of the first part
};

}  // namespace tt
