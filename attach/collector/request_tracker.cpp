#include "attach/collector/request_tracker.h"

#include <algorithm>
#include <utility>

namespace tt::attach {

namespace {

// A draft has fewer tokens than this; a longer run with outputs is a prompt whose outputs are asked
// for.
constexpr std::size_t kMaxChecked = 64;
// Sequences that may go on; a program that only evaluates prompts never says that one is over.
constexpr std::size_t kMaxSequences = 64;

bool all_outputs(std::span<const BatchToken> tokens) {
  return std::ranges::all_of(tokens, &BatchToken::output);
}

}  // namespace

std::vector<TokenRun> RequestTracker::runs_of(std::span<const BatchToken> tokens) const {
  std::vector<TokenRun> runs;
  std::vector<bool> taken(sequences_.size());  // by a run before
  std::uint32_t requests = requests_;
  for (std::size_t begin = 0; begin < tokens.size();) {
    const std::size_t end = end_of_run(tokens, begin, taken);
    const bool outputs = all_outputs(tokens.subspan(begin, end - begin));
    TokenRun run;
    run.begin = begin;
    run.end = end;
    run.position = tokens[begin].position;
    run.sequence = continued(taken, tokens[begin], outputs);
    if (run.sequence) {
      const Sequence& sequence = sequences_[*run.sequence];
      taken[*run.sequence] = true;
      run.request = sequence.request;
      run.generated = sequence.output && outputs && end - begin <= kMaxChecked;
      run.goes_back = run.generated && !moved_ && run.position < sequence.next;
    } else {
      run.request = ++requests;
    }
    runs.push_back(run);
    begin = end;
  }
  if (is_same_batch(runs, taken))
    for (TokenRun& run : runs) run.same_batch = true;
  return runs;
}

// A batch has tokens of all requests that generate. It may be evaluated in several steps, with as
// many tokens of each sequence: the last steps have the rest of the longest drafts. So a step that
// lacks a request may be of the batch before, or the request is over.
bool RequestTracker::is_same_batch(std::span<const TokenRun> runs,
                                   const std::vector<bool>& taken) const {
  bool any_missing = false;
  for (std::size_t s = 0; s < sequences_.size(); ++s)
    any_missing = any_missing || (!taken[s] && sequences_[s].in_batch && sequences_[s].output);
  return has_drafts_ && any_missing && std::ranges::all_of(runs, [&](const TokenRun& run) {
           if (!run.sequence || run.goes_back) return false;
           const Sequence& sequence = sequences_[*run.sequence];
           if (!sequence.in_batch || run.position != sequence.next) return false;
           if (!run.generated) return !sequence.output;
           const auto tokens = static_cast<std::size_t>(sequence.next - sequence.begin);
           return sequence.generated_last && tokens + (run.end - run.begin) <= kMaxChecked;
         });
}

std::size_t RequestTracker::end_of_run(std::span<const BatchToken> tokens, std::size_t begin,
                                       const std::vector<bool>& taken) const {
  const auto own = continued(taken, tokens[begin], tokens[begin].output);
  const auto is_expected = [&](const BatchToken& token) {
    for (std::size_t s = 0; s < sequences_.size(); ++s)
      if (!taken[s] && s != own && sequences_[s].next == token.position &&
          may_be(sequences_[s], token.in_cache))
        return true;
    return false;
  };
  std::size_t end = begin + 1;
  for (; end < tokens.size(); ++end) {
    const BatchToken &before = tokens[end - 1], &token = tokens[end];
    if (token.position != before.position + 1 || token.in_cache != before.in_cache) break;
    if (before.output && (!token.output || is_expected(token))) break;
  }
  return end;
}

// `first`: of the run; `outputs`: of all its tokens.
std::optional<std::size_t> RequestTracker::continued(const std::vector<bool>& taken,
                                                     const BatchToken& first, bool outputs) const {
  const auto find = [&](auto matches) -> std::optional<std::size_t> {
    for (std::size_t s = 0; s < sequences_.size(); ++s)
      if (!taken[s] && may_be(sequences_[s], first.in_cache) && matches(sequences_[s])) return s;
    return std::nullopt;
  };
  const std::int32_t position = first.position;
  const auto exact = find([&](const Sequence& sequence) {
    return position == sequence.next && (outputs || !sequence.output);
  });
  if (exact) return exact;
  return find([&](const Sequence& sequence) {
    if (!sequence.output) return moved_ && position > sequence.next;
    // Tokens of a draft that were not accepted are evaluated again; the first one is always
    // accepted.
    return outputs && position < sequence.next &&
           (moved_ || (sequence.generated_last && position > sequence.begin));
  });
}

bool RequestTracker::ends_before(std::span<const TokenRun> runs) const {
  return !sequences_.empty() && !runs.empty() &&
         std::ranges::none_of(runs, [](const TokenRun& run) { return run.sequence.has_value(); });
}

// Whether this sequence, of which the step has no token, is over. Where the cache tells sequences
// apart, it is when another request has taken its place. Elsewhere a step without generated tokens
// says nothing, because a batch begins with the next token of each sequence that generates, but may
// be evaluated in several steps.
bool RequestTracker::is_over(const Sequence& sequence, std::span<const TokenRun> runs,
                             std::span<const BatchToken> tokens) const {
  if (sequence.in_cache)
    return std::ranges::any_of(runs, [&](const TokenRun& run) {
      return !run.sequence && tokens[run.begin].in_cache == sequence.in_cache;
    });
  return std::ranges::any_of(runs, &TokenRun::generated);
}

bool RequestTracker::may_go_on(std::span<const BatchToken> tokens,
                               std::span<const TokenRun> runs) const {
  return std::ranges::any_of(sequences_, [&](const Sequence& sequence) {
    return sequence.in_cache && sequence.output && !is_over(sequence, runs, tokens);
  });
}

void RequestTracker::add(std::span<const BatchToken> tokens, std::span<const TokenRun> runs,
                         std::int64_t begin, std::int64_t end) {
  if (runs.empty()) return;
  const std::vector<Sequence> before = std::exchange(sequences_, {});
  std::vector<bool> taken(before.size());
  for (const TokenRun& run : runs) {
    Sequence sequence;
    if (run.sequence) {
      sequence = before[*run.sequence];
      taken[*run.sequence] = true;
    } else {
      ++requests_;
    }
    // Tokens of a draft that were not accepted.
    if (run.goes_back) {
      const auto again =
          std::min(sequence.generated, static_cast<std::uint32_t>(sequence.next - run.position));
      sequence.generated -= again;
      rejected_ += again;
    }
    sequence.request = run.request;
    if (tokens[run.begin].in_cache) sequence.in_cache = tokens[run.begin].in_cache;
    if (!run.same_batch) sequence.begin = run.position;
    sequence.next = run.position + static_cast<std::int32_t>(run.end - run.begin);
    sequence.output = tokens[run.end - 1].output;
    sequence.generated_last = run.generated;
    sequence.in_batch = true;
    has_drafts_ = has_drafts_ || (run.generated && run.end - run.begin > 1);
    if (run.generated) {
      if (sequence.generated == 0) sequence.first = begin;
      sequence.last = end;
      sequence.generated += static_cast<std::uint32_t>(run.end - run.begin);
    }
    sequences_.push_back(sequence);
  }
  moved_ = false;
  for (std::size_t s = 0; s < before.size(); ++s) {
    if (taken[s]) continue;
    if (!is_over(before[s], runs, tokens) && sequences_.size() < kMaxSequences) {
      sequences_.push_back(before[s]);
      sequences_.back().in_batch = before[s].in_batch && runs.front().same_batch;
    } else if (const auto time = before[s].ns_per_token()) {
      slowest_ = std::max(slowest_.value_or(0), *time);
    }
  }
}

void RequestTracker::forget_cache() {
  for (Sequence& sequence : sequences_) sequence.in_cache = std::nullopt;
}

void RequestTracker::end() { *this = {}; }

std::optional<std::int64_t> RequestTracker::Sequence::ns_per_token() const {
  if (generated == 0) return std::nullopt;
  return (last - first) / generated;
}

std::optional<std::int64_t> RequestTracker::slowest_ns_per_token() const {
  std::optional<std::int64_t> slowest = slowest_;
  for (const Sequence& sequence : sequences_)
    if (const auto time = sequence.ns_per_token()) slowest = std::max(slowest.value_or(0), *time);
  return slowest;
}

}  // namespace tt::attach
