// Index of a model's GGUF files: file, offset and size of every tensor, by name. Read before
// the model is loaded. mapped_files.h independently finds file offsets by address.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracer/format/model/ids.h"
#include "tracer/format/model/session.h"
#include "tracer/gguf/gguf_header.h"

namespace tt {

struct GgufTensor {
  std::string name;
  std::string type;                  // "Q4_K"; "?144": unknown, only if there are faults
  std::array<std::int64_t, 4> ne{};  // elements, innermost first
  FileRange file;
};

class GgufIndex {
 public:
  // Reads the header of `path`, and of all parts if it is the first part of a split model (the
  // parts are in the same folder). The error is the message of the first fault, which says what to
  // do.
  static std::expected<GgufIndex, std::string> open(const std::filesystem::path& path);
  // The same, but lists what can be read if there are faults.
  static GgufIndex inspect(const std::filesystem::path& path);
  // The cause first. If all are notes, the model can be loaded.
  const std::vector<GgufFault>& faults() const { return faults_; }

  const std::vector<ModelFile>& files() const { return files_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;                  // null: not found
  const std::vector<GgufEntry>& metadata() const { return metadata_; }  // from the first file

 private:
  bool add_file(const std::filesystem::path& path, GgufContents contents);
  void add_part(const std::filesystem::path& path, std::size_t number, std::uint64_t count);
  void check_tensors();
  void reject(GgufFault::Kind kind, const std::filesystem::path& path, const std::string& what);

  std::vector<ModelFile> files_;
  std::vector<GgufTensor> tensors_;
  std::vector<GgufEntry> metadata_;
  std::vector<GgufFault> faults_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace tt
