// What a session teaches about others: how often each expert was chosen, the order in which a token
// reads the weights, and how often each part of a weight was read. Weights are named by tensors and
// elements instead of places in a file, so that what was learned with one quantization can be tried
// on another. Values and pure functions, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/experts/experts.h"
#include "analysis/weights/pattern.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct ModelWeight {
  std::string type;  // "Q4_K"
  std::array<std::int64_t, 4> ne{};
  std::uint32_t block_elements = 1, block_bytes = 1;  // of the type
  FileRange file;                                     // the whole tensor
  friend bool operator==(const ModelWeight&, const ModelWeight&) = default;
};
using ModelWeights = std::map<std::string, ModelWeight>;  // by name

// A part of a weight: a routed expert's slice, a row of an embedding, or the complete weight.
struct WeightPart {
  std::string tensor;
  std::uint64_t first = 0, count = 0;  // elements
  friend auto operator<=>(const WeightPart&, const WeightPart&) = default;
};
// nullopt: the range is not a part of the weight, as in a damaged file.
std::optional<WeightPart> part_of(const ModelWeights& weights, const std::string& tensor,
                                  const FileRange& range);
// Where the part is in the files of a model. Empty: it has no such weight or part.
FileRange range_of(const ModelWeights& weights, const WeightPart& part);

struct PartReads {
  WeightPart part;
  Bytes bytes{};
  std::uint64_t reads = 0;
};

struct LearnedSession {
  std::string name;
  std::vector<ModelFile> files;
  ModelWeights weights;              // that its graphs read
  std::vector<std::int32_t> prompt;  // vocabulary ids of the tokens before the first generated one
  std::uint32_t tokens = 0;
  std::vector<RouterUse> experts;
  std::uint64_t complete_tokens = 0;  // generated tokens that `pattern` was learned and tested on
  std::vector<PatternEntry> pattern;  // analysis/weights/pattern.h
  std::vector<PartReads> reads;       // in the order of the first read
};
// Without the name.
std::expected<LearnedSession, TraceError> learn_session(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
