// Whether a recording is what it says it is: each check holds a part of the file
// against another part that was recorded independently of it, and says with
// figures what it looked at and what is wrong. Pure functions, any thread; one
// pass over the session, one step in memory.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

enum class Check : std::uint8_t {
  File,        // SQLite's integrity, every row's checksum, every blob
  Losses,      // nothing was lost while it was recorded
  Steps,       // ids and times follow one another
  Ops,         // each step executed exactly its template's ops
  OpTimes,     // ops end one after the other, within their step
  Tokens,      // steps evaluate the session's tokens one after the other, but for reused ones
  TokenIds,    // the ids that the graph read from memory are those of the tokens
  Layers,      // every layer of the model is in every graph that goes through the layers
  FileRanges,  // every weight lies inside its model file
  OffsetWays,  // by name and by address a weight has the same place in the file
  Experts,     // the routed experts exist, as many as the model uses, none twice
};
inline constexpr std::size_t kChecks = 11;
const char* to_text(Check);  // "file", "losses"...

// NotApplicable: the session has nothing that could be looked at, a level without
// ops or a model without experts.
enum class Verdict : std::uint8_t { Passed, Failed, NotApplicable };
const char* to_text(Verdict);

struct CheckResult {
  Check check = Check::File;
  Verdict verdict = Verdict::NotApplicable;
  std::uint64_t looked_at = 0, wrong = 0;  // of what `summary` counts
  std::string summary;                     // "512 steps, each with the 379 ops of its template"
  std::vector<std::string> evidence;       // the first kEvidence wrong ones
  friend bool operator==(const CheckResult&, const CheckResult&) = default;
};
inline constexpr std::size_t kEvidence = 10;

struct Validation {
  // One of each, in order; File alone where nothing else could be read.
  std::vector<CheckResult> checks;
  bool passed() const;  // none failed
};

// A damaged file is no error but a Failed check: what can be read is looked at.
// Errors: the file is not there, is no session, or is newer than this program.
std::expected<Validation, TraceError> validate(const std::filesystem::path& file,
                                               const KeepGoing& keep_going = always);

}  // namespace tt
