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

}  // namespace

std::vector<TokenRun> RequestTracker::runs_of(std::span<const BatchToken> tokens) const {
  std::vector<TokenRun> runs;
  std::vector<bool> taken(sequences_.size());  // by a run before
  for (std::size_t begin = 0; begin < tokens.size();) {
    const std::int32_t position = tokens[begin].position;
    bool outputs = tokens[begin].output;
    const auto own = continued(taken, position, outputs);
    const auto is_expected = [&](std::int32_t next) {
      for (std::size_t s = 0; s < sequences_.size(); ++s)
        if (!taken[s] && s != own && sequences_[s].output && sequences_[s].next == next)
          return true;
      return false;
    };
    std::size_t end = begin + 1;
    for (; end < tokens.size() && tokens[end].position == tokens[end - 1].position + 1; ++end) {
      if (tokens[end - 1].output && !tokens[end].output) break;
      if (outputs && tokens[end].output && is_expected(tokens[end].position)) break;
      outputs = outputs && tokens[end].output;
    }
    const auto sequence = continued(taken, position, outputs);
    if (sequence) taken[*sequence] = true;
    runs.push_back({.begin = begin,
                    .end = end,
                    .position = position,
                    .sequence = sequence,
                    .generated = sequence && sequences_[*sequence].output && outputs &&
                                 end - begin <= kMaxChecked});
    begin = end;
  }
  return runs;
}

// `outputs`: of all tokens of the run.
std::optional<std::size_t> RequestTracker::continued(const std::vector<bool>& taken,
                                                     std::int32_t position, bool outputs) const {
  const auto find = [&](auto matches) -> std::optional<std::size_t> {
    for (std::size_t s = 0; s < sequences_.size(); ++s)
      if (!taken[s] && matches(sequences_[s])) return s;
    return std::nullopt;
  };
  const auto exact = find([&](const Sequence& sequence) {
    return position == sequence.next && (outputs || !sequence.output);
  });
  if (exact) return exact;
  return find([&](const Sequence& sequence) {
    if (!sequence.output) return moved_ && position > sequence.next;
    // Tokens of a draft that were not accepted are evaluated again; the first one is always
    // accepted.
    return outputs && position < sequence.next && (moved_ || position > sequence.begin);
  });
}

bool RequestTracker::ends_before(std::span<const TokenRun> runs) const {
  return !sequences_.empty() && !runs.empty() &&
         std::ranges::none_of(runs, [](const TokenRun& run) { return run.sequence.has_value(); });
}

void RequestTracker::add(std::span<const BatchToken> tokens, std::span<const TokenRun> runs,
                         std::int64_t begin, std::int64_t end) {
  if (runs.empty()) return;
  const std::vector<Sequence> before = std::exchange(sequences_, {});
  std::vector<bool> taken(before.size());
  bool any_generated = false;
  for (const TokenRun& run : runs) {
    Sequence sequence;
    if (run.sequence) {
      sequence = before[*run.sequence];
      taken[*run.sequence] = true;
    } else {
      ++requests_;
    }
    any_generated = any_generated || run.generated;
    // Tokens of a draft that were not accepted.
    if (run.generated && sequence.generated > 0 && !moved_) {
      const auto again = static_cast<std::uint32_t>(sequence.next - run.position);
      sequence.generated -= again;
      rejected_ += again;
    }
    sequence.begin = run.position;
    sequence.next = run.position + static_cast<std::int32_t>(run.end - run.begin);
    sequence.output = tokens[run.end - 1].output;
    if (run.generated) {
      if (sequence.generated == 0) sequence.first = begin;
      sequence.last = end;
      sequence.generated += static_cast<std::uint32_t>(run.end - run.begin);
    }
    sequences_.push_back(sequence);
  }
  moved_ = false;
  // A batch begins with the next token of each sequence that generates, but may be evaluated in
  // several steps: only a step with such tokens says that a sequence without one is over.
  for (std::size_t s = 0; s < before.size(); ++s) {
    if (taken[s]) continue;
    if (!any_generated && sequences_.size() < kMaxSequences) {
      sequences_.push_back(before[s]);
    } else if (const auto time = before[s].ns_per_token()) {
      slowest_ = std::max(slowest_.value_or(0), *time);
    }
  }
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
