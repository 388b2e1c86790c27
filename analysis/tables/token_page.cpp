#include "analysis/tables/token_page.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tracer/text/recorded_answer.h"

namespace tt {

std::expected<Page<AnsweredToken>, TraceError> token_page(const SessionReader& reader,
                                                          PageRange range) {
  const auto total = reader.token_count();
  if (!total) return std::unexpected(total.error());
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  Page<AnsweredToken> page{.total = *total, .rows = {}};
  if (range.limit == 0 || range.from >= *total) return page;
  const auto before = std::min<std::uint64_t>(range.from, answer_look_back(*info));
  auto tokens = reader.tokens(static_cast<std::uint32_t>(range.from - before),
                              static_cast<std::uint32_t>(range.limit + before));
  if (!tokens) return std::unexpected(tokens.error());
  const auto own = std::span(*tokens).subspan(std::min<std::size_t>(before, tokens->size()));
  const bool is_end = info->state != SessionState::Running && range.from + own.size() >= *total;
  auto texts =
      answer_texts(*info, std::span(*tokens).first(tokens->size() - own.size()), own, is_end);
  for (std::size_t i = 0; i < own.size(); ++i)
    page.rows.push_back({.token = std::move(own[i]), .answer = std::move(texts[i])});
  return page;
}

}  // namespace tt
