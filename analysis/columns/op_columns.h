// The columns of ops: one row per op that a step executed.
//
// Accessors of a row:
//   step()                 Step, or StepFacts
//   op_id(), op()
//   tensor_id(), tensor()  its output
//   operation_type(), device(), tensor_name(), tensor_type()   std::string_view
//   role()                 OpRole
//   kernel()               std::optional<Kernel>
//   begin(), duration()    no duration: not recorded
//   read(), written()      Bytes of its accesses
//   stats()                const ValueStats*; null: not recorded
#pragma once

#include <cmath>

#include "analysis/columns/access_columns.h"

namespace tt::columns {

// Null if the statistics are not finite, because no value was a number.
template <class Row>
std::optional<float> statistic(const Row& row, float ValueStats::* of) {
  const ValueStats* stats = row.stats();
  if (stats == nullptr || !std::isfinite(stats->*of)) return std::nullopt;
  return stats->*of;
}
template <class Row>
std::optional<std::uint64_t> statistic(const Row& row, std::uint64_t ValueStats::* of) {
  const ValueStats* stats = row.stats();
  return stats == nullptr ? std::nullopt : std::optional(stats->*of);
}

// Statistics of the output's values, recorded at level VERBOSE. Needs only stats().
constexpr auto output_columns() {
  using enum Type;
  constexpr const char* kNoValue = "no finite values, or not recorded (level verbose only)";
  constexpr const char* kNoCount = "not recorded (level verbose only)";
  return std::tuple{
      Column{{.name = "output_min",
              .type = Float,
              .meaning = "minimum of the finite values of the output",
              .null = kNoValue},
             [](const auto& row) { return statistic(row, &ValueStats::min); }},
      Column{{.name = "output_max",
              .type = Float,
              .meaning = "maximum of the finite values of the output",
              .null = kNoValue},
             [](const auto& row) { return statistic(row, &ValueStats::max); }},
      Column{{.name = "output_mean",
              .type = Float,
              .meaning = "mean of the finite values of the output",
              .null = kNoValue},
             [](const auto& row) { return statistic(row, &ValueStats::mean); }},
      Column{{.name = "output_std",
              .type = Float,
              .meaning = "standard deviation of the finite values of the output",
              .null = kNoValue},
             [](const auto& row) { return statistic(row, &ValueStats::std); }},
      Column{{.name = "output_nan",
              .type = UInt64,
              .unit = "values",
              .meaning = "number of NaN values in the output",
              .null = kNoCount},
             [](const auto& row) { return statistic(row, &ValueStats::nan); }},
      Column{{.name = "output_inf",
              .type = UInt64,
              .unit = "values",
              .meaning = "number of infinite values in the output",
              .null = kNoCount},
             [](const auto& row) { return statistic(row, &ValueStats::inf); }},
  };
}

constexpr auto op_columns() {
  using enum Type;
  using enum Pushdown;
  return std::tuple_cat(
      pick<access_columns, "step", "op", "phase", "template", "token_id", "operation_type",
           "op_layer_id", "device">(),
      std::tuple{
          Column{{.name = "kernel",
                  .type = Text,
                  .meaning = "implementation that ran the op (docs/conditions.md)",
                  .null = "it depends on what was not recorded",
                  .words = &kKernels},
                 [](const auto& row) -> std::optional<const char*> {
                   return row.kernel().transform([](Kernel kernel) { return to_text(kernel); });
                 }},
          Column{{.name = "threads",
                  .type = UInt32,
                  .unit = "threads",
                  .meaning = "number of compute threads, each of which did a part of the op"},
                 [](const auto& row) { return row.step().threads; }},
          Column{{.name = "nodes",
                  .type = UInt32,
                  .unit = "nodes",
                  .meaning = "number of graph nodes that ran as this op"},
                 [](const auto& row) { return row.op().nodes; }},
          Column{{.name = "tensor",
                  .type = UInt32,
                  .meaning = "index of the output tensor in the template",
                  .pushdown = Rows},
                 [](const auto& row) { return row.tensor_id().v; }},
          Column{{.name = "tensor_name",
                  .type = Text,
                  .meaning = "name of the output tensor in ggml; not unique",
                  .pushdown = Rows},
                 [](const auto& row) { return row.tensor_name(); }},
          Column{
              {.name = "tensor_type", .type = Text, .meaning = "type of the output tensor in ggml"},
              [](const auto& row) { return row.tensor_type(); }},
          Column{{.name = "ne0",
                  .type = Int64,
                  .unit = "elements",
                  .meaning = "shape of the output tensor, innermost dimension first"},
                 [](const auto& row) { return row.tensor().ne[0]; }},
          Column{{.name = "ne1", .type = Int64, .unit = "elements"},
                 [](const auto& row) { return row.tensor().ne[1]; }},
          Column{{.name = "ne2", .type = Int64, .unit = "elements"},
                 [](const auto& row) { return row.tensor().ne[2]; }},
          Column{{.name = "ne3", .type = Int64, .unit = "elements"},
                 [](const auto& row) { return row.tensor().ne[3]; }},
          Column{{.name = "component",
                  .type = Text,
                  .meaning = "part of the model that the first weight of the op belongs to; "
                             "without a weight, "
                             "that of its output",
                  .words = &kComponents,
                  .pushdown = Rows},
                 [](const auto& row) { return to_text(row.role().component); }},
          Column{{.name = "role",
                  .type = Text,
                  .meaning = "purpose in the component: Q, up, router, ...; empty: none",
                  .pushdown = Rows},
                 [](const auto& row) { return to_text(row.role().role); }},
      },
      pick<access_columns, "timestamp_ns", "duration_ns">(),
      std::tuple{
          Column{{.name = "bytes_read",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "sum over the accesses of the op",
                  .former_name = "read_bytes"},
                 [](const auto& row) { return row.read().v; }},
          Column{{.name = "bytes_written",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "sum over the accesses of the op",
                  .former_name = "written_bytes"},
                 [](const auto& row) { return row.written().v; }},
      },
      output_columns());
}

}  // namespace tt::columns
