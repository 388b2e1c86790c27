// What of the weights was in memory before a step, by tensor. From the snapshots that a session has
// if its request asked for them.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct WeightTensor {
  std::string name;
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  FileRange file;
  bool mapped = false;  // false: copied when the model was loaded
};

// The weights of the session's graphs, by file and offset.
std::expected<std::vector<WeightTensor>, TraceError> weight_tensors(const SessionReader& reader);

// Bytes of the tensor in memory, as exact as the units of the snapshot; nullopt: not mapped.
std::optional<std::uint64_t> resident_bytes(const WeightTensor& tensor,
                                            std::span<const FileRange> resident);

struct ResidencyTable {
  StepResidency snapshot;
  std::vector<WeightTensor> weights;
};

// The last snapshot at or before `step`. Error NotFound: there is none.
std::expected<ResidencyTable, TraceError> residency_at(const SessionReader& reader, StepId step);

Fields<ResidencyTable> fields_of(const ResidencyTable*);

}  // namespace tt
