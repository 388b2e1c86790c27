#include "api/exchange/import/imported_row.h"

#include <algorithm>
#include <charconv>
#include <format>

#include "api/exchange/rows/session_metadata.h"

namespace tt::exchange {
namespace {

Extent extent_from(std::string_view word) {
  if (word == "rows") return Extent::Rows;
  if (word == "experts") return Extent::Experts;
  if (word == "cells") return Extent::Cells;
  return Extent::All;
}

LayerId layer_in(const Json& json, const char* name) {
  return LayerId{number_in<std::int32_t>(json, name, kNoLayer.v)};
}

void add_conditions_from(const Json& json, StepConditions& conditions) {
  for (const StepCondition& of : kStepConditions)
    if (const auto found = json.find(of.name); found != json.end() && found->is_number_unsigned())
      conditions.*of.value = number_in<std::uint64_t>(json, of.name);
}

std::optional<std::uint32_t> sequence_in(const Json& token) {
  const auto sequence = number_in<std::uint32_t>(token, "sequence");
  return sequence > 0 ? std::optional(sequence) : std::nullopt;
}

std::string token_text(const Json& token) {
  const std::string hex = text_in(token, "text_hex");
  std::string text;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    if (std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16).ec == std::errc{})
      text += static_cast<char>(byte);
  }
  return hex.empty() ? text_in(token, "text") : text;
}

}  // namespace

ImportedRow row_from(const Json& json) {
  ImportedRow row;
  row.op = number_in<std::uint32_t>(json, "op");
  row.access = number_in<std::uint32_t>(json, "access", kNone);
  row.operation_type = text_in(json, "operation_type", "NONE");
  row.device = text_in(json, "device");
  row.layer = layer_in(json, "layer_id");
  // Our exports omit op_layer_id only if there is no layer; other logs may never have it.
  const bool ours = json.contains("extent");
  row.op_layer = ours || json.contains("op_layer_id") ? layer_in(json, "op_layer_id") : row.layer;
  row.write = flag_in(json, "write");
  row.tensor = number_in<std::uint32_t>(json, "tensor", kNone);
  row.tensor_name = text_in(json, "tensor_name");
  row.tensor_type = text_in(json, "tensor_type");
  row.kind = enum_from(text_in(json, "tensor_kind"), TensorKind::Input, TensorKind::Intermediate);
  row.tensor_bytes = number_in<std::uint64_t>(json, "tensor_bytes");
  row.address = number_in<std::uint64_t>(json, "tensor_ptr");
  row.component = enum_from(text_in(json, "component"), Component::Input, Component::Other);
  row.role = enum_from(text_in(json, "role"), Role::Logits, Role::None);
  row.size_bytes = number_in<std::uint64_t>(json, "size_bytes");
  const bool in_file = json.contains("file_offset") && json["file_offset"].is_number();
  if (in_file) {
    row.range = {.file = number_in<std::uint32_t>(json, "model_file"),
                 .offset = number_in<std::uint64_t>(json, "file_offset"),
                 .length = number_in<std::uint64_t>(json, "file_bytes", row.size_bytes)};
    if (json.contains("tensor_file_offset"))
      row.tensor_file_offset = number_in<std::uint64_t>(json, "tensor_file_offset");
  }
  row.source = enum_from(text_in(json, "memory_source"), Source::Buffer,
                         in_file ? Source::Disk : Source::Compute);
  row.extent = extent_from(text_in(json, "extent"));
  row.unit_bytes = number_in<std::uint64_t>(json, "unit_bytes");
  row.expert = number_in<std::int32_t>(json, "expert_id", -1);
  row.rank = number_in<std::int32_t>(json, "expert_rank", -1);
  row.head = number_in<std::int32_t>(json, "attention_head", -1);
  row.score = number_in<float>(json, "routing_score", std::numeric_limits<float>::quiet_NaN());
  if (const auto at = json.find("timestamp_ns"); at != json.end() && at->is_number()) {
    row.begin = number_in<std::int64_t>(json, "timestamp_ns");
    if (const auto took = json.find("duration_ns"); took != json.end() && took->is_number()) {
      row.end = static_cast<std::int64_t>(
          static_cast<std::uint64_t>(*row.begin) +
          static_cast<std::uint64_t>(number_in<std::int64_t>(json, "duration_ns")));
    }
  }
  return row;
}

void begin_step_from(const Json& json, Step& step) {
  step.phase = enum_from(text_in(json, "phase"), Phase::Other, Phase::Generate);
  step.timing = enum_from(text_in(json, "timing"), Timing::None, Timing::Fast);
  step.begin = Ns{number_in<std::int64_t>(json, "timestamp_ns")};
  step.first_op = Ns{number_in<std::int64_t>(json, "first_op_ns", step.begin.v)};
  step.end = step.begin;
  step.first_token = number_in<std::uint32_t>(json, "token_id");
  step.n_tokens = number_in<std::uint32_t>(json, "token_count", 1);
  step.threads = number_in<std::uint32_t>(json, "threads");
  step.dropped = flag_in(json, "dropped");
  step.aborted = flag_in(json, "aborted");
  add_conditions_from(json, step.conditions);
}

void end_step_from(const Json& json, Step& step) {
  const auto took = number_in<std::int64_t>(json, "duration_ns", -1);
  const std::int64_t end =
      took >= 0 ? static_cast<std::int64_t>(static_cast<std::uint64_t>(step.begin.v) +
                                            static_cast<std::uint64_t>(took))
                : step.end.v;
  step.end = Ns{number_in<std::int64_t>(json, "timestamp_ns", end)};
  step.dropped = step.dropped || flag_in(json, "dropped");
  step.aborted = step.aborted || flag_in(json, "aborted");
  add_conditions_from(json, step.conditions);
}

std::vector<Token> tokens_from(const Json& json) {
  std::vector<Token> tokens;
  const auto list = json.find("tokens");
  if (list == json.end() || !list->is_array()) return tokens;
  for (const Json& token : *list) {
    if (!token.is_object()) continue;
    tokens.push_back({.index = 0,
                      .id = number_in<std::int32_t>(token, "id"),
                      .position = number_in<std::int32_t>(token, "position"),
                      .generated = flag_in(token, "generated"),
                      .reused = flag_in(token, "reused"),
                      .text = token_text(token),
                      .sequence = sequence_in(token),
                      .draft = enum_from(text_in(token, "draft"), Draft::Unknown, Draft::None)});
  }
  return tokens;
}

void add_rebuilt_fact(SessionInfo& info, std::uint64_t steps) {
  if (steps > 0) info.facts.emplace_back(kRebuiltStepsFact, std::to_string(steps));
}

TraceError damaged(const std::filesystem::path& file, std::uint64_t line, const std::string& what) {
  return {TraceError::Kind::Damaged, std::format("{}:{}: {}", file.string(), line, what)};
}

}  // namespace tt::exchange
