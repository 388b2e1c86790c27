#include "attach/collector/prompt_history.h"

#include <algorithm>
#include <utility>

namespace tt::attach {

namespace {

constexpr std::size_t kMaxRequests = 8;  // as many as a server has slots, usually

}  // namespace

void PromptHistory::add(std::span<const std::int64_t> ids, std::span<const TokenRun> runs,
                        std::optional<std::uint32_t> slot) {
  if (unknown_ || runs.empty()) return;
  const TokenRun& run = runs.front();
  const auto position = static_cast<std::size_t>(std::max(0, run.position));
  if (!first_) {
    first_ = position;
    slot_ = slot;
  }
  if (runs.size() > 1 || position < *first_ || position - *first_ > tokens_.size()) return forget();
  tokens_.resize(position - *first_);  // without a draft that was not accepted
  for (const std::int64_t id : ids) tokens_.push_back(static_cast<std::int32_t>(id));
  if (!run.generated) prompt_ = tokens_.size();
}

void PromptHistory::forget() {
  before_.clear();
  unknown_ = first_.has_value();
}

std::optional<std::vector<std::int32_t>> PromptHistory::reused(std::optional<std::uint32_t> slot,
                                                               std::size_t count) const {
  if (count == 0) return std::vector<std::int32_t>();
  const auto begin_of = [&](const Request& request) {
    return std::span(request.tokens).first(count);
  };
  const auto last = slot ? std::ranges::find(before_, slot, &Request::slot) : before_.end();
  if (last != before_.end() && last->tokens.size() >= count && last->tokens.size() <= 2 * count) {
    const auto begin = begin_of(*last);
    return std::vector(begin.begin(), begin.end());
  }
  std::optional<std::vector<std::int32_t>> all;
  for (const Request& request : before_) {
    if (request.tokens.empty()) return std::nullopt;
    if (request.tokens.size() < count) continue;
    const auto begin = begin_of(request);
    if (!all) all.emplace(begin.begin(), begin.end());
    if (!std::ranges::equal(*all, begin)) return std::nullopt;
  }
  return all;
}

void PromptHistory::keep(Request request) {
  before_.push_front(std::move(request));
  if (before_.size() > kMaxRequests) before_.pop_back();
}

std::optional<PromptHistory::Comparison> PromptHistory::end(const std::string& session,
                                                            const TokenWords& words) {
  const std::vector<std::int32_t> tokens = std::exchange(tokens_, {});
  const std::size_t count = std::exchange(first_, std::nullopt).value_or(0);
  const std::size_t prompt = std::exchange(prompt_, 0);
  const auto slot = std::exchange(slot_, std::nullopt);
  if (std::exchange(unknown_, false) || prompt == 0) return std::nullopt;

  auto own = reused(slot, count);
  if (!own) {
    keep({.session = session, .slot = slot, .tokens = {}});
    return std::nullopt;
  }
  own->insert(own->end(), tokens.begin(), tokens.end());
  const std::span<const std::int32_t> whole = std::span(*own).first(count + prompt);
  const Request* best = nullptr;
  std::size_t most = 0;
  for (const Request& request : before_) {
    const std::size_t common = common_tokens(request.tokens, whole);
    if (request.tokens.empty() || common < count || (best != nullptr && common <= most)) continue;
    best = &request;
    most = common;
  }
  Comparison out;
  out.prompt_tokens = static_cast<std::uint32_t>(whole.size());
  out.reused = static_cast<std::uint32_t>(count);
  if (best != nullptr) {
    out.cached = compare_prompt(best->tokens, whole, words);
    out.cached.session = best->session;
    // The last token of a prompt is evaluated in any case.
    if (out.cached.common > out.reused + 1) out.cached.end = ReuseEnd::NotKept;
  }
  keep({.session = session, .slot = slot, .tokens = *std::move(own)});
  return out;
}

}  // namespace tt::attach
