#include "api/exchange/timeline/step_tokens.h"

#include <algorithm>
#include <cstddef>

#include "tracer/text/utf8.h"

namespace tt::exchange {
namespace {

constexpr std::size_t kMaxBytes = 80;

}  // namespace

std::expected<std::string, TraceError> text_of_tokens(const SessionReader& reader,
                                                      const Step& step) {
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(step.n_tokens, kMaxBytes));
  const auto tokens = reader.tokens(step.first_token, count);
  if (!tokens) return std::unexpected(tokens.error());
  std::string text;
  std::size_t used = 0;
  while (used < tokens->size() && text.size() < kMaxBytes) text += (*tokens)[used++].text;
  const bool complete = (used == step.n_tokens || used == 0) && text.size() <= kMaxBytes;
  return to_valid_utf8(utf8_prefix(text, kMaxBytes)) + (complete ? "" : "...");
}

}  // namespace tt::exchange
