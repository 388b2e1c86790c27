// Reads a .ttrace file, finished or still being written, step by step; the file is never
// loaded as a whole. Movable. Use from one thread at a time; open one reader per thread.
// Keeps no snapshot between calls.
//
// A damaged row gives an error (Damaged) for that row; other rows stay readable. Reads past
// the end give NotFound. Returned values are consistent: lists of a step match its
// template, and indices in a template are in range.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"
#include "tracer/format/model/trace_error.h"

namespace tt {

class SessionReader {
 public:
  static std::expected<SessionReader, TraceError> open(const std::filesystem::path& path);
  SessionReader(SessionReader&&) noexcept;
  SessionReader& operator=(SessionReader&&) noexcept;
  ~SessionReader();

  const std::filesystem::path& path() const;

  // Keeps `lease` until the file is closed.
  void hold(std::shared_ptr<const void> lease);

  std::expected<SessionInfo, TraceError> info() const;
  std::expected<LossCounters, TraceError> losses() const;
  // The total stored in the file; while it is being recorded, step_rows().
  std::expected<std::uint32_t, TraceError> step_count() const;
  // Last step with a row + 1. Steps that the total counts beyond it are lost.
  std::expected<std::uint32_t, TraceError> step_rows() const;
  std::expected<std::uint32_t, TraceError> token_count() const;
  std::expected<std::vector<TemplateId>, TraceError> template_ids() const;

  // Decoded once and cached; shared with the caller.
  std::expected<std::shared_ptr<const GraphTemplate>, TraceError> graph(TemplateId id) const;
  std::expected<Allocation, TraceError> allocation(AllocationId id) const;
  std::expected<Step, TraceError> step(StepId id) const;
  // Tokens [first, first + count), in order, up to the end of the session.
  std::expected<std::vector<Token>, TraceError> tokens(std::uint32_t first,
                                                       std::uint32_t count) const;
  // Streams steps [first, first + count); `row` returns false to stop. Ends with the error of
  // a damaged step; the caller may continue after that step.
  std::expected<void, TraceError> for_each_step(StepId first, std::uint32_t count,
                                                const std::function<bool(const Step&)>& row) const;
  // The same steps with their packed blobs, for queries over many steps that need only a part
  // of each (unpack_outline()). Blobs are not decoded and not checked against the template.
  // `row.packed` is valid during the call, which must not read other steps.
  struct StepRow {
    Step head;              // without op_ends, slots and stats
    std::uint64_t ops = 0;  // number of end times in the blob
    std::span<const std::byte> packed;
  };
  std::expected<void, TraceError> for_each_step_row(
      StepId first, std::uint32_t count, const std::function<bool(const StepRow&)>& row) const;

  // The page faults of steps [first, first + count), in order; steps without faults are
  // skipped. Files of format version 1 have none, those before version 4 no minor ones.
  std::expected<void, TraceError> for_each_faults(StepId first, std::uint32_t count,
                                                  const std::function<bool(const StepFaults&)>& row,
                                                  FaultKind kind = FaultKind::Major) const;

  // What was in memory before steps [first, first + count), in order; steps without a snapshot are
  // skipped. Stops when `row` returns false.
  std::expected<void, TraceError> for_each_residency(
      StepId first, std::uint32_t count,
      const std::function<bool(const StepResidency&)>& row) const;

  // The last step with a snapshot, up to `step`; nullopt: none.
  std::expected<std::optional<StepId>, TraceError> last_residency(StepId step) const;

  // The captured values of steps [first, first + count), in order; steps without are skipped. Stops
  // when `row` returns false. At most 128 MiB at a time.
  std::expected<void, TraceError> for_each_values(
      StepId first, std::uint32_t count, const std::function<bool(const StepValues&)>& row) const;

  // The splits of steps [first, first + count), in order; steps without are skipped. Stops when
  // `row` returns false. Ops and tensors are those of the step's template.
  std::expected<void, TraceError> for_each_splits(
      StepId first, std::uint32_t count, const std::function<bool(const StepSplits&)>& row) const;

  // Hides the first damaged step (or step whose tokens, template, allocation, faults, residency,
  // values or splits are damaged) and all steps after it, for this reader. If no faults, no
  // residency, no values or no splits at all can be read, only these are hidden. Returns the number
  // of remaining steps; nullopt, and no change, if nothing is damaged. Error Damaged if the first
  // step is damaged. Reads every row; cancelled by `keep_going` like check_session().
  std::expected<std::optional<std::uint32_t>, TraceError> truncate_at_damage(
      const std::function<bool()>& keep_going = {});
  std::optional<std::uint32_t> readable_steps() const;  // nullopt: not truncated

 private:
  struct Impl;
  // Of the step; null: it has none that can be read.
  std::expected<std::shared_ptr<const GraphTemplate>, TraceError> graph_of_step(StepId id) const;
  explicit SessionReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Full check: application id, version, SQLite integrity, every blob decodes, every step's
// template and allocation exist, counts agree. Returns the problems; empty: the file is valid.
// Error Cancelled when `keep_going`, called every few milliseconds, returns false. `step_read` gets
// each step in order, for further checks in the same pass; null: it cannot be read.
std::expected<std::vector<std::string>, TraceError> check_session(
    const std::filesystem::path& path, const std::function<bool()>& keep_going = {},
    const std::function<void(StepId, const Step*)>& step_read = {});

// Merges the WAL of a session that a dead process left Running, and marks it Recovered.
// Returns nullopt if there is nothing to recover: the session has ended, its writer is
// alive, or the file cannot be written.
struct RecoveredSession {
  std::filesystem::path path;
  std::uint32_t steps = 0;
};
std::optional<RecoveredSession> recover_session(const std::filesystem::path& path);

// Recovers every session in `folder`.
std::expected<std::vector<RecoveredSession>, TraceError> recover_sessions(
    const std::filesystem::path& folder);

}  // namespace tt
