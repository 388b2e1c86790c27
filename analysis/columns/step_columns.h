// The columns of steps: one row per evaluation of a graph.
//
// Accessors of a row:
//   step()               Step, or StepFacts
//   ops_timed()          number of ops with a time
//   accesses()           number of accesses
//   read(), written()    Bytes of the accesses
#pragma once

#include "analysis/columns/access_columns.h"

namespace tt::columns {

constexpr auto step_columns() {
  using enum Type;
  using enum Pushdown;
  return std::tuple_cat(
      pick<access_columns, "step", "phase", "timing">(),
      std::tuple{
          Column{{.name = "template",
                  .type = UInt32,
                  .meaning = "number of the template in the session, from 1",
                  .null = "not recorded",
                  .pushdown = Chunks},
                 [](const auto& row) -> std::optional<std::uint32_t> {
                   if (row.step().graph.v == 0) return std::nullopt;
                   return row.step().graph.v;
                 }},
      },
      pick<access_columns, "token_id", "token_count">(),
      std::tuple{
          Column{{.name = "begin_ns",
                  .type = Int64,
                  .unit = "ns",
                  .meaning = "start of the step, since the start of the session",
                  .pushdown = Rows},
                 [](const auto& row) { return row.step().begin.v; }},
          Column{{.name = "end_ns",
                  .type = Int64,
                  .unit = "ns",
                  .meaning = "end of the step, since the start of the session",
                  .pushdown = Rows},
                 [](const auto& row) { return row.step().end.v; }},
          Column{{.name = "duration_ns", .type = Int64, .unit = "ns"},
                 [](const auto& row) { return (row.step().end - row.step().begin).v; }},
          Column{
              {.name = "first_op_ns",
               .type = Int64,
               .unit = "ns",
               .meaning = "time at which the first op could begin, since the start of the session"},
              [](const auto& row) { return row.step().first_op.v; }},
          Column{{.name = "threads",
                  .type = UInt32,
                  .unit = "threads",
                  .meaning = "number of compute threads"},
                 [](const auto& row) { return row.step().threads; }},
          Column{{.name = "ops_timed",
                  .type = UInt64,
                  .unit = "ops",
                  .meaning = "number of ops with a recorded time"},
                 [](const auto& row) { return row.ops_timed(); }},
          Column{{.name = "accesses",
                  .type = UInt64,
                  .unit = "rows",
                  .meaning = "number of accesses of the step"},
                 [](const auto& row) { return row.accesses(); }},
          Column{{.name = "bytes_read",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "sum over the accesses of the step",
                  .former_name = "read_bytes"},
                 [](const auto& row) { return row.read().v; }},
          Column{{.name = "bytes_written",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "sum over the accesses of the step",
                  .former_name = "written_bytes"},
                 [](const auto& row) { return row.written().v; }},
          Column{{.name = "dropped",
                  .type = Flag,
                  .meaning =
                      "times are missing because the disk or the processor did not keep up; such "
                      "a step may stand for several consecutive evaluations"},
                 [](const auto& row) { return row.step().dropped; }},
          Column{{.name = "aborted",
                  .type = Flag,
                  .meaning = "the evaluation was cancelled or failed"},
                 [](const auto& row) { return row.step().aborted; }},
      });
}

}  // namespace tt::columns
