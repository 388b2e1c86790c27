// Imports routing logs of other tools: which experts the routers of a mixture-of-experts model
// chose. docs/exports.md describes the format.
#pragma once

#include <expected>
#include <filesystem>
#include <string_view>

#include "api/exchange/import/import.h"

namespace tt::exchange {

// Whether a file that begins with this line is a routing log: a CSV header, or a JSON object
// without `event` and `type`, with token, layer and expert.
bool is_routing_log(std::string_view first_line);

// Memory holds the whole log: at most kMaxRoutingRows choices.
inline constexpr std::size_t kMaxRoutingRows = std::size_t{1} << 22;
std::expected<ImportCounts, TraceError> import_routing_log(
    const std::filesystem::path& log, const std::filesystem::path& session,
    const ContinueCheck& keep_going = never_cancel);

}  // namespace tt::exchange
