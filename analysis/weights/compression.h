// Size of a model's weights: bits per weight, compression ratios, and the mix of quantization
// types. Pure functions over a list of weights, which can come from the headers of model
// files or from a session.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct WeightSize {
  std::string name;
  std::string type;  // "Q4_K"
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  std::uint64_t elements = 0;
  Bytes bytes{};  // size in the model files
  friend bool operator==(const WeightSize&, const WeightSize&) = default;
};

// The product of the dimensions; 0 if a dimension is not positive.
std::uint64_t elements_of(std::span<const std::int64_t> shape);

// Sums over a group of weights. Ratios of an empty group are 0.
struct Compression {
  std::uint64_t tensors = 0, elements = 0;
  Bytes bytes{};
  double bits_per_weight() const;
  double ratio(unsigned bits) const;  // size at `bits` bits per weight / actual size
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
  std::vector<CompressionOf<std::string>> types;  // largest first: the quantization mix
  std::vector<CompressionOf<LayerId>> layers;     // by number; kNoLayer first
  std::vector<CompressionOf<Component>> components;
  std::vector<WeightSize> weights;  // in input order
};
CompressionReport compression(std::vector<WeightSize> weights);

// Each weight of the graphs that a session evaluated, once, in order of first appearance.
// Weights that no graph reads (such as a vision tower) are not included.
std::expected<std::vector<WeightSize>, TraceError> session_weights(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

Fields<CompressionReport> fields_of(const CompressionReport*);

}  // namespace tt
