// How small a model's weights are: bits per weight, beside F16 and F32, and what
// its quantization mixes. Pure functions over a list of weights, wherever that
// comes from: the headers of a model's files, or what a session touched.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct WeightSize {
  std::string name;
  std::string type;  // "Q4_K"
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  std::uint64_t elements = 0;
  Bytes bytes{};  // in the model's files
  friend bool operator==(const WeightSize&, const WeightSize&) = default;
};

// Product of what is positive; 0 for a tensor without elements.
std::uint64_t elements_of(std::span<const std::int64_t> shape);

// Sums over some weights. Ratios are 0 where there is nothing.
struct Compression {
  std::uint64_t tensors = 0, elements = 0;
  Bytes bytes{};
  double bits_per_weight() const;
  double ratio(unsigned bits) const;  // size with so many bits per weight / size
  friend bool operator==(const Compression&, const Compression&) = default;
};

template <class Key>
struct CompressionOf {
  Key key;
  Compression sum;
  friend bool operator==(const CompressionOf&, const CompressionOf&) = default;
};

struct CompressionReport {
  Compression total;
  std::vector<CompressionOf<std::string>> types;  // the largest first: the quantization mix
  std::vector<CompressionOf<LayerId>> layers;     // by number; kNoLayer first
  std::vector<CompressionOf<Component>> components;
  std::vector<WeightSize> weights;  // as they were given
};
CompressionReport compression(std::vector<WeightSize> weights);

// The weights of the graphs that a session evaluated, each once, in the order of
// their first appearance: what no graph reads (a vision tower) is not among them.
std::expected<std::vector<WeightSize>, TraceError> session_weights(
    const SessionReader& reader, const KeepGoing& keep_going = always);

}  // namespace tt
