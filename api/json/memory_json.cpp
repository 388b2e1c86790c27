#include "api/json/memory_json.h"

#include <format>
#include <utility>

#include "api/json/bounded_json.h"
#include "api/json/result_json.h"
#include "tracer/text/nearest.h"

namespace tt {

namespace {

constexpr const char* kOff = "off";
constexpr const char* kAuto = "auto";

Json budget_json(std::uint64_t budget) {
  if (budget == MemoryOptions::kOff) return kOff;
  if (budget == MemoryOptions::kAuto) return kAuto;
  return budget;
}

// 0: not known yet.
Json known(double value) { return value > 0 ? Json(value) : Json(); }

std::expected<std::uint64_t, Problem> parse_budget(const Json& value) {
  if (value == kOff) return MemoryOptions::kOff;
  if (value == kAuto) return MemoryOptions::kAuto;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > 0 &&
      value.get<std::uint64_t>() < MemoryOptions::kAuto)
    return value.get<std::uint64_t>();
  return bad_request(R"("budget" must be "off", "auto" or a number of bytes above 0.)");
}

}  // namespace

Json to_json(const MemoryState& state) {
  return {
      {"phase", to_text(state.phase)},
      {"message", state.message},
      {"budget", budget_json(state.options.budget)},
      {"pin", state.options.pin},
      {"prefetch", state.options.prefetch},
      {"limit_bytes", state.limit},
      {"limit_used_bytes", state.limit_used},
      {"limit_source", state.limit_source},
      {"lock_limit_bytes", state.lock_limit == UINT64_MAX ? Json() : Json(state.lock_limit)},
      {"plan",
       {{"budget_bytes", state.budget},
        {"weight_bytes", state.weights},
        {"pinned_bytes", state.pinned},
        {"streamed_bytes", state.streamed},
        {"expert_bytes", state.experts},
        {"expert_cache_bytes", state.expert_cache},
        {"window_bytes", state.window},
        {"bytes_per_token", state.predicted_bytes_per_token},
        {"tokens_per_second", known(state.predicted_tokens_per_second)},
        {"plain_bytes_per_token", state.plain_bytes_per_token},
        {"plain_tokens_per_second", known(state.plain_tokens_per_second)}}},
      {"locked_bytes", state.locked},
      {"resident_bytes", state.resident},
      {"disk_bytes_per_second", known(state.disk_bytes_per_second)},
      {"compute_seconds_per_token", known(state.compute_seconds)},
      {"tokens_per_second", known(state.tokens_per_second)},
      {"bytes_per_token", state.bytes_per_token},
      {"bytes_read_ahead", state.bytes_read},
      {"late_ranges", state.late_ranges},
      {"expert_hits", state.expert_hits},
      {"expert_misses", state.expert_misses},
      {"experts_predicted", state.experts_predicted},
      {"experts_predicted_right", state.experts_predicted_right},
      {"expert_bytes_ahead", state.expert_bytes_ahead},
      {"expert_bytes_wasted", state.expert_bytes_wasted},
      {"budget_reductions", state.reductions},
  };
}

Json to_json(const MemoryMap& map) {
  Json tensors = Json::array(), curve = Json::array();
  for (const TensorResidency& one : map.tensors) {
    const bool known_pages = one.mapped && map.residency_known;
    tensors.push_back({{"tensor_name", one.tensor},
                       {"model_file", one.file},
                       {"file_offset", one.offset},
                       {"file_bytes", one.length},
                       {"mapped", one.mapped},
                       {"resident_bytes", known_pages ? Json(one.resident) : Json()},
                       {"pinned_bytes", one.pinned},
                       {"streamed_bytes", one.streamed}});
  }
  Json planned = Json::array();
  for (const MemoryRange& one : map.planned) {
    planned.push_back({{"model_file", one.file},
                       {"file_offset", one.offset},
                       {"file_bytes", one.length},
                       {"pinned", one.pinned}});
  }
  for (const MemoryPrediction& one : map.curve) {
    curve.push_back({{"budget_bytes", one.budget},
                     {"bytes_per_token", one.bytes_per_token},
                     {"tokens_per_second", known(one.tokens_per_second)},
                     {"plain_bytes_per_token", one.plain_bytes_per_token},
                     {"plain_tokens_per_second", known(one.plain_tokens_per_second)}});
  }
  return {{"tensors", std::move(tensors)},
          {"planned_ranges", std::move(planned)},
          {"resident_ranges", json_of(fields::value_of(map.resident))},
          {"resident_unit_bytes", map.resident_unit},
          {"residency_known", map.residency_known},
          {"curve", std::move(curve)},
          {"disk_measured", map.disk_measured}};
}

std::expected<MemoryOptions, Problem> parse_memory_body(std::string_view body,
                                                        const MemoryOptions& current) {
  const auto parsed =
      parse_json_body(body, R"(The body must be a JSON object, for example {"budget": "auto"}.)");
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->empty()) return bad_request(R"(Set at least one of "budget", "pin" and "prefetch".)");
  MemoryOptions options = current;
  for (const auto& [name, value] : parsed->items()) {
    if (name == "budget") {
      const auto budget = parse_budget(value);
      if (!budget) return std::unexpected(budget.error());
      options.budget = *budget;
    } else if (name == "pin" || name == "prefetch") {
      if (!value.is_boolean())
        return bad_request(std::format("\"{}\" must be true or false.", name));
      (name == "pin" ? options.pin : options.prefetch) = value.get<bool>();
    } else {
      return bad_request(unknown_name("field", shortened(name), {"budget", "pin", "prefetch"}));
    }
  }
  return options;
}

}  // namespace tt
