// Writes one session into one .ttrace file (SQLite, docs/trace-format.md).
//
// One thread (the recorder's writer thread). Rows per step with packed blobs;
// WAL, synchronous=NORMAL, one commit per add_step() batch: a killed process
// loses at most what was not committed. After an error nothing more is written,
// what was committed stays; the caller counts what follows as not written.
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <span>

#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"
#include "tracer/format/model/trace_error.h"

namespace tt {

class SessionWriter {
 public:
  // Creates `path` (must not exist). The file records the owner (process and
  // its start time), so that recover() can tell a live writer from a dead one.
  static std::expected<std::unique_ptr<SessionWriter>, TraceError> create(
      const std::filesystem::path& path, const SessionInfo& info);
  ~SessionWriter();  // without finish(): state stays Running, as after a kill

  // Once per template and allocation, before the first step that uses it. Tokens
  // and steps come in order, numbered from 0 without holes.
  std::expected<void, TraceError> add_template(TemplateId id, const GraphTemplate& graph);
  std::expected<void, TraceError> add_allocation(const Allocation& allocation);
  std::expected<void, TraceError> add_tokens(std::span<const Token> tokens);
  std::expected<void, TraceError> add_step(const Step& step);
  // Of a step that was added, which began at `begin`, if it has any.
  std::expected<void, TraceError> add_faults(const StepFaults& faults, Ns begin);
  // Makes everything added so far durable against a kill.
  std::expected<void, TraceError> commit();

  // Final state, totals and losses; folds the WAL in and leaves one file. Also
  // after an error, to say how it ended: room on the disk was reserved for that.
  // The last call. An error: the end was not written (recovery will), or the WAL
  // could not be folded in for want of room (the file is whole beside its WAL).
  std::expected<void, TraceError> finish(const SessionInfo& info, const LossCounters& losses);

  // Size of the database at the last commit. Any thread.
  std::uint64_t bytes_written() const;

 private:
  struct Impl;
  explicit SessionWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt
