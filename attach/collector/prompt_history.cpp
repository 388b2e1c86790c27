#include "attach/collector/prompt_history.h"

#include <algorithm>
#include <utility>

namespace tt::attach {

namespace {

constexpr std::size_t kMaxRequests = 8;  // as many as a server has slots, usually

}  // namespace

void PromptHistory::add(std::span<const std::int64_t> ids, std::span<const TokenRun> runs) {
  if (unknown_ || runs.empty()) return;
  const TokenRun& run = runs.front();
  const auto position = static_cast<std::size_t>(std::max(0, run.position));
  if (!first_) first_ = position;
  if (runs.size() > 1 || position < *first_ || position - *first_ > tokens_.size()) return forget();
  tokens_.resize(position - *first_);  // without a draft that was not accepted
  for (const std::int64_t id : ids) tokens_.push_back(static_cast<std::int32_t>(id));
  if (!run.generated) prompt_ = tokens_.size();
}

void PromptHistory::forget() {
  before_.clear();
  unknown_ = first_.has_value();
}

std::optional<PromptHistory::Comparison> PromptHistory::end(const std::string& session,
                                                            const TokenWords& words) {
  const std::vector<std::int32_t> tokens = std::exchange(tokens_, {});
  const std::size_t reused = std::exchange(first_, std::nullopt).value_or(0);
  const std::size_t prompt = std::exchange(prompt_, 0);
  if (std::exchange(unknown_, false) || prompt == 0) return std::nullopt;

  const Request* best = nullptr;
  std::size_t most = 0;
  for (const Request& request : before_) {
    if (request.tokens.size() < reused) continue;
    const std::size_t common =
        common_tokens(std::span(request.tokens).subspan(reused), std::span(tokens).first(prompt));
    if (best != nullptr && common <= most) continue;
    best = &request;
    most = common;
  }
  Comparison out;
  Request own{.session = session, .tokens = {}};
  if (best == nullptr && reused > 0) {
    before_.clear();
    return std::nullopt;
  }
  if (best != nullptr)
    own.tokens.assign(best->tokens.begin(),
                      best->tokens.begin() + static_cast<std::ptrdiff_t>(reused));
  own.tokens.insert(own.tokens.end(), tokens.begin(), tokens.end());
  out.prompt_tokens = static_cast<std::uint32_t>(reused + prompt);
  out.reused = static_cast<std::uint32_t>(reused);
  if (best != nullptr) {
    out.cached = compare_prompt(best->tokens, std::span(own.tokens).first(reused + prompt), words);
    out.cached.session = best->session;
    // The last token of a prompt is evaluated in any case.
    if (out.cached.common > out.reused + 1) out.cached.end = ReuseEnd::NotKept;
  }
  before_.push_front(std::move(own));
  if (before_.size() > kMaxRequests) before_.pop_back();
  return out;
}

}  // namespace tt::attach
