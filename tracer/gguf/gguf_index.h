// What a model's GGUF says before anything is loaded: which tensor lies where
// in which file. The first of the two ways from a tensor to a file offset (the
// second, by address, is mapped_files.h).
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
  std::string type;                  // "Q4_K"
  std::array<std::int64_t, 4> ne{};  // elements, innermost first
  FileRange file;
};

class GgufIndex {
 public:
  // Reads the header of `path`, and of the other parts when it is the first of
  // a split model (all parts lie beside it). The error says what to do.
  static std::expected<GgufIndex, std::string> open(const std::filesystem::path& path);

  const std::vector<ModelFile>& files() const { return files_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;                  // null: no such tensor
  const std::vector<GgufEntry>& metadata() const { return metadata_; }  // of the first file

 private:
  std::expected<void, std::string> add_file(const std::filesystem::path& path);

  std::vector<ModelFile> files_;
  std::vector<GgufTensor> tensors_;
  std::vector<GgufEntry> metadata_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace tt
