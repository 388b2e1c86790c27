#include "tracer/text/recorded_answer.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <string_view>

namespace tt {

namespace {

std::vector<std::string> stops_of(const SessionInfo& info) {
  std::vector<std::string> stops;
  for (const auto& [name, value] : info.facts)
    if (name.starts_with("request.stop.")) stops.push_back(value);
  return stops;
}

std::vector<std::pair<std::int32_t, std::int32_t>> silent_of(const SessionInfo& info) {
  for (const auto& [name, value] : info.facts)
    if (name == "request.silent") return parse_ranges(value);
  return {};
}

}  // namespace

std::string format_ranges(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t last = i;
    while (last + 1 < ids.size() && ids[last + 1] == ids[last] + 1) ++last;
    text += std::format("{}{}", text.empty() ? "" : " ", ids[i]);
    if (last > i) text += std::format("-{}", ids[last]);
    i = last + 1;
  }
  return text;
}

std::vector<std::pair<std::int32_t, std::int32_t>> parse_ranges(const std::string& text) {
  std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    std::int32_t first = 0;
    const auto begin = std::from_chars(at, end, first);
    if (begin.ec != std::errc{} || first < 0) {
      at = std::max(begin.ptr, at + 1);
      continue;
    }
    std::int32_t last = first;
    at = begin.ptr;
    if (at < end && *at == '-') {
      const auto close = std::from_chars(at + 1, end, last);
      if (close.ec == std::errc{}) at = close.ptr;
    }
    if (first <= last) ranges.emplace_back(first, last);
  }
  return ranges;
}

RecordedAnswer::RecordedAnswer(const SessionInfo& info)
    : stream_(stops_of(info)), silent_(silent_of(info)) {
  std::ranges::sort(silent_);
}

bool RecordedAnswer::is_silent(std::int32_t id) const {
  const auto after =
      std::ranges::upper_bound(silent_, id, {}, [](const auto& r) { return r.first; });
  return after != silent_.begin() && id <= std::prev(after)->second;
}

std::string RecordedAnswer::push(const Token& token) {
  if (!in_answer(token) || is_silent(token.id)) return {};
  return stream_of(token.sequence).push(token.text);
}

std::string RecordedAnswer::rest(std::optional<std::uint32_t> sequence) {
  return stream_of(sequence).flush();
}

TextStream& RecordedAnswer::stream_of(std::optional<std::uint32_t> sequence) {
  if (!sequence) return stream_;
  return streams_.try_emplace(*sequence, std::vector<std::string>{}).first->second;
}

std::uint32_t answer_look_back(const SessionInfo& info) {
  // The tokens of several sequences alternate, and a token may have no text.
  constexpr std::size_t kTokens = 64, kMaxTokens = 4096;
  std::size_t most = kTokens;
  for (const std::string& stop : stops_of(info)) most = std::max(most, 2 * stop.size());
  return static_cast<std::uint32_t>(std::min(most, kMaxTokens));
}

std::vector<std::string> answer_texts(const SessionInfo& info, std::span<const Token> before,
                                      std::span<const Token> tokens, bool is_end) {
  RecordedAnswer answer(info);
  for (const Token& token : before) answer.push(token);
  std::vector<std::string> texts;
  std::map<std::optional<std::uint32_t>, std::size_t> last;
  for (const Token& token : tokens) {
    if (in_answer(token)) last[token.sequence] = texts.size();
    texts.push_back(answer.push(token));
  }
  if (is_end)
    for (const auto& [sequence, at] : last) texts[at] += answer.rest(sequence);
  return texts;
}

std::vector<SequenceAnswer> recorded_answers(const SessionInfo& info,
                                             std::span<const Token> tokens) {
  RecordedAnswer answer(info);
  std::map<std::optional<std::uint32_t>, std::string> texts;
  std::map<std::optional<std::uint32_t>, std::uint32_t> first;  // positions
  for (const Token& token : tokens) {
    if (!token.reused && token.position >= 0)
      first.try_emplace(token.sequence, static_cast<std::uint32_t>(token.position));
    if (in_answer(token)) texts[token.sequence] += answer.push(token);
  }
  std::vector<SequenceAnswer> answers;
  for (auto& [sequence, text] : texts)
    answers.push_back({.sequence = sequence,
                       .text = std::move(text) + answer.rest(sequence),
                       .reused = first[sequence]});
  return answers;
}

}  // namespace tt
