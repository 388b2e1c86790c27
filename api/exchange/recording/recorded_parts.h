// What access rows cannot say, beside them in a log and in a run folder: graphs, addresses, index
// lists, times of all ops, value statistics, page faults, residency and captured values. With
// these, an import gives the session that was exported, and every question has the same answer.
//
// The parts are lines of JSON, with the packed blobs of the session file (blob_codec.h) as hex.
// docs/exports.md describes them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/derived_graphs.h"
#include "api/exchange/import/session_builder.h"
#include "api/exchange/rows/session_rows.h"
#include "api/json/json.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/format/file/session_reader.h"

namespace tt::exchange {

// Writes the parts of an exported session. The reader must outlive it.
class RecordedPartsWriter {
 public:
  explicit RecordedPartsWriter(const SessionReader& reader) : reader_(reader) {}
  // Appends the lines of a step: its graph and addresses if no earlier step had them, then its own.
  WriteResult append(std::string& to, const Step& step);

 private:
  WriteResult append_values(std::string& to, const Step& step) const;
  WriteResult append_splits(std::string& to, const Step& step) const;

  const SessionReader& reader_;
  std::set<TemplateId> templates_;
  std::set<AllocationId> allocations_;
};

// Collects the parts of an import, which are untrusted: parts that cannot be read, or that do not
// fit each other, are as if they were absent.
class RecordedParts {
 public:
  static bool is_part(std::string_view event);
  void take(std::string_view event, const Json& line);

  // The recorded step whose head is that of `imported` and whose accesses are its rows. Nullopt: it
  // was not recorded, or its rows are others, because somebody edited them. Forgets the parts of
  // this step. `number`: of the step in the export.
  std::optional<RecordedStep> step(const ImportedStep& imported, std::uint32_t number);

 private:
  struct Allocated {
    TemplateId graph;
    Blob packed;
  };
  bool has_room(const Blob& packed);
  DerivedPtr graph(TemplateId id);

  std::map<TemplateId, std::pair<std::uint64_t, Blob>> templates_;  // fingerprint, packed
  std::map<AllocationId, Allocated> allocations_;
  std::size_t bytes_ = 0;                                // of both
  std::vector<std::pair<TemplateId, DerivedPtr>> kept_;  // most recently used last
  // Of the next step.
  std::uint32_t number_ = kNone;
  TemplateId graph_{};
  AllocationId allocation_{};
  std::optional<Blob> packed_;
  struct Faults {
    FaultKind kind;
    std::uint64_t count;
    Blob packed;
  };
  std::vector<Faults> faults_;
  std::optional<std::pair<StepResidency, Blob>> residency_;
  struct Values {
    std::uint64_t not_captured;
    Blob packed;  // of all lines so far
  };
  std::optional<Values> values_;
  std::optional<Blob> splits_;
};

}  // namespace tt::exchange
