// The choices of a session's routers, one at a time. Any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/page.h"
#include "analysis/experts/routing.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

using RouterId = std::pair<LayerId, std::uint32_t>;  // layer, index within the layer

// The experts that one router chose for one token.
struct RouterChoice {
  RouterId router;
  std::uint32_t experts = 0;         // total experts
  std::uint32_t token = 0;           // index in the session; kNone: unknown
  std::span<const RoutingRow> rows;  // may contain expert numbers out of range
};

// Reads the choices of single steps. The reader must outlive it.
class ChoiceReader {
 public:
  explicit ChoiceReader(const SessionReader& reader) : reader_(reader), graphs_(reader) {}

  // The number of experts of each router of a graph: the number of slices of the weights that its
  // choices select from, else the model's expert count.
  using RouterSizes = std::map<RouterId, std::uint32_t>;
  std::expected<const RouterSizes*, TraceError> sizes_of(TemplateId graph);

  // In the order of routing_rows(). The step must have a template.
  std::expected<void, TraceError> for_each(const Step& step,
                                           const std::function<void(const RouterChoice&)>& take);

 private:
  const SessionReader& reader_;
  DerivedGraphCache graphs_;
  std::map<TemplateId, RouterSizes> sizes_;
};

// In the order of the steps, within a step as routing_rows(). For the steps of one phase, or all.
std::expected<void, TraceError> for_each_choice(
    const SessionReader& reader, std::optional<Phase> phase, const ContinueCheck& keep_going,
    const std::function<void(const RouterChoice&)>& take);

}  // namespace tt
