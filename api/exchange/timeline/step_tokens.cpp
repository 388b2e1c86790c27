#include "api/exchange/timeline/step_tokens.h"

#include <algorithm>
#include <cstddef>

#include "tracer/text/utf8.h"

namespace tt::exchange {
namespace {

constexpr std::size_t kMostBytes = 80;

}  // namespace

std::expected<std::string, TraceError> text_of_tokens(const SessionReader& reader,
                                                      const Step& step) {
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(step.n_tokens, kMostBytes));
  const auto tokens = reader.tokens(step.first_token, count);
  if (!tokens) return std::unexpected(tokens.error());
  std::string text;
  std::size_t used = 0;
  while (used < tokens->size() && text.size() < kMostBytes) text += (*tokens)[used++].text;
  bool complete = used == step.n_tokens || used == 0;
  if (text.size() > kMostBytes) {
    complete = false;
    std::size_t end = kMostBytes;  // not within a character
    while (end > kMostBytes - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
  }
  return to_valid_utf8(text) + (complete ? "" : "...");
}

}  // namespace tt::exchange
