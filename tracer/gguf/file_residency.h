// Which parts of the weights of a loaded model are in the page cache (mincore).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracer/format/model/ids.h"
#include "tracer/gguf/gguf_index.h"

namespace tt {

class FileResidency {
 public:
  // Finds where the weights are mapped in this process. Valid until the model is unloaded.
  explicit FileResidency(const GgufIndex& index);

  // Why it is not known what is in memory; empty: it is known.
  const std::string& unavailable() const { return unavailable_; }
  static constexpr const char* kNotTold =
      "the kernel reports it only to users who may write the model file";
  // Parts in memory consist of units of this many bytes: those of which at least half is in memory.
  std::uint64_t unit() const { return unit_; }

  struct Parts {
    std::vector<FileRange> resident;  // by file and offset; adjacent ones are joined
    std::vector<std::optional<std::uint64_t>> bytes;  // by tensor of weights(); nullopt: not mapped
  };
  // Any thread; takes about 15 ns per mapped page. `bytes` are those of all pages if the kernel
  // does not tell.
  Parts read() const;

  // The tensors of the model, by file and offset.
  struct Weight {
    std::string name;
    FileRange file;
    std::optional<std::uint64_t> address;  // nullopt: not mapped
  };
  const std::vector<Weight>& weights() const { return weights_; }

 private:
  std::vector<Weight> weights_;
  std::uint64_t unit_ = 1;
  std::string unavailable_;
};

}  // namespace tt
