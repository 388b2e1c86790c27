// Whether what one session teaches holds for another one: another prompt, another quantization of
// the model, another model with the same weights. Everything is learned on one session and tried on
// each of the others (docs/sets.md):
//   experts  a cache of whole experts that holds the most used ones of each layer
//   order    the order of the reads of a token, as a prediction of the next read
//   memory   the weights to keep in memory
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "analysis/sets/learned_session.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// What was tried, of `total` requests, reads or bytes: how many were served or predicted with what
// was learned elsewhere, and with what the session itself teaches.
struct Trial {
  std::uint64_t total = 0, learned = 0, own = 0;
  double share() const { return static_cast<double>(learned) / static_cast<double>(total); }
  double own_share() const { return static_cast<double>(own) / static_cast<double>(total); }
  double loss() const { return own_share() - share(); }
  friend bool operator==(const Trial&, const Trial&) = default;
};
// None: there is nothing to learn or to try, such as experts of a dense model.
struct Trials {
  std::optional<Trial> experts, order, memory;
  friend bool operator==(const Trials&, const Trials&) = default;
};

// In what the session that was learned on differs from the one that it is tried on.
enum class LearnedElsewhere : std::uint8_t {
  OtherPrompt,        // the tokens before the first generated one
  OtherQuantization,  // types of weights
  OtherModel          // other files with weights of the same names, shapes and types
};
const char* to_text(LearnedElsewhere);

struct GeneralityPair {
  std::uint32_t learned_on = 0, tried_on = 0;  // indices of sessions; equal: the session itself
  std::vector<LearnedElsewhere> differs{};
  std::optional<std::string> refused{};  // why nothing was tried: the weights do not match
  Trials trials{};
};

// What all other sessions together teach, tried on the session that is left out: choices and reads
// are summed; of the order, the mean of the others.
struct LeftOut {
  std::uint32_t tried_on = 0;
  std::uint32_t learned_on = 0;  // number of sessions; those that were refused are not among them
  Trials trials{};
};

struct MeanTrial {
  std::uint64_t trials = 0;
  double share = 0, own_share = 0, loss = 0, largest_loss = 0;
};
// Unweighted means over the pairs that differ in the same way, or over all sessions left out.
struct GeneralityMean {
  std::optional<std::vector<LearnedElsewhere>> differs{};  // none: of leave_one_out
  std::uint64_t pairs = 0;
  std::optional<MeanTrial> experts{}, order{}, memory{};
};

struct GeneralitySession {
  std::string name;
  std::string model;  // file name
  std::uint32_t prompt_tokens = 0, tokens = 0;
  std::optional<double>
      any_experts{};  // share of requests that any `slots` experts serve, expected
  Bytes memory{};     // budget of the trial
  std::optional<std::uint32_t> readable_steps{};  // it is damaged after these
};

struct Generality {
  std::uint32_t slots = 0;  // experts per layer; 0: no session has experts
  std::vector<GeneralitySession> sessions;
  std::vector<GeneralityPair> pairs;   // by learned_on, then tried_on
  std::vector<LeftOut> leave_one_out;  // by session
  std::vector<GeneralityMean> means;   // leave_one_out last
};

// Pairs grow with the square of it.
inline constexpr std::size_t kMaxGeneralitySessions = 100;

struct GeneralityQuery {
  std::uint32_t slots = 0;  // experts per layer. 0: a quarter of them, at least 1
  // Budget of the trial. None: half of the distinct bytes that the session reads it is tried on.
  std::optional<Bytes> memory{};
};
// `names`: 2 to kMaxGeneralitySessions; `open(i)` may be called several times. Errors begin with
// the name of a session.
std::expected<Generality, TraceError> generality(
    std::span<const std::string> names,
    const std::function<std::expected<SessionReader, TraceError>(std::size_t)>& open,
    const GeneralityQuery& query = {}, const ContinueCheck& keep_going = never_cancel);

// "another prompt and another quantization", "the same model and prompt"
std::string difference_text(const std::vector<LearnedElsewhere>& differs);

// The result in sentences: for each part that was tried, what the other sessions teach.
std::vector<std::string> sentences_of(const Generality& found);

Fields<Generality> fields_of(const Generality*);

}  // namespace tt
