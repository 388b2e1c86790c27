// What drafts cost and what they save, from the session of a target model: llama.cpp evaluates the
// tokens that a draft model (or another source) proposes in one step, and evaluates those that were
// not accepted again (docs/attach.md). Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/common/verdict.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// A draft that a step of the target checked.
struct CheckedDraft {
  StepId step;
  std::uint32_t drafted = 0;  // tokens
  // Of the drafted ones; nullopt: no step follows that continues the text.
  std::optional<std::uint32_t> accepted{};
  Ns check{};  // time of the step
  Bytes check_read{};
  // Of the steps of the draft model since the step of the target before; nullopt: its session is
  // not there.
  std::optional<std::uint32_t> draft_steps{};
  std::optional<Ns> draft{};
  std::optional<Bytes> draft_read{};
  friend bool operator==(const CheckedDraft&, const CheckedDraft&) = default;
};

// A part of the work for drafts with a known result.
struct DraftStage {
  std::string
      stage;  // draft, check; rejected: of these, the share of tokens that were not accepted
  std::uint64_t tokens = 0;  // evaluated
  Ns time{};
  Bytes read{};
  friend bool operator==(const DraftStage&, const DraftStage&) = default;
};

struct DraftLedger {
  // The session of the draft model, beside this one; "": there is none, so only the work of the
  // target is known.
  std::string draft_session;
  std::uint64_t total = 0;  // drafts, also those without a known result
  std::uint64_t known = 0;  // with a known result; of these are the following totals
  std::uint64_t drafted = 0, accepted = 0, rejected = 0;  // tokens
  std::vector<DraftStage> stages;
  // Of the times that follow: without steps whose graph was new, and without those that the
  // machine disturbed. If there are no others, the disturbed ones are used.
  std::uint64_t disturbed = 0;         // steps that are left out
  std::optional<Verdict> verdict{};    // of the used steps; nullopt: not recorded
  std::optional<Ns> draft{}, check{};  // medians per draft; nullopt: there are none
  // Steps of the target with one token: those after which nothing was drafted; and their median
  // time. nullopt: fewer than kMinPlainSteps.
  std::uint64_t plain_steps = 0;
  std::optional<Ns> plain{};
  // Per draft: what it costs in addition to a step with one token, and what its accepted tokens
  // would have cost in such steps. nullopt: `plain` or `draft` is not known.
  std::optional<Ns> cost{}, saving{};
  std::vector<CheckedDraft> drafts;  // one page
  friend bool operator==(const DraftLedger&, const DraftLedger&) = default;

  std::optional<double> accepted_share() const;
};

// A median needs this many steps to be called the time of a step.
inline constexpr std::uint64_t kMinPlainSteps = 5;

// `rows`: of `drafts`; the totals are those of the whole session. Steps with tokens of several
// requests are left out: which token continues which is not recorded.
std::expected<DraftLedger, TraceError> draft_ledger(const SessionReader& reader, PageRange rows,
                                                    const ContinueCheck& keep_going = never_cancel);

// Tokens of drafts that were not accepted, in the steps [first, last), whose results are known from
// the steps up to `last`. Reads the heads of the steps and the tokens.
std::expected<std::uint64_t, TraceError> rejected_tokens(const SessionReader& reader, StepId first,
                                                         StepId last);

Fields<DraftLedger> fields_of(const DraftLedger*);

// For a session without drafts.
inline constexpr const char* kNoDrafts =
    "The session has no drafts: no step checked several tokens that were proposed. Record a "
    "program "
    "that uses a draft model: tt attach -- llama-server -m MODEL -md DRAFT_MODEL.";

}  // namespace tt
