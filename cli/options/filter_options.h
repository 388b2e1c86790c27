// Options that restrict a query to a part of a session. They correspond to REST parameters
// of the same names (--from-token: from_token).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "analysis/accesses/access_table.h"
#include "analysis/aggregate/trace_axis.h"
#include "analysis/common/layer_set.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {

// Must outlive the parsing. Fields of `filter` without an option on the command line keep
// their values.
struct FilterOptions {
  TraceFilter filter{};
  LayerSet layers = LayerSet::all();
  struct RangeEnds {
    std::optional<std::uint64_t> from{}, to{};
  };
  RangeEnds tokens{}, steps{}, time{};
};

// Adds the options for layers, component, kind and source, and for ranges of tokens, steps
// and time.
void add_filter_options(CLI::App& app, FilterOptions& options);

// Adds the options that select accesses (tensor, op, component, kind, source, expert, reads
// or writes) and steps (phase, first and last). `query` must outlive the parsing. Returns the
// options.
std::vector<CLI::Option*> add_access_options(CLI::App& app, AccessQuery& query);

// The filter for this session. Errors: a layer that the model does not have, a range whose
// end is before its beginning.
std::expected<TraceFilter, TraceError> filter_of(const FilterOptions& options,
                                                 const SessionReader& reader);

}  // namespace tt::cli
