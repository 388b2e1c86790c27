// Determinism of the accesses from token to token, the access pattern, and how well it
// predicts the next access. Pure functions, any thread; one pass over the session, two steps
// in memory.
//
// Only steps of phase GENERATE are used, because prompts differ in length.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/index/step_decoder.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/memory/plan/pattern_names.h"

namespace tt {

// Why an access differs from the previous step.
enum class Cause : std::uint8_t {
  Token,       // another row of a weight: the embedding of another token
  KvWindow,    // a different number or selection of cache cells
  Experts,     // different experts were routed to
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

// Compares each step with the previous one, access by access: tensor, direction, file range,
// bytes.
struct Determinism {
  std::uint64_t pairs = 0;      // of steps
  std::uint64_t identical = 0;  // pairs without any difference
  // Pairs that differ at most by Cause::Token and Cause::KvWindow.
  std::uint64_t same_weights = 0;
  std::uint64_t accesses = 0;  // compared: those of the second steps that touch bytes
  std::array<std::uint64_t, kCauses> differing{};  // accesses, by cause
  std::vector<FirstDifference> firsts;             // the first difference of each cause
};
// Compares the steps that a walk visits (analysis/index/walk_outlines.h), in order.
class DeterminismTally {
 public:
  // The reader must outlive this object.
  explicit DeterminismTally(const SessionReader& reader);
  DeterminismTally(const DeterminismTally&) = delete;
  DeterminismTally& operator=(const DeterminismTally&) = delete;
  ~DeterminismTally();

  std::expected<void, TraceError> add(const SessionReader::StepRow& row, StepDecoder& decoder);
  Determinism take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
std::expected<Determinism, TraceError> determinism(const SessionReader& reader,
                                                   const ContinueCheck& keep_going = never_cancel);

// One read of a weight in the pattern of a token.
struct PatternEntry {
  // Routed: `parts` slices of `file`, `part_bytes` each, chosen by the router. Row: `parts` rows of
  // `file`, selected by the token.
  ReadKind kind = ReadKind::Fixed;
  std::string tensor;
  OpId op;           // that reads it, in the graph of a token
  FileRange file;    // Fixed: the range that is read; else the complete tensor
  Bytes part_bytes;  // Fixed: size of the complete range
  std::uint32_t parts = 1;
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  friend bool operator==(const PatternEntry&, const PatternEntry&) = default;
};

// The pattern is learned from the first half of the steps and tested on the second half:
// after each read, it predicts the next read. For routed parts and rows it predicts those of
// the previous step. A read counts as right if exactly its bytes were predicted.
struct Prediction {
  std::uint64_t steps_learned = 0, steps_tried = 0;
  std::uint64_t reads = 0, right = 0;
  Bytes bytes{}, right_bytes{};
  double accuracy() const {
    return reads == 0 ? 0 : static_cast<double>(right) / static_cast<double>(reads);
  }
};

// For a session in which nothing can be compared, or learned.
inline constexpr const char* kNoPairs =
    "The session has no two generated tokens to compare. Record a model that generates text, and "
    "more than one token.";
inline constexpr const char* kNoPattern =
    "The session has no generated token with accesses, so there is no pattern. Record a model that "
    "generates text, and more than one token, at the level detailed.";

struct AccessPattern {
  std::vector<PatternEntry> entries;  // in op order
  Prediction prediction;
};
// Learns and tests the pattern of the steps that a walk visits, in order.
class PatternTally {
 public:
  // `steps`: complete_tokens(reader). The reader must outlive this object.
  PatternTally(const SessionReader& reader, std::uint64_t steps);
  // Tests the pattern of another session on the second half of the steps. The ranges of its
  // `entries` are those that this session reads of the same weights.
  PatternTally(const SessionReader& reader, std::uint64_t steps, std::vector<PatternEntry> entries);
  PatternTally(const PatternTally&) = delete;
  PatternTally& operator=(const PatternTally&) = delete;
  ~PatternTally();

  // Whether a step counts for the pattern.
  static bool is_complete_token(const Step& head);
  std::expected<void, TraceError> add(const SessionReader::StepRow& row, StepDecoder& decoder);
  AccessPattern take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
// Number of steps that count for the pattern.
std::expected<std::uint64_t, TraceError> complete_tokens(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);
// Empty if there is no step of phase GENERATE with a template.
std::expected<AccessPattern, TraceError> access_pattern(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

// The content of access_pattern.json (docs/access-pattern.md).
struct RecordedPattern {
  SessionInfo session;
  AccessPattern pattern;
  Determinism determinism;
};
std::expected<RecordedPattern, TraceError> recorded_pattern(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

Fields<Determinism> fields_of(const Determinism*);
Fields<RecordedPattern> fields_of(const RecordedPattern*);

}  // namespace tt
