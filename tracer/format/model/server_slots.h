// The slots of a llama-server in which the requests of a session were evaluated: the fact
// attach.server_slots. "0 1 -": those of the requests 1, 2 and 3 (Token::sequence); -: not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/format/model/session.h"
#include "tracer/text/parse_number.h"

namespace tt {

inline constexpr std::size_t kMaxServerSlots = 4096;  // requests; those of later ones are not kept

// By request, from the first one.
using ServerSlots = std::vector<std::optional<std::uint32_t>>;

inline std::string format_server_slots(const ServerSlots& slots) {
  std::string text;
  for (const auto& slot : slots)
    text += (text.empty() ? "" : " ") + (slot ? std::to_string(*slot) : "-");
  return text;
}

// Empty: not known.
inline ServerSlots server_slots(const SessionInfo& info) {
  ServerSlots slots;
  const std::string_view text = info.fact("attach.server_slots");
  for (const auto word : text | std::views::split(' ') | std::views::take(kMaxServerSlots))
    slots.push_back(parse_number<std::uint32_t>(std::string_view(word)));
  return slots;
}

inline std::optional<std::uint32_t> server_slot_of(const ServerSlots& slots,
                                                   std::optional<std::uint32_t> sequence) {
  const std::size_t at = sequence.value_or(0);
  return at == 0 || at > slots.size() ? std::nullopt : slots[at - 1];
}

}  // namespace tt
