// Finds the models in a folder: every .gguf file (in any case) below it; the files of a split model
// count as one. Files that are not models that llama.cpp runs (tracer/engine/model_kind.h) and
// damaged files are listed with the reason.
//
// Links to folders are not followed. Links to files are followed only when the target is
// inside the folder, so nothing outside the folder is read or loaded. Links to folders and other
// links to .gguf files are listed with this reason; nothing about their target is. Not thread-safe.
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
  std::filesystem::path path;  // first file
  std::string stem;            // file name without .gguf and part number
  std::string name;            // general.name of the file, else the stem
  std::vector<FileStamp> files;
  std::string error;                  // why it cannot be loaded, and what to do; empty: looks valid
  bool is_importance_matrix = false;  // of llama-imatrix, not a model
  bool is_outside = false;            // it or a part of it is outside the folder: it is not opened

  std::uint64_t bytes() const;
};

// Reads the header of one model at any path.
FoundModel inspect_model(const std::filesystem::path& first_file);

class ModelFolder {
 public:
  // Empty: no folder and no models.
  explicit ModelFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& path() const { return folder_; }

  // Returns the current models, sorted by path. Walks the folder and reads only the headers of
  // files that are new or changed since the last call. Visits at most kMaxEntries files and
  // folders.
  std::vector<FoundModel> scan();
  static constexpr std::size_t kMaxEntries = 100'000;

 private:
  // The files of one model, in order. Outside: none of them, but links that lead nowhere inside
  // the folder.
  struct Parts {
    std::vector<std::filesystem::path> files;
    bool is_outside = false;
    bool is_folder = false;  // a link to a folder
  };
  std::map<std::filesystem::path, Parts> walk() const;
  bool is_outside(const std::filesystem::path& file) const;

  std::filesystem::path folder_;
  struct CachedModel {
    std::vector<FileStamp> parts;  // at the last read
    FoundModel model;
  };
  std::map<std::filesystem::path, CachedModel> cache_;  // key: path of the first part
};

}  // namespace tt
