// The templates of a session with their accesses, each derived once: what a
// question over many steps keeps from step to step.
#pragma once

#include <expected>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tracer/format/access.h"
#include "tracer/format/session_reader.h"

namespace tt {

struct DerivedGraph {
  std::shared_ptr<const GraphTemplate> graph;
  std::vector<Access> accesses;  // accesses_of(*graph)
};

// Lives as long as one question; the reader outlives it.
class DerivedGraphs {
 public:
  explicit DerivedGraphs(const SessionReader& reader) : reader_(reader) {}
  // Null without an error: TemplateId{0}, a step without a template.
  std::expected<std::shared_ptr<const DerivedGraph>, TraceError> of(TemplateId id);

 private:
  const SessionReader& reader_;
  std::unordered_map<TemplateId, std::shared_ptr<const DerivedGraph>> known_;
};

}  // namespace tt
