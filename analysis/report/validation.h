// Consistency checks of a recording: each check compares a part of the file with another,
// independently recorded part, and counts the items checked and the failures. Pure
// functions, any thread; one pass over the session, one step in memory.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

enum class Check : std::uint8_t {
  File,                     // SQLite integrity check, row checksums, blobs can be decoded
  Losses,                   // nothing was lost during recording; losses are counted in the file
  Steps,                    // steps do not overlap and are in time order
  Ops,                      // each step executed exactly the ops of its template
  OpTimes,                  // ops end in order and within their step
  Tokens,                   // steps evaluate the session's tokens in order, except reused tokens
  TokenIds,                 // the token ids that the graph read equal those of the tokens
  Positions,                // the positions that the graph read equal those of the tokens
  CacheCells,               // each token of a step is written to a cell of its own in each cache
  Layers,                   // every graph with layer weights has ops of every layer of the model;
                            // not the partial graph of a cancelled step
  HyperParameters,          // each layer of each step did the work that the model's metadata says
  FileRanges,               // every weight is inside its model file
  OffsetsByNameAndAddress,  // a weight has the same file offset by name and by address
  Experts,                  // routed experts exist, and no token has an expert twice
};
inline constexpr std::size_t kChecks = 14;
const char* to_text(Check);  // "file", "losses"...

// Incomplete: the recorder counted data that it lost; what is recorded is valid nevertheless.
// NotApplicable: the session has no items to check, for example at a level without ops or
// with a model without experts.
enum class CheckStatus : std::uint8_t { Passed, Incomplete, Failed, NotApplicable };
const char* to_text(CheckStatus);

struct CheckResult {
  Check check = Check::File;
  CheckStatus status = CheckStatus::NotApplicable;
  std::uint64_t items_checked = 0, wrong = 0;  // items checked, failures; `summary` names the item
  std::string summary;                         // "512 steps, each with the ops of its template"
  std::vector<std::string> evidence;           // the first kEvidence failures
  friend bool operator==(const CheckResult&, const CheckResult&) = default;
};
inline constexpr std::size_t kEvidence = 10;

struct Validation {
  // One result per Check, in order; only File if nothing else could be read.
  std::vector<CheckResult> checks;
  // What the recorder counted as lost, "times of 77 steps"; empty: nothing.
  std::string missing;
  bool passed() const;  // no check failed
  // Of the whole recording: "valid", "valid, times of 77 steps missing" or "NOT valid".
  std::string verdict() const;
};

// A damaged file is a failed check, not an error; the other checks use what can be read.
// Errors: the file does not exist, is not a session, or has a newer format version.
std::expected<Validation, TraceError> validate(const std::filesystem::path& file,
                                               const ContinueCheck& keep_going = never_cancel);

Fields<Validation> fields_of(const Validation*);

}  // namespace tt
