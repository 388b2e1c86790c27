// The columns of steps: one row per evaluation of a graph.
//
// Accessors of a row:
//   step()               Step, or StepFacts
//   ops_timed()          number of ops with a time
//   accesses()           number of accesses
//   read(), written()    Bytes of the accesses
//   mapped()             Bytes of mapped model files that were read, each counted once
#pragma once

#include "analysis/columns/access_columns.h"
#include "analysis/common/disk_use.h"

namespace tt::columns {

// The name in the file and in exports.
template <StepConditions::Value StepConditions::* value>
consteval const char* name_of_condition() {
  for (const StepCondition& condition : kStepConditions)
    if (condition.value == value) return condition.name;
  throw "not a condition";
}

template <StepConditions::Value StepConditions::* value>
constexpr auto condition_column(const char* unit, const char* meaning) {
  return Column{{.name = name_of_condition<value>(),
                 .type = Type::UInt64,
                 .unit = unit,
                 .meaning = meaning,
                 .null = "not recorded"},
                [](const auto& row) { return row.step().conditions.*value; }};
}

// What the machine did meanwhile (docs/conditions.md).
constexpr auto condition_columns() {
  using C = StepConditions;
  return std::tuple{
      Column{
          {.name = "verdict",
           .type = Type::Text,
           .meaning = "what the machine did to the times of the step, from the following values "
                      "(docs/conditions.md)",
           .null = "not recorded",
           .words = &kVerdicts},
          [](const auto& row) -> std::optional<const char*> {
            return verdict_of(row.step().conditions, row.step().threads).transform([](Verdict v) {
              return to_text(v);
            });
          }},
      condition_column<&C::interval_ns>(
          "ns",
          "time that the following values cover: from the end of the previous step, or the "
          "start of the session, to the end of this one"),
      condition_column<&C::cpu_ns>(
          "ns", "CPU time of the threads that evaluate graphs; sum over the threads"),
      condition_column<&C::cpu_wait_ns>("ns",
                                        "time in which these threads waited for a processor, less "
                                        "the CPU time of the thread that writes the recording; "
                                        "sum over the threads"),
      condition_column<&C::voluntary_switches>("switches",
                                               "voluntary context switches of the process"),
      condition_column<&C::involuntary_switches>("switches",
                                                 "involuntary context switches of the process"),
      condition_column<&C::minor_faults>(
          "faults", "page faults of the process that did not wait for the disk"),
      condition_column<&C::major_faults>("faults",
                                         "page faults of the process that waited for the disk"),
      condition_column<&C::disk_read_bytes>("bytes", "read from disks by the process"),
      condition_column<&C::throttled_ns>(
          "ns",
          "time for which a CPU limit (cgroup) stopped the process's groups; sum over the "
          "processors and groups"),
      condition_column<&C::pressure_cpu_ns>(
          "ns", "time in which any task of the system waited for a processor (PSI)"),
      condition_column<&C::pressure_io_ns>(
          "ns", "time in which any task of the system waited for a disk (PSI)"),
      condition_column<&C::pressure_memory_ns>(
          "ns", "time in which any task of the system waited for memory (PSI)"),
      condition_column<&C::frequency_khz>(
          "kHz", "mean frequency of the processors at the end of the step"),
      condition_column<&C::thermal_throttles>(
          "events",
          "number of times that a processor was slowed down because of its temperature; sum over "
          "the processors"),
      condition_column<&C::memory_limit_bytes>(
          "bytes", "memory limit of the process: the smallest of its cgroups and the RAM"),
      condition_column<&C::locked_bytes>("bytes", "memory that the process has locked (mlock)"),
      condition_column<&C::resident_bytes>(
          "bytes", "weights in the mapped model files that were in memory, at the last snapshot")};
}

// What the time since the previous step was spent on.
constexpr auto spent_columns() {
  using C = StepConditions;
  return std::tuple{
      condition_column<&C::queue_ns>(
          "ns",
          "time in which the request waited for other requests, before the session and its first "
          "step; 0 for all other steps"),
      condition_column<&C::sample_ns>(
          "ns", "time for choosing the token that the step evaluates, after the previous step"),
      condition_column<&C::detokenize_ns>("ns",
                                          "time for converting tokens to text, before the step"),
      condition_column<&C::build_ns>(
          "ns",
          "time from the start of the step until its graph could run: building the graph or "
          "finding the previous one again, memory for it, its inputs"),
      condition_column<&C::evaluate_ns>(
          "ns", "time from then until the graph had run and its output could be read"),
      condition_column<&C::graphs_built>(
          "graphs",
          "number of graphs that were built for the step; 0: the graph of the previous step was "
          "used again")};
}

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
      },
      condition_columns(), spent_columns(),
      std::tuple{
          Column{
              {.name = "mapped_bytes",
               .type = UInt64,
               .unit = "bytes",
               .meaning = "bytes of the mapped model files that the step read, each counted once"},
              [](const auto& row) { return row.mapped().v; }},
          Column{
              {.name = "reread_factor",
               .type = Float,
               .meaning = "`disk_read_bytes` / `mapped_bytes`: 0 if all weights were in memory, 1 "
                          "if each was read from the disk once",
               .null = "not recorded, or no mapped weights"},
              [](const auto& row) -> std::optional<float> {
                const auto read = row.step().conditions.disk_read_bytes;
                if (!read) return std::nullopt;
                return DiskUse{.read = *read, .mapped = row.mapped().v}.reread_factor().transform(
                    [](double factor) { return static_cast<float>(factor); });
              }},
          Column{{.name = "bytes_per_fault",
                  .type = UInt64,
                  .unit = "bytes",
                  .meaning = "`disk_read_bytes` / `major_faults`: what the kernel read (readahead) "
                             "per page that was waited for",
                  .null = "not recorded, or no such page fault"},
                 [](const auto& row) -> std::optional<std::uint64_t> {
                   const StepConditions& conditions = row.step().conditions;
                   if (!conditions.disk_read_bytes || !conditions.major_faults) return std::nullopt;
                   return DiskUse{.read = *conditions.disk_read_bytes,
                                  .faults = *conditions.major_faults}
                       .bytes_per_fault();
                 }},
      });
}

}  // namespace tt::columns
