#include "analysis/tables/token_speed.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analysis/common/valid_prefix.h"
#include "analysis/speculation/draft_ledger.h"

namespace tt {

namespace {

// Times of a damaged file may be of any size.
std::int64_t between(Ns begin, Ns end) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(end.v) -
                                   static_cast<std::uint64_t>(begin.v));
}

std::optional<std::int64_t> time_fact(const SessionInfo& info, const char* name) {
  const auto ns = info.fact_number(name);
  return ns ? std::optional(static_cast<std::int64_t>(*ns)) : std::nullopt;
}

// Steps of phases `prompt` and `encode`, until generation begins.
struct Beginning {
  std::optional<Step> first_prompt, first_generate;
  Ns prompt_end{};
  std::uint64_t prompt_tokens = 0;
};

std::expected<Beginning, TraceError> read_beginning(const SessionReader& reader,
                                                    std::uint32_t steps) {
  Beginning found;
  const auto read =
      reader.for_each_step_row(StepId{0}, steps, [&](const SessionReader::StepRow& row) {
        const Step& step = row.head;
        if (step.phase == Phase::Generate) {
          found.first_generate = step;
          return false;
        }
        if (step.aborted) return true;
        if (!found.first_prompt) found.first_prompt = step;
        found.prompt_end = step.end;
        found.prompt_tokens += step.n_tokens;
        return true;
      });
  if (!read) return std::unexpected(read.error());
  return found;
}

// The last generating step. Other steps do not follow it, but rows may be missing.
std::expected<std::optional<Step>, TraceError> last_generate(const SessionReader& reader,
                                                             StepId first, std::uint32_t steps) {
  std::optional<Step> last;
  for (std::uint64_t count = 1; !last; count *= 16) {
    const std::uint64_t all = steps - first.v;
    const auto some = static_cast<std::uint32_t>(std::min(count, all));
    const auto read = reader.for_each_step_row(StepId{steps - some}, some,
                                               [&](const SessionReader::StepRow& row) {
                                                 if (row.head.phase == Phase::Generate)
                                                   last = row.head;
                                                 return true;
                                               });
    if (!read) return std::unexpected(read.error());
    if (some == all) break;
  }
  return last;
}

// ---- Requests of a program that was attached to ----

using Times = std::vector<std::pair<Ns, Ns>>;

// Together: requests may be evaluated at the same time.
std::int64_t length(Times times) {
  std::ranges::sort(times);
  std::int64_t sum = 0;
  std::optional<Ns> end;
  for (const auto& [from, to] : times) {
    const Ns begin = end ? std::max(*end, from) : from;
    if (to > begin) sum += between(begin, to);
    end = end ? std::max(*end, to) : to;
  }
  return sum;
}

struct StepTokens {
  std::uint64_t first = 0, end = 0;  // indices
  Ns begin{}, finished{};
};

// Adds the steps up to `end`. A token that does not say which request it belongs to is of none.
std::expected<void, TraceError> add_requests(const SessionReader& reader, std::uint32_t end,
                                             RequestsSoFar& so_far) {
  constexpr std::uint32_t kAtOnce = 4096;
  std::vector<StepTokens> evaluated;
  const auto read = reader.for_each_step_row(
      StepId{so_far.steps}, end - so_far.steps, [&](const SessionReader::StepRow& row) {
        const Step& step = row.head;
        if (!step.aborted && step.n_tokens > 0)
          evaluated.push_back({.first = step.first_token,
                               .end = std::uint64_t{step.first_token} + step.n_tokens,
                               .begin = step.begin,
                               .finished = step.end});
        return true;
      });
  if (!read) return std::unexpected(read.error());
  so_far.steps = end;
  auto step = evaluated.begin();
  while (step != evaluated.end()) {
    const std::uint64_t wanted =
        evaluated.back().end - std::min<std::uint64_t>(so_far.tokens, evaluated.back().end);
    const auto some = static_cast<std::uint32_t>(std::min<std::uint64_t>(kAtOnce, wanted));
    const auto tokens = reader.tokens(so_far.tokens, some);
    if (!tokens) return std::unexpected(tokens.error());
    if (tokens->empty()) break;
    so_far.tokens = tokens->back().index + 1;
    for (const Token& token : *tokens) {
      while (step != evaluated.end() && step->end <= token.index) ++step;
      if (step == evaluated.end()) break;
      if (token.index < step->first || !token.sequence || token.draft == Draft::Rejected) continue;
      RequestTimes& request = so_far.requests[*token.sequence];
      if (!request.begin) request.begin = step->begin;
      if (token.generated) {
        if (!request.first) request.first = step->begin;
        request.last = step->begin;
        ++request.generated;
      } else {
        request.prompt_end = step->finished;
        ++request.prompt;
      }
    }
  }
  return {};
}

// By request; empty: its tokens do not say which one they belong to.
std::expected<std::map<std::uint32_t, RequestTimes>, TraceError> read_requests(
    const SessionReader& reader, const SessionInfo& info, std::uint32_t steps,
    RequestsSoFar* so_far) {
  RequestsSoFar all;
  if (so_far != nullptr) {
    if (so_far->session != info.id || so_far->steps > steps) *so_far = {};
    so_far->session = info.id;
    if (steps > kStepsThatChange && steps - kStepsThatChange > so_far->steps) {
      if (auto added = add_requests(reader, steps - kStepsThatChange, *so_far); !added) {
        *so_far = {};
        return std::unexpected(added.error());
      }
    }
    all = *so_far;
  }
  return add_requests(reader, steps, all).transform([&] { return std::move(all.requests); });
}

// Between requests the program waits for the next one: this is the speed of none.
TokenSpeed speed_of(const std::map<std::uint32_t, RequestTimes>& requests) {
  TokenSpeed speed;
  Times prompts, generations;
  for (const auto& [number, request] : requests) {
    if (request.prompt > 0) prompts.emplace_back(*request.begin, request.prompt_end);
    speed.prompt_tokens += request.prompt;
    if (!request.first) continue;
    if (!speed.first_token_ns) speed.first_token_ns = between(*request.begin, *request.first);
    generations.emplace_back(*request.first, request.last);
    speed.tokens += request.generated - 1;
  }
  speed.prompt_ns = length(std::move(prompts));
  speed.ns = length(std::move(generations));
  return speed;
}

}  // namespace

std::optional<double> tokens_per_second(std::uint64_t tokens, std::int64_t ns) {
  if (tokens == 0 || ns <= 0) return std::nullopt;
  return static_cast<double>(tokens) * 1e9 / static_cast<double>(ns);
}

std::optional<double> TokenSpeed::sample_share() const {
  if (!sample_ns || ns <= 0) return std::nullopt;
  return std::clamp(static_cast<double>(*sample_ns) / static_cast<double>(ns), 0.0, 1.0);
}

std::expected<TokenSpeed, TraceError> token_speed(const SessionReader& reader,
                                                  RequestsSoFar* so_far) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  // A damaged file keeps its other answers.
  const auto steps = reader.step_rows();
  if (is_damaged(steps)) return TokenSpeed{};
  if (!steps) return std::unexpected(steps.error());
  if (!info->fact("attach.pid").empty()) {
    const auto requests = read_requests(reader, *info, *steps, so_far);
    if (!requests && !is_damaged(requests)) return std::unexpected(requests.error());
    if (requests && !requests->empty()) return speed_of(*requests);
  }
  const auto begun = read_beginning(reader, *steps);
  if (is_damaged(begun)) return TokenSpeed{};
  if (!begun) return std::unexpected(begun.error());
  TokenSpeed speed;
  if (begun->first_prompt) {
    speed.prompt_tokens = begun->prompt_tokens;
    speed.prompt_ns = between(begun->first_prompt->begin, begun->prompt_end);
  }
  if (const auto first = time_fact(*info, "result.first_token_ns")) {
    speed.first_token_ns = first;
    speed.ns = time_fact(*info, "result.generate_ns").value_or(0);
    speed.tokens =
        std::max<std::uint64_t>(1, info->fact_number("result.generated_tokens").value_or(0)) - 1;
    speed.sample_ns = time_fact(*info, "result.next_sample_ns");
    return speed;
  }
  if (!begun->first_generate) return speed;
  const Step& first = *begun->first_generate;
  speed.first_token_ns = first.begin.v;
  const auto last = last_generate(reader, first.id, *steps);
  if (is_damaged(last)) return speed;
  if (!last) return std::unexpected(last.error());
  if (!*last || (*last)->first_token <= first.first_token) return speed;
  speed.tokens = (*last)->first_token - first.first_token;
  // A program that was attached to may check drafts: its tokens are then all that it evaluated. The
  // steps are read only of a session that has not ended, which lacks the fact.
  if (info->fact_number("result.generated_tokens")) {
    speed.tokens -= std::min(speed.tokens, info->fact_number("result.rejected_tokens").value_or(0));
  } else if (!info->fact("attach.pid").empty()) {
    const auto rejected = rejected_tokens(reader, first.id, (*last)->id);
    if (!rejected && !is_damaged(rejected)) return std::unexpected(rejected.error());
    speed.tokens -= std::min(speed.tokens, rejected.value_or(0));
  }
  speed.ns = between(first.begin, (*last)->begin);
  return speed;
}

}  // namespace tt
