#include "api/exchange/rows/access_columns.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/tables/tensor_table.h"

namespace tt::exchange {
namespace {

constexpr std::monostate kNull{};

Cell number(std::int64_t v) { return v; }
Cell count(std::uint64_t v) { return v; }
Cell word(const char* v) { return std::string_view(v); }

const GraphTemplate& graph_of(const RowScope& scope) { return *scope.graph->derived->graph; }
const Access& access_of(const RowScope& scope, const ExportRow& row) {
  return scope.graph->derived->accesses[row.access.access];
}
const Tensor& tensor_of(const RowScope& scope, const ExportRow& row) {
  return graph_of(scope).tensor(access_of(scope, row).tensor);
}
const Op& op_of(const RowScope& scope, const ExportRow& row) {
  return graph_of(scope).op(access_of(scope, row).op);
}

Cell timestamp(const RowScope& scope, const ExportRow& row) {
  return number(scope.step->op_begin(row.access.op).v);
}

Cell duration(const RowScope& scope, const ExportRow& row) {
  const Step& step = *scope.step;
  const OpId op = row.access.op;
  if (op.v >= step.op_ends.size()) return kNull;
  return number((step.op_ends[op.v] - step.op_begin(op)).v);
}

Cell layer_cell(LayerId layer) { return layer == kNoLayer ? Cell(kNull) : number(layer.v); }

Cell address(const RowScope& scope, const ExportRow& row) {
  const std::uint64_t at = address_of(scope, row);
  return at == 0 ? Cell(kNull) : count(at);
}

// The attention part (Q, K, V, QKV, O) of a weight or result.
Cell qkv(Role role) {
  switch (role) {
    case Role::Q:
    case Role::K:
    case Role::V:
    case Role::Qkv:
    case Role::O:
      return word(to_text(role));
    default:
      return kNull;
  }
}

const char* extent_text(Extent extent) {
  switch (extent) {
    case Extent::All:
      return "all";
    case Extent::Rows:
      return "rows";
    case Extent::Experts:
      return "experts";
    case Extent::Cells:
      return "cells";
  }
  return "all";
}

Cell not_negative(std::int32_t v) { return v < 0 ? Cell(kNull) : number(v); }

using S = const RowScope&;
using R = const ExportRow&;
using enum CellType;
using enum Varies;

constexpr AccessColumn kAccessColumns[] = {
    {"session", Text, PerStep, "", false,
     [](S s, R) -> Cell { return std::string_view(s.session->id); }},
    {"step", UInt32, PerStep, "", false, [](S s, R) { return count(s.step->id.v); }},
    {"access", UInt32, PerAccess, "", false, [](S, R r) { return count(r.access.access); }},
    {"part", UInt32, PerRow, "", false, [](S, R r) { return count(r.part); }},
    {"timestamp_ns", Int64, PerTime, "ns since session start", false, timestamp},
    {"duration_ns", Int64, PerTime, "ns", true, duration},
    {"token_id", UInt32, PerStep, "", false, [](S s, R) { return count(s.step->first_token); }},
    {"token_count", UInt32, PerStep, "", false, [](S s, R) { return count(s.step->n_tokens); }},
    {"phase", Text, PerStep, "", false, [](S s, R) { return word(to_text(s.step->phase)); }},
    {"timing", Text, PerStep, "", false, [](S s, R) { return word(to_text(s.step->timing)); }},
    {"template", UInt32, PerStep, "", false, [](S s, R) { return count(s.step->graph.v); }},
    {"op", UInt32, PerAccess, "", false, [](S s, R r) { return count(access_of(s, r).op.v); }},
    {"operation_type", Text, PerAccess, "", false,
     [](S s, R r) -> Cell { return std::string_view(s.graph->op_names[access_of(s, r).op.v]); }},
    {"op_layer_id", Int32, PerAccess, "", true,
     [](S s, R r) { return layer_cell(op_of(s, r).layer); }},
    {"device", Text, PerAccess, "", false,
     [](S s, R r) -> Cell { return std::string_view(op_of(s, r).device); }},
    {"write", Flag, PerAccess, "", false, [](S s, R r) -> Cell { return access_of(s, r).write; }},
    {"tensor", UInt32, PerAccess, "", false,
     [](S s, R r) { return count(access_of(s, r).tensor.v); }},
    {"tensor_name", Text, PerAccess, "", false,
     [](S s, R r) -> Cell { return std::string_view(tensor_of(s, r).name); }},
    {"tensor_type", Text, PerAccess, "", false,
     [](S s, R r) -> Cell { return std::string_view(tensor_of(s, r).type); }},
    {"tensor_kind", Text, PerAccess, "", false,
     [](S s, R r) { return word(to_text(tensor_of(s, r).kind)); }},
    {"tensor_bytes", UInt64, PerAccess, "bytes", false,
     [](S s, R r) { return count(size_of(tensor_of(s, r)).v); }},
    {"tensor_ptr", UInt64, PerRow, "address", true, address},
    {"layer_id", Int32, PerAccess, "", true,
     [](S s, R r) { return layer_cell(tensor_of(s, r).layer); }},
    {"component", Text, PerAccess, "", false,
     [](S s, R r) { return word(to_text(tensor_of(s, r).component)); }},
    {"role", Text, PerAccess, "", false,
     [](S s, R r) { return word(to_text(tensor_of(s, r).role)); }},
    {"category", Text, PerAccess, "", false,
     [](S s, R r) {
       return word(to_text(s.graph->derived->categories[access_of(s, r).tensor.v]));
     }},
    {"memory_source", Text, PerAccess, "", false,
     [](S s, R r) { return word(to_text(tensor_of(s, r).source)); }},
    {"model_file", UInt32, PerAccess, "", true,
     [](S s, R r) {
       const FileRange& range = access_of(s, r).range;
       return range.empty() ? Cell(kNull) : count(range.file);
     }},
    {"file_offset", UInt64, PerRow, "bytes", true,
     [](S, R r) { return r.access.range.empty() ? Cell(kNull) : count(r.access.range.offset); }},
    {"file_bytes", UInt64, PerRow, "bytes", true,
     [](S, R r) { return r.access.range.empty() ? Cell(kNull) : count(r.access.range.length); }},
    {"tensor_file_offset", UInt64, PerAccess, "bytes", true,
     [](S s, R r) {
       const FileRange& range = access_of(s, r).range;
       return range.empty() ? Cell(kNull) : count(range.offset);
     }},
    {"size_bytes", UInt64, PerRow, "bytes", false,
     [](S, R r) { return count(r.access.touched.v); }},
    {"extent", Text, PerAccess, "", false,
     [](S s, R r) { return word(extent_text(access_of(s, r).extent)); }},
    {"unit_bytes", UInt64, PerAccess, "bytes", false,
     [](S s, R r) { return count(access_of(s, r).unit.v); }},
    {"qkv_type", Text, PerAccess, "", true, [](S s, R r) { return qkv(tensor_of(s, r).role); }},
    {"attention_head", Int32, PerRow, "", true, [](S, R r) { return not_negative(r.head); }},
    {"attention_heads", UInt32, PerAccess, "", true,
     [](S s, R r) {
       const std::uint32_t heads = s.graph->heads[r.access.access].count;
       return heads == 0 ? Cell(kNull) : count(heads);
     }},
    {"expert_id", Int32, PerRow, "", true, [](S, R r) { return not_negative(r.access.expert); }},
    {"expert_rank", Int32, PerRow, "", true,
     [](S, R r) { return r.access.expert < 0 ? Cell(kNull) : not_negative(r.access.rank); }},
    {"routing_score", Float, PerRow, "", true,
     [](S, R r) -> Cell {
       if (r.access.expert < 0 || std::isnan(r.access.score)) return kNull;
       return r.access.score;
     }},
};

}  // namespace

std::span<const AccessColumn> access_columns() { return kAccessColumns; }

std::uint64_t address_of(const RowScope& scope, const ExportRow& row) {
  const std::uint32_t tensor = row.access.tensor.v;
  if (tensor >= scope.addresses.size() || scope.addresses[tensor] == 0) return 0;
  std::uint64_t at = scope.addresses[tensor];
  if (row.access.expert >= 0)
    at += static_cast<std::uint64_t>(row.access.expert) * access_of(scope, row).stride;
  if (row.head >= 0) {
    at += static_cast<std::uint64_t>(row.head) * scope.graph->heads[row.access.access].bytes.v;
  }
  return at;
}

std::vector<std::string> step_text_values(const SessionInfo& session) {
  std::vector<std::string> words{session.id};
  for (int i = 0; i <= static_cast<int>(Phase::Other); ++i)
    words.emplace_back(to_text(static_cast<Phase>(i)));
  for (int i = 0; i <= static_cast<int>(Timing::None); ++i)
    words.emplace_back(to_text(static_cast<Timing>(i)));
  return words;
}

}  // namespace tt::exchange
