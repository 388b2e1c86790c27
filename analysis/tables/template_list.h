// The distinct graphs (templates) of a session as table rows.
#pragma once

#include <cstdint>
#include <expected>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct TemplateRow {
  TemplateId id;
  std::uint64_t fingerprint = 0;
  std::uint32_t nodes = 0, ops = 0, tensors = 0;
  std::uint32_t steps = 0;   // steps that evaluated it
  std::uint32_t layers = 0;  // layers with an op in it
  friend bool operator==(const TemplateRow&, const TemplateRow&) = default;
};

// In order of appearance. Reads every step.
std::expected<std::vector<TemplateRow>, TraceError> template_list(
    const SessionReader& reader, const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
