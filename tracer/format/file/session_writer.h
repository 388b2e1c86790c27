// Writes one session into one .ttrace file (SQLite, docs/trace-format.md).
//
// One thread (the recorder's writer thread). One row per step with packed blobs. WAL,
// synchronous=NORMAL, one commit per batch of steps: a killed process loses only what was
// not committed. After an error nothing more is written; committed data stays, and the
// caller counts later steps as not written.
#pragma once

#include <cstdint>
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
  // Creates `path`, which must not exist. The file contains its owner (process and start time),
  // so that recovery can distinguish a live writer from a dead one.
  static std::expected<std::unique_ptr<SessionWriter>, TraceError> create(
      const std::filesystem::path& path, const SessionInfo& info);
  ~SessionWriter();  // without finish(): state stays Running, as after a kill

  // The Unix time of Ns{0}, if it was not known when the file was created.
  std::expected<void, TraceError> set_start(std::int64_t utc_ns);
  // Add each template and allocation once, before the first step that uses it. Add tokens and
  // steps in order, numbered from 0 without gaps.
  std::expected<void, TraceError> add_template(TemplateId id, const GraphTemplate& graph);
  std::expected<void, TraceError> add_allocation(const Allocation& allocation);
  std::expected<void, TraceError> add_tokens(std::span<const Token> tokens);
  std::expected<void, TraceError> add_step(const Step& step);
  // Writes added tokens again, with what became of a draft.
  std::expected<void, TraceError> replace_tokens(std::span<const Token> tokens);
  // Page faults of an added step that began at `begin`; only for steps with faults.
  std::expected<void, TraceError> add_faults(const StepFaults& faults, Ns begin,
                                             FaultKind kind = FaultKind::Major);
  // Of an added step.
  std::expected<void, TraceError> add_residency(const StepResidency& residency);
  // Of an added step.
  std::expected<void, TraceError> add_values(const StepValues& values);
  // Of an added step, whose begin is `begin`.
  std::expected<void, TraceError> add_splits(const StepSplits& splits, Ns begin);
  // Commits: everything added so far survives a kill of the process.
  std::expected<void, TraceError> commit();

  // The last call. Writes final state, totals and losses, and merges the WAL so that one file
  // remains. Also called after an error, to store the final state: disk space was reserved for
  // it. On error, either the final state was not written (recovery will write it), or the disk
  // was full and the WAL was not merged (the file is complete together with its WAL).
  std::expected<void, TraceError> finish(const SessionInfo& info, const LossCounters& losses);

  // Size of the database at the last commit. Any thread.
  std::uint64_t bytes_written() const;

 private:
  struct Impl;
  explicit SessionWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt
