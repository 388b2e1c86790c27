#include "attach/collector/prompt_history.h"

#include <algorithm>
#include <utility>

namespace tt::attach {

namespace {

constexpr std::size_t kMaxRequests = 8;  // as many as a server has slots, usually
// Of a cache that all slots share: requests that may go on.
constexpr std::size_t kMaxCurrent = 64;

}  // namespace

void PromptHistory::add(std::span<const std::int64_t> ids, std::span<const BatchToken> batch,
                        std::span<const TokenRun> runs) {
  const auto has_slot = [&](const TokenRun& run) { return batch[run.begin].in_cache.has_value(); };
  // Without their slots, requests at the same time may be taken for each other.
  if (runs.size() > 1 && !std::ranges::all_of(runs, has_slot)) forget();
  for (const TokenRun& run : runs) {
    const auto position = static_cast<std::size_t>(std::max(0, run.position));
    auto found = current_.find(run.request);
    if (found == current_.end()) {
      if (run.sequence) continue;
      const auto slot = batch[run.begin].in_cache;
      found = current_.emplace(run.request, begin(slot, position)).first;
    }
    Current& request = found->second;
    const auto end = position + (run.end - run.begin);
    if (!run.generated) request.prompt = end;
    if (!request.known) continue;
    if (position < request.reused || position > request.tokens.size()) {
      request.began = request.known = false;
      continue;
    }
    request.tokens.resize(position);  // without a draft that was not accepted
    for (const std::int64_t id : ids.subspan(run.begin, run.end - run.begin))
      request.tokens.push_back(static_cast<std::int32_t>(id));
  }
  forgot_ = false;
}

// A request begins: those of its slot are over.
PromptHistory::Current PromptHistory::begin(std::optional<std::uint32_t> slot,
                                            std::size_t position) {
  for (auto at = current_.begin(); at != current_.end();) {
    const bool is_over = at->second.slot == slot || current_.size() > kMaxCurrent;
    if (is_over) keep(std::move(at->second));
    at = is_over ? current_.erase(at) : std::next(at);
  }
  Current request;
  request.slot = slot;
  request.reused = position;
  request.began = !forgot_ || position == 0;
  if (auto tokens = request.began ? held(slot, position) : std::nullopt) {
    request.tokens = *std::move(tokens);
    request.known = true;
  }
  return request;
}

void PromptHistory::forget() {
  before_.clear();
  for (auto& [number, request] : current_) request.began = request.known = false;
  forgot_ = true;
}

std::span<const std::int32_t> PromptHistory::reused(std::uint32_t number) const {
  const auto found = current_.find(number);
  if (found == current_.end() || !found->second.known) return {};
  return std::span(found->second.tokens).first(found->second.reused);
}

std::optional<std::vector<std::int32_t>> PromptHistory::held(std::optional<std::uint32_t> slot,
                                                             std::size_t count) const {
  if (count == 0) return std::vector<std::int32_t>();
  const auto last = slot ? std::ranges::find(before_, slot, &Request::slot) : before_.end();
  if (last != before_.end() && last->tokens.size() >= count && last->tokens.size() <= 2 * count)
    return std::vector(last->tokens.begin(),
                       last->tokens.begin() + static_cast<std::ptrdiff_t>(count));
  std::optional<std::vector<std::int32_t>> all;
  const auto agrees = [&](std::span<const std::int32_t> tokens) {
    if (tokens.empty()) return false;
    if (tokens.size() < count) return true;
    const auto begin = tokens.first(count);
    if (!all) all.emplace(begin.begin(), begin.end());
    return std::ranges::equal(*all, begin);
  };
  for (const Request& request : before_)
    if (!agrees(request.tokens)) return std::nullopt;
  for (const auto& [number, request] : current_)
    if (!request.known || !agrees(request.tokens)) return std::nullopt;
  return all;
}

void PromptHistory::keep(Current&& request) {
  if (!request.known) request.tokens.clear();
  before_.push_front({.session = "", .slot = request.slot, .tokens = std::move(request.tokens)});
  if (before_.size() > kMaxRequests) before_.pop_back();
}

std::optional<PromptHistory::Comparison> PromptHistory::end(const std::string& session,
                                                            const TokenWords& words) {
  std::optional<Comparison> out;
  if (current_.size() == 1 && current_.begin()->second.began &&
      current_.begin()->second.prompt > 0) {
    const Current& own = current_.begin()->second;
    out.emplace();
    out->prompt_tokens = static_cast<std::uint32_t>(own.prompt);
    out->reused = static_cast<std::uint32_t>(own.reused);
    const Request* best = nullptr;
    std::size_t most = 0;
    const auto whole = std::span<const std::int32_t>(own.tokens).first(own.known ? own.prompt : 0);
    for (const Request& request : before_) {
      const std::size_t common = common_tokens(request.tokens, whole);
      if (!own.known || request.tokens.empty() || common < own.reused ||
          (best != nullptr && common <= most))
        continue;
      best = &request;
      most = common;
    }
    if (best != nullptr) {
      out->cached = compare_prompt(best->tokens, whole, words);
      out->cached.session = best->session.empty() ? session : best->session;
      // The last token of a prompt is evaluated in any case.
      if (out->cached.common > out->reused + 1) out->cached.end = ReuseEnd::NotKept;
    }
  }
  for (auto& [number, request] : std::exchange(current_, {})) keep(std::move(request));
  for (Request& request : before_)
    if (request.session.empty()) request.session = session;
  return out;
}

}  // namespace tt::attach
