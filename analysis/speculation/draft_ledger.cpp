#include "analysis/speculation/draft_ledger.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "analysis/common/spread.h"
#include "analysis/common/verdict_counts.h"
#include "analysis/common/walk_steps.h"
#include "analysis/fields/fields.h"

namespace tt {

namespace {

// The tokens of a step that generates, if they are of one sequence.
struct Evaluated {
  StepId step;
  std::uint32_t tokens = 0;
  std::int32_t position = 0;  // of the first one
};

// nullopt: another step, or tokens of several sequences.
std::expected<std::optional<Evaluated>, TraceError> evaluated(const SessionReader& reader,
                                                              const Step& step) {
  if (step.phase != Phase::Generate || step.n_tokens == 0) return std::nullopt;
  const auto tokens = reader.tokens(step.first_token, step.n_tokens);
  if (!tokens) return std::unexpected(tokens.error());
  if (tokens->size() != step.n_tokens) return std::nullopt;
  for (std::size_t i = 1; i < tokens->size(); ++i)
    if (std::int64_t{(*tokens)[i - 1].position} + 1 != (*tokens)[i].position) return std::nullopt;
  return Evaluated{.step = step.id, .tokens = step.n_tokens, .position = tokens->front().position};
}

// How many tokens of the draft that `step` checked were accepted. Its first token is no draft: it
// was sampled from the step before. The next step begins with the token that follows the accepted
// ones. nullopt: it does not continue the text.
std::optional<std::uint32_t> accepted_by(const Evaluated& step,
                                         const std::optional<Evaluated>& next) {
  if (!next) return std::nullopt;
  const std::int64_t accepted = std::int64_t{next->position} - step.position - 1;
  if (accepted < 0 || accepted >= step.tokens) return std::nullopt;
  return static_cast<std::uint32_t>(accepted);
}

bool is_check(const Evaluated& step) { return step.tokens > 1; }

// A step of either session, at its time of day.
struct TimedStep {
  std::int64_t begin = 0, end = 0;  // Unix time, ns
  Ns took{};
  Bytes read{};
  bool learned = false;
  std::optional<Verdict> verdict;  // nullopt: not recorded
};

std::int64_t at(const SessionInfo& info, Ns time) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(info.start_utc_ns) +
                                   static_cast<std::uint64_t>(time.v));
}

TimedStep timed(const SessionInfo& info, const DerivedPtr& derived, const Step& step) {
  TimedStep out{.begin = at(info, step.begin),
                .end = at(info, step.end),
                .took = step.end - step.begin,
                .learned = step.timing == Timing::Learned,
                .verdict = verdict_of(step.conditions, step.threads)};
  if (derived == nullptr) return out;
  for_each_access(*derived->graph, derived->accesses, step, [&](const StepAccess& row) {
    if (!row.write) out.read += row.touched;
  });
  return out;
}

// The session of the draft model, a file in the folder of this one that the collector named.
// nullopt: it is not there, or it is another one. The names of an untrusted file are checked.
std::optional<SessionReader> draft_session(const SessionReader& reader, const SessionInfo& info) {
  const std::string name(info.fact("attach.draft_session"));
  if (name.empty() || name.contains('/') || name.contains('\0')) return std::nullopt;
  auto other = SessionReader::open(reader.path().parent_path() / (name + ".ttrace"));
  if (!other) return std::nullopt;
  const auto found = other->info();
  if (!found || found->id != name || found->fact("attach.role") != "draft" ||
      found->fact("attach.pid") != info.fact("attach.pid"))
    return std::nullopt;
  return *std::move(other);
}

struct TargetStep {
  TimedStep timed;
  std::optional<Evaluated> tokens;
};

std::expected<std::vector<TargetStep>, TraceError> target_steps(const SessionReader& reader,
                                                                const SessionInfo& info,
                                                                const ContinueCheck& keep_going) {
  std::vector<TargetStep> steps;
  DerivedGraphCache graphs(reader);
  const auto walked = walk_steps(
      reader, kAllRows, keep_going, [&](const Step& step) -> std::expected<void, TraceError> {
        auto tokens = evaluated(reader, step);
        if (!tokens) return std::unexpected(tokens.error());
        const auto derived = graphs.of(step.graph);
        if (!derived) return std::unexpected(derived.error());
        steps.push_back({.timed = timed(info, *derived, step), .tokens = *tokens});
        return {};
      });
  if (!walked) return std::unexpected(walked.error());
  return steps;
}

// A draft, and when its step and the one before it were. The number of a step is not its place in a
// list: rows of a damaged file may be missing.
struct TimedDraft {
  CheckedDraft draft;
  std::int64_t begin = 0, previous_end = 0;  // Unix time, ns
  bool learned = false;
  // Of the step, and of the steps of the draft model: the first one that is not clean.
  std::optional<Verdict> verdict;
};

std::vector<TimedDraft> checks_of(const std::vector<TargetStep>& steps) {
  std::vector<TimedDraft> checks;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& [time, tokens] = steps[i];
    if (!tokens || !is_check(*tokens)) continue;
    const auto next = i + 1 < steps.size() ? steps[i + 1].tokens : std::nullopt;
    checks.push_back({.draft = {.step = tokens->step,
                                .drafted = tokens->tokens - 1,
                                .accepted = accepted_by(*tokens, next),
                                .check = time.took,
                                .check_read = time.read},
                      .begin = time.begin,
                      .previous_end = i > 0 ? steps[i - 1].timed.end : INT64_MIN,
                      .learned = time.learned,
                      .verdict = time.verdict});
  }
  return checks;
}

// Adds the steps of the draft model to the draft that the next step of the target checked.
std::expected<void, TraceError> add_draft_steps(const SessionReader& draft,
                                                std::vector<TimedDraft>& checks,
                                                const ContinueCheck& keep_going) {
  const auto info = draft.info();
  if (!info) return std::unexpected(info.error());
  for (TimedDraft& check : checks) {
    check.draft.draft_steps = 0;
    check.draft.draft = Ns{};
    check.draft.draft_read = Bytes{};
  }
  auto next = checks.begin();
  return walk_derived_steps(draft, kAllRows, keep_going,
                            [&](const DerivedPtr& derived, const Step& step) {
                              const TimedStep row = timed(*info, derived, step);
                              const std::int64_t middle = std::midpoint(row.begin, row.end);
                              while (next != checks.end() && next->begin < middle) ++next;
                              // Or between other steps of the target: those of its prompt, or
                              // without a draft.
                              if (next == checks.end() || next->previous_end > middle) return;
                              CheckedDraft& of = next->draft;
                              ++*of.draft_steps;
                              *of.draft = *of.draft + row.took;
                              *of.draft_read += row.read;
                              if (!is_disturbed(next->verdict) && is_disturbed(row.verdict))
                                next->verdict = row.verdict;
                            });
}

std::optional<Ns> median(std::vector<Ns> times) {
  const auto spread = spread_of(std::move(times));
  return spread ? std::optional(spread->median) : std::nullopt;
}

template <class Number>
Number part_of(Number whole, std::uint64_t part, std::uint64_t of) {
  const double share = of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
  return Number{static_cast<decltype(whole.v)>(std::llround(static_cast<double>(whole.v) * share))};
}

void add_totals(DraftLedger& ledger, const std::vector<TimedDraft>& checks) {
  DraftStage draft{.stage = "draft"}, check{.stage = "check"}, rejected{.stage = "rejected"};
  for (const TimedDraft& checked : checks) {
    const CheckedDraft& row = checked.draft;
    if (!row.accepted) continue;
    const std::uint32_t lost = row.drafted - *row.accepted;
    ++ledger.known;
    ledger.drafted += row.drafted;
    ledger.accepted += *row.accepted;
    ledger.rejected += lost;
    check.tokens += row.drafted + std::uint64_t{1};
    check.time = check.time + row.check;
    check.read += row.check_read;
    rejected.time = rejected.time + part_of(row.check, lost, row.drafted + std::uint64_t{1});
    rejected.read += part_of(row.check_read, lost, row.drafted + std::uint64_t{1});
    if (!row.draft) continue;
    draft.tokens += row.drafted;
    draft.time = draft.time + *row.draft;
    draft.read += *row.draft_read;
    rejected.time = rejected.time + part_of(*row.draft, lost, row.drafted);
    rejected.read += part_of(*row.draft_read, lost, row.drafted);
  }
  rejected.tokens = ledger.rejected;
  if (!ledger.draft_session.empty()) ledger.stages.push_back(draft);
  ledger.stages.push_back(check);
  ledger.stages.push_back(rejected);
}

// The steps whose times are compared: with a draft of known result, or with one token.
void add_medians(DraftLedger& ledger, const std::vector<TimedDraft>& checks,
                 const std::vector<TargetStep>& steps) {
  const auto is_compared = [](const TimedDraft& row) { return row.draft.accepted && !row.learned; };
  const auto is_plain = [](const TargetStep& step) {
    return step.tokens && step.tokens->tokens == 1 && !step.timed.learned;
  };
  VerdictCounts verdicts;
  for (const TimedDraft& row : checks)
    if (is_compared(row)) verdicts.add(row.verdict);
  for (const TargetStep& step : steps)
    if (is_plain(step)) verdicts.add(step.timed.verdict);
  // The medians are of the steps that nothing disturbed, if there are any.
  const bool has_undisturbed = verdicts.undisturbed() > 0;
  const auto is_used = [&](const std::optional<Verdict>& verdict) {
    return !has_undisturbed || !is_disturbed(verdict);
  };
  ledger.disturbed = has_undisturbed ? verdicts.disturbed() : 0;
  ledger.verdict = has_undisturbed ? verdicts.of_undisturbed() : verdicts.of_disturbed();
  std::vector<Ns> draft_times, check_times, plain_times;
  for (const TimedDraft& row : checks) {
    if (!is_compared(row) || !is_used(row.verdict)) continue;
    check_times.push_back(row.draft.check);
    if (row.draft.draft) draft_times.push_back(*row.draft.draft);
  }
  for (const TargetStep& step : steps)
    if (is_plain(step) && is_used(step.timed.verdict)) plain_times.push_back(step.timed.took);
  ledger.plain_steps = plain_times.size();
  ledger.draft = median(std::move(draft_times));
  ledger.check = median(std::move(check_times));
  if (ledger.plain_steps >= kMinPlainSteps) ledger.plain = median(std::move(plain_times));
  if (!ledger.plain || !ledger.draft || !ledger.check) return;
  ledger.cost = *ledger.draft + (*ledger.check - *ledger.plain);
  ledger.saving = part_of(*ledger.plain, ledger.accepted, ledger.known);
}

}  // namespace

std::optional<double> DraftLedger::accepted_share() const {
  if (drafted == 0) return std::nullopt;
  return static_cast<double>(accepted) / static_cast<double>(drafted);
}

std::expected<DraftLedger, TraceError> draft_ledger(const SessionReader& reader, PageRange rows,
                                                    const ContinueCheck& keep_going) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const auto steps = target_steps(reader, *info, keep_going);
  if (!steps) return std::unexpected(steps.error());
  std::vector<TimedDraft> checks = checks_of(*steps);
  DraftLedger ledger;
  ledger.total = checks.size();
  if (ledger.total == 0) return ledger;
  if (const auto draft = draft_session(reader, *info)) {
    ledger.draft_session = info->fact("attach.draft_session");
    if (auto added = add_draft_steps(*draft, checks, keep_going); !added)
      return std::unexpected(added.error());
  }
  add_totals(ledger, checks);
  add_medians(ledger, checks, *steps);
  for (std::uint64_t row = 0; const TimedDraft& check : checks)
    if (rows.contains(row++)) ledger.drafts.push_back(check.draft);
  return ledger;
}

std::expected<std::uint64_t, TraceError> rejected_tokens(const SessionReader& reader, StepId first,
                                                         StepId last) {
  std::uint64_t rejected = 0;
  std::optional<Evaluated> before;
  if (last.v < first.v) return 0;
  std::expected<void, TraceError> stopped;
  const auto walked =
      reader.for_each_step_row(first, last.v - first.v + 1, [&](const SessionReader::StepRow& row) {
        const auto tokens = evaluated(reader, row.head);
        if (!tokens) {
          stopped = std::unexpected(tokens.error());
          return false;
        }
        if (before && is_check(*before))
          if (const auto accepted = accepted_by(*before, *tokens))
            rejected += before->tokens - 1 - *accepted;
        before = *tokens;
        return true;
      });
  if (!stopped) return std::unexpected(stopped.error());
  if (!walked) return std::unexpected(walked.error());
  return rejected;
}

static Fields<CheckedDraft> fields_of(const CheckedDraft*) {
  constexpr const char* kNoDraftSession = "the session of the draft model is not there";
  return Fields<CheckedDraft>("CheckedDraft")
      .add("step", "of the target, which checked the draft", &CheckedDraft::step)
      .add("drafted", "tokens", &CheckedDraft::drafted)
      .add("accepted", "tokens", &CheckedDraft::accepted,
           {.null = "no step follows that continues the text"})
      .add("check_ns", "time of the step", &CheckedDraft::check)
      .add("check_read", "bytes that the step read", &CheckedDraft::check_read)
      .add("draft_steps", "steps of the draft model since the step of the target before",
           &CheckedDraft::draft_steps, {.null = kNoDraftSession})
      .add("draft_ns", "their time", &CheckedDraft::draft, {.null = kNoDraftSession})
      .add("draft_read", "bytes that they read", &CheckedDraft::draft_read,
           {.null = kNoDraftSession});
}

static Fields<DraftStage> fields_of(const DraftStage*) {
  return Fields<DraftStage>("DraftStage")
      .add("stage",
           "draft: the draft model; check: the target; rejected: of both, the share of the "
           "tokens that were not accepted",
           &DraftStage::stage)
      .add("tokens", "evaluated", &DraftStage::tokens)
      .add("time_ns", "", &DraftStage::time)
      .add("read", "bytes", &DraftStage::read);
}

Fields<DraftLedger> fields_of(const DraftLedger*) {
  constexpr const char* kTooFew =
      "fewer than 5 steps with one token, or the session of the draft model is not there";
  return Fields<DraftLedger>("DraftLedger")
      .add("draft_session",
           "of the draft model, beside this session; empty: only the work of the target is "
           "known",
           &DraftLedger::draft_session)
      .add("total", "drafts; rows before `from` and `limit` are applied", &DraftLedger::total)
      .add("known", "drafts whose result is known; the other fields are of these",
           &DraftLedger::known)
      .add("drafted", "tokens", &DraftLedger::drafted)
      .add("accepted", "tokens", &DraftLedger::accepted)
      .add("rejected", "tokens", &DraftLedger::rejected)
      .add("accepted_share", "of the drafted tokens", &DraftLedger::accepted_share,
           {.null = "no draft has a known result"})
      .add("disturbed",
           "steps with a draft or one token that are left out of the following times: their "
           "verdict is not clean",
           &DraftLedger::disturbed)
      .add("verdict", "of the steps that the following times are of", &DraftLedger::verdict,
           {.null = "not recorded"})
      .add("draft_ns", "median time of the draft model per draft", &DraftLedger::draft,
           {.null = "the session of the draft model is not there"})
      .add("check_ns", "median time of the step that checks a draft", &DraftLedger::check,
           {.null = "no draft has a usable time"})
      .add("plain_steps", "steps of the target with one token whose times are used",
           &DraftLedger::plain_steps)
      .add("plain_ns", "their median time", &DraftLedger::plain,
           {.null = "fewer than 5 such steps"})
      .add("cost_ns",
           "what a draft costs: the draft model, and the step that checks it above one with one "
           "token",
           &DraftLedger::cost, {.null = kTooFew})
      .add("saving_ns", "what the accepted tokens of a draft would have cost without it",
           &DraftLedger::saving, {.null = kTooFew})
      .add("stages", "totals", &DraftLedger::stages)
      .add("drafts", "one page", &DraftLedger::drafts);
}

}  // namespace tt
