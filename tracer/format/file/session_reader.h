// Reads a .ttrace file, finished or still being written, step by step: the
// whole file is never in memory. Movable resource; use from one thread at a
// time, open several for several threads. Keeps no snapshot between calls.
//
// A damaged row is an error (Damaged) of that row, not of the file: what can be
// read is read, and the caller is told. What is past the end is NotFound. What
// comes back is consistent: a step's lists fit its template, indices in a
// template point into its lists.
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

  std::expected<SessionInfo, TraceError> info() const;
  std::expected<LossCounters, TraceError> losses() const;
  // What the file says; while it is recorded, step_rows().
  std::expected<std::uint32_t, TraceError> step_count() const;
  // One behind the last step that has a row. What the file counts behind it is lost.
  std::expected<std::uint32_t, TraceError> step_rows() const;
  std::expected<std::uint32_t, TraceError> token_count() const;
  std::expected<std::vector<TemplateId>, TraceError> template_ids() const;

  // Decoded once and kept (small, few); shared with the caller.
  std::expected<std::shared_ptr<const GraphTemplate>, TraceError> graph(TemplateId id) const;
  std::expected<Allocation, TraceError> allocation(AllocationId id) const;
  std::expected<Step, TraceError> step(StepId id) const;
  // [first, first + count), in order; what is past the end is left out.
  std::expected<std::vector<Token>, TraceError> tokens(std::uint32_t first,
                                                       std::uint32_t count) const;
  // Streams steps [first, first + count); `row` returns false to stop early. Ends
  // with the error of a damaged step; the caller may go on behind it.
  std::expected<void, TraceError> for_each_step(StepId first, std::uint32_t count,
                                                const std::function<bool(const Step&)>& row) const;
  // The same rows with their blobs as they lie in the file, for questions over very
  // many steps that need little of each (unpack_outline()). What is in a blob was
  // not looked at, nor held against the template. `row.packed` is valid during the
  // call, which must not read other steps.
  struct StepRow {
    Step head;              // without op_ends, slots and stats
    std::uint64_t ops = 0;  // end times in the blob
    std::span<const std::byte> packed;
  };
  std::expected<void, TraceError> for_each_step_row(
      StepId first, std::uint32_t count, const std::function<bool(const StepRow&)>& row) const;

  // The page faults of those of the steps [first, first + count) that have some, in
  // order; none in files of version 1. A list fits its step.
  std::expected<void, TraceError> for_each_faults(
      StepId first, std::uint32_t count, const std::function<bool(const StepFaults&)>& row) const;

  // Ends the session before its first damaged step (or step whose tokens, template,
  // allocation or faults are damaged): from now on there are only those before it, and
  // whoever walks them gets what is whole. Where no faults can be read there are none.
  // Returns how many they are; nothing, and nothing changes, where all is whole. Damaged
  // where not even the first step is.
  // Reads every row; Cancelled as check_session() is.
  std::expected<std::optional<std::uint32_t>, TraceError> end_at_damage(
      const std::function<bool()>& keep_going = {});
  std::optional<std::uint32_t> whole_steps() const;  // where it was made to end so

 private:
  struct Impl;
  explicit SessionReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Full check: application id, version, SQLite integrity, every blob decodes,
// every step's template and allocation exist, counts agree. Empty: sound. Cancelled
// when `keep_going`, asked every few milliseconds, says that nobody wants it any more.
std::expected<std::vector<std::string>, TraceError> check_session(
    const std::filesystem::path& path, const std::function<bool()>& keep_going = {});

// Folds in the WAL of a session that a dead process left Running, and marks it
// Recovered. Nothing where there is none to recover: the session has ended, its
// writer lives, or the file cannot be written.
struct RecoveredSession {
  std::filesystem::path path;
  std::uint32_t steps = 0;
};
std::optional<RecoveredSession> recover_session(const std::filesystem::path& path);

// Every one in `folder`.
std::expected<std::vector<RecoveredSession>, TraceError> recover_sessions(
    const std::filesystem::path& folder);

}  // namespace tt
