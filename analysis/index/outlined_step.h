// The steps of a session one after the other, each beside what its template says: where
// questions that sum over many steps begin. Unpacked as far as sums need it, refilled
// without allocating; one template's outline serves all of its steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "analysis/index/template_outline.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

class OutlinedStep {
 public:
  // Takes the next row in; of one and the same session in every call. What else is here
  // says of it, until the next call. false: the step is damaged, or does not fit its
  // template; there is nothing to be said of it. The row has a template.
  std::expected<bool, TraceError> take(const SessionReader& reader,
                                       const SessionReader::StepRow& row, OutlineTimes times);

  const std::shared_ptr<const TemplateOutline>& outline() const { return outline_; }
  // Ops that ran: all of them in a step whose times were not kept and that nobody cancelled.
  std::uint32_t ran() const { return ran_; }
  bool timed() const { return step_.ops != 0; }
  // Of the first ops; empty: not unpacked. Modulo 2^64: a time that goes back, as only an
  // invented file has it, is negative, as it is in every list of ops.
  std::span<const std::uint64_t> op_ns() const { return step_.op_ns; }
  std::size_t times_bytes() const { return step_.times_bytes; }  // at the row's begin

  // How many parts the step's list names for a rule of its template, and which.
  struct Parts {
    std::uint64_t count = 0;
    // Where they are accesses of their own: as a set, or listed, ascending (OutlineRule
    // says how). Valid until the next call.
    std::span<const std::uint64_t> set{};
    std::span<const std::int64_t> numbers{};
  };
  Parts parts_of(const OutlineRule& rule);

  const SessionNames& names() const { return names_; }
  std::size_t memory_bytes() const;  // of names and outlines, about

 private:
  std::expected<void, TraceError> find_outline(const SessionReader& reader, TemplateId id);

  SessionNames names_;
  std::map<TemplateId, std::shared_ptr<const TemplateOutline>> outlines_;
  std::shared_ptr<const TemplateOutline> outline_;
  std::shared_ptr<const GraphTemplate> graph_;  // where rules count batch by batch
  StepOutline step_;
  std::uint32_t ran_ = 0;
  std::vector<std::int64_t> listed_;
};

}  // namespace tt
