// Decodes the steps of a session one at a time, together with the outline of their template,
// as input for totals over many steps. Unpacks only what totals need and reuses its buffers;
// one outline per template is shared by all of its steps.
#pragma once

#include <bit>
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

class StepDecoder {
 public:
  // Decodes a row; every call must use the same session, and the row must have a template.
  // The other members describe this step until the next call. Returns false if the step is
  // damaged or does not match its template; then the other members are undefined.
  std::expected<bool, TraceError> take(const SessionReader& reader,
                                       const SessionReader::StepRow& row, OutlineTimes times);

  const std::shared_ptr<const TemplateOutline>& outline() const { return outline_; }
  // Ops that ran: all ops, if the step has no times and was not cancelled.
  std::uint32_t ran() const { return ran_; }
  bool timed() const { return step_.ops != 0; }
  // Durations of the first ops; empty: not unpacked. Modulo 2^64: a negative duration, which
  // only a fabricated file can contain, wraps around.
  std::span<const std::uint64_t> op_ns() const { return step_.op_ns; }
  std::size_t times_bytes() const { return step_.times_bytes; }  // at the start of the packed row

  // The parts that the step's list selects for a rule of its template.
  struct Parts {
    std::uint64_t count = 0;
    std::size_t listed = 0;  // numbers in the list
    // Only if the parts are separate accesses: a bit set, or an ascending list (see
    // OutlineRule). Valid until the next call.
    std::span<const std::uint64_t> set{};
    std::span<const std::int64_t> numbers{};
  };
  Parts parts_of(const OutlineRule& rule);

  const SessionNames& names() const { return names_; }

 private:
  std::expected<void, TraceError> find_outline(const SessionReader& reader, TemplateId id);

  SessionNames names_;
  std::map<TemplateId, std::shared_ptr<const TemplateOutline>> outlines_;
  std::shared_ptr<const TemplateOutline> outline_;
  std::shared_ptr<const GraphTemplate> graph_;  // only if rules are counted per batch
  StepOutline step_;
  std::uint32_t ran_ = 0;
  std::vector<std::int64_t> listed_;
};

// Calls `each(number)` for the parts that are separate accesses, ascending.
template <class Each>
void for_each_part(const StepDecoder::Parts& parts, Each each) {
  for (const std::int64_t number : parts.numbers) each(static_cast<std::uint64_t>(number));
  for (std::size_t w = 0; w < parts.set.size(); ++w)
    for (std::uint64_t word = parts.set[w]; word != 0; word &= word - 1)
      each(w * 64 + static_cast<std::uint64_t>(std::countr_zero(word)));
}

}  // namespace tt
