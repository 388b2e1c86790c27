// Whether a model touches the same bytes in the same order from token to token,
// what that order is, and how well it tells the next access. Pure functions, any
// thread; one pass over the session, two steps in memory.
//
// Only steps of phase GENERATE are looked at: prompts differ in length.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Why an access is not what it was in the step before.
enum class Cause : std::uint8_t {
  Token,       // another row of a weight: the embedding of another token
  KvWindow,    // more (or other) cells of a cache
  Experts,     // other experts were routed to
  Graph,       // the graph has other ops
  Unfinished,  // one of the steps was cancelled
};
inline constexpr std::size_t kCauses = 5;
const char* to_text(Cause);

struct FirstDifference {
  StepId step, before;
  OpId op;
  std::string tensor;
  Cause cause = Cause::Graph;
};

// Each step compared with the one before it, access by access: tensor, direction,
// place in the file, bytes.
struct Determinism {
  std::uint64_t pairs = 0;      // of steps
  std::uint64_t identical = 0;  // pairs without any difference
  std::uint64_t same_weights =
      0;                       // pairs that differ at most in rows of weights and cells of caches
  std::uint64_t accesses = 0;  // compared
  std::array<std::uint64_t, kCauses> differing{};  // accesses, by cause
  std::vector<FirstDifference> firsts;             // the first of each cause that occurs
};
std::expected<Determinism, TraceError> determinism(const SessionReader& reader,
                                                   const KeepGoing& keep_going = always);

// One read of a weight in the pattern of a token.
struct PatternEntry {
  enum class Kind : std::uint8_t {
    Fixed,   // the same bytes for each token
    Routed,  // `parts` of the slices that lie in `file`, `part_bytes` each: the router's choice
    Row      // `parts` rows of it: the token's
  };
  Kind kind = Kind::Fixed;
  std::string tensor;
  FileRange file;    // Fixed: what is read; else the whole tensor
  Bytes part_bytes;  // Fixed: all of it
  std::uint32_t parts = 1;
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  friend bool operator==(const PatternEntry&, const PatternEntry&) = default;
};

// Learned on the first half of the steps, tried on the second: after each read,
// the pattern names the next. Of routed parts and rows it names those of the step
// before. A read counts as right when exactly its bytes were named.
struct Prediction {
  std::uint64_t steps_learned = 0, steps_tried = 0;
  std::uint64_t reads = 0, right = 0;
  Bytes bytes{}, right_bytes{};
  double accuracy() const {
    return reads == 0 ? 0 : static_cast<double>(right) / static_cast<double>(reads);
  }
};

struct AccessPattern {
  std::vector<PatternEntry> entries;  // in the order of the ops
  Prediction prediction;
};
// Empty when there is no step of phase GENERATE with a template.
std::expected<AccessPattern, TraceError> access_pattern(const SessionReader& reader,
                                                        const KeepGoing& keep_going = always);

}  // namespace tt
