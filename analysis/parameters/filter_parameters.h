// The parameters that restrict a question to a part of a session: a filter word is one row of
// filter_parameters().
#pragma once

#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/verdict.h"
#include "analysis/parameters/parameter.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// A filter as it was asked for. Its layers are not compared with those of the session yet.
struct FilterQuery {
  TraceFilter filter{};  // without layers
  LayerSet layers = LayerSet::all();
  LeaveOut leave_out = LeaveOut::Nothing;
};
Parameters<FilterQuery> filter_parameters();

// NotFound: a layer that the session does not have.
std::expected<TraceFilter, TraceError> filter_of(const FilterQuery& query,
                                                 const SessionReader& reader);

}  // namespace tt
