#include "api/json/json.h"

#include <cmath>

namespace tt {

std::string shortened(std::string_view name) {
  constexpr std::size_t kMaxBytes = 40;
  return std::string(name.substr(0, kMaxBytes)) + (name.size() > kMaxBytes ? "..." : "");
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json finite_json(std::optional<double> number) {
  return number && std::isfinite(*number) ? Json(*number) : Json();
}

Json layer_json(LayerId layer) { return layer == kNoLayer ? Json() : Json(layer.v); }

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const JobStatus& status) {
  const bool ended = status.stop_reason != StopReason::None;
  return {{"id", status.id},
          {"model", status.model},
          {"state", to_text(status.state)},
          {"position", status.position},
          {"prompt_tokens", status.prompt_tokens},
          {"prompt_done", status.prompt_done},
          {"reused_tokens", status.reused_tokens},
          {"generated", status.generated},
          {"max_tokens", status.max_tokens},
          {"text", status.text},
          {"stopped", text_or_null(status.stopped)},
          {"stopped_ahead", text_or_null(status.stopped_ahead)},
          {"stop_reason", ended ? Json(to_text(status.stop_reason)) : Json()},
          {"error", text_or_null(status.error)}};
}

}  // namespace tt
