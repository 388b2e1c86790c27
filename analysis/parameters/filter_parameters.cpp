#include "analysis/parameters/filter_parameters.h"

#include "analysis/common/session_layers.h"

namespace tt {

namespace {

template <auto member>
auto& filter_part(FilterQuery& query) {
  return query.filter.*member;
}

}  // namespace

Parameters<FilterQuery> filter_parameters() {
  return Parameters<FilterQuery>()
      .word("phase", "only steps of this phase", filter_part<&TraceFilter::phase>)
      .range("token", "tokens", filter_part<&TraceFilter::tokens>, kMaxNumber)
      .range("step", "steps", filter_part<&TraceFilter::steps>, kMaxNumber)
      .range("ns", "times, in nanoseconds since the start of the session",
             filter_part<&TraceFilter::time>, kMaxJsonInteger)
      .layers("layers",
              "layers of the ops: all, or a comma-separated list of layer numbers, ranges (3-5 "
              "includes 5) and outside (ops that belong to no layer), for example 0,3-5,outside",
              &FilterQuery::layers)
      .word("component", "component of the op", filter_part<&TraceFilter::component>)
      .word("kernel", "implementation that ran the op (docs/conditions.md)",
            filter_part<&TraceFilter::kernel>)
      .text("op",
            "substring of the op type or of the name of its output, case-insensitive; * matches "
            "any characters, ? matches one character",
            filter_part<&TraceFilter::op>)
      .text("tensor",
            "substring of the tensor name, case-insensitive; * matches any characters, ? matches "
            "one character",
            filter_part<&TraceFilter::tensor>)
      .word("kind", "kind of the tensor", filter_part<&TraceFilter::kind>)
      .word("source", "memory source of the tensor", filter_part<&TraceFilter::source>)
      .flag("clean",
            "leave steps whose verdict is not clean out (see /conditions), as if they had no "
            "accesses",
            &FilterQuery::leave_out);
}

std::expected<TraceFilter, TraceError> filter_of(const FilterQuery& query,
                                                 const SessionReader& reader) {
  return resolve_layers(reader, query.layers).transform([&](std::vector<LayerId> layers) {
    TraceFilter filter = query.filter;
    filter.layers = std::move(layers);
    return filter;
  });
}

}  // namespace tt
