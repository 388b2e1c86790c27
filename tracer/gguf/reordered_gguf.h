// Writes a GGUF file again with its tensors in another order, so that a model reads it more
// sequentially. The metadata and the bytes of every tensor stay the same; llama.cpp finds tensors
// by name. Copies block by block, in a few MiB of memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/format/model/trace_error.h"
#include "tracer/gguf/gguf_header.h"

namespace tt {

// Called for every block with the bytes of the file that are done, of `total`; false cancels.
using CopyProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// XXH3 (128 bits, hex) of the bytes of each tensor, by name.
using TensorHashes = std::map<std::string, std::string>;
// Of the file at `path`, which must be one that read_gguf_header() accepts.
Expected<TensorHashes> tensor_hashes(const std::filesystem::path& path,
                                     const CopyProgress& progress);
// One hash of all names and hashes: the same for files with the same tensors in any order.
std::string hash_of(const TensorHashes& hashes);

class ReorderedGguf {
 public:
  // The file at `path` with the tensors `first` before the others, which keep their order. An error
  // if a tensor of this name does not exist, or the file is not a sound GGUF file or one of several
  // parts.
  static Expected<ReorderedGguf> plan(const std::filesystem::path& path,
                                      std::span<const std::string> first);

  std::uint64_t bytes_before() const { return header_.file_size; }
  std::uint64_t bytes() const { return bytes_; }  // of the new file
  std::size_t tensors() const { return placed_.size(); }
  std::size_t moved() const;  // tensors at another offset than before

  using Sink = std::function<Status(std::string_view bytes)>;
  // Returns the hashes of the tensors, as they were read.
  Expected<TensorHashes> write(const Sink& sink, const CopyProgress& progress) const;

 private:
  struct Placed {
    GgufTensorInfo info;
    std::uint64_t offset = 0;  // in the new file, from its begin
  };
  ReorderedGguf(std::filesystem::path path, GgufHeader header, std::vector<Placed> placed,
                std::uint64_t bytes)
      : path_(std::move(path)),
        header_(std::move(header)),
        placed_(std::move(placed)),
        bytes_(bytes) {}

  std::filesystem::path path_;
  GgufHeader header_;
  std::vector<Placed> placed_;  // in the new order
  std::uint64_t bytes_;
};

}  // namespace tt
