// How often a session read each part of each weight.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Bytes from the begin of the weight that were read together: all of it, the slice of an expert, a
// row of an embedding.
struct PartUse {
  std::uint64_t offset = 0, length = 0;
  std::uint64_t reads = 0;
};

struct WeightReads {
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  // in the model files of the session
  std::vector<PartUse> parts{};
};

// By name: the weights of the graphs that the session evaluated. Those that no step read have no
// parts.
std::expected<std::map<std::string, WeightReads>, TraceError> weight_uses(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
