// Which part of a session a question is about: the options that REST has as parameters
// of the same names (from_token there is --from-token here).
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

// Outlives the parsing. What `filter` has before stays as it is.
struct FilterOptions {
  TraceFilter filter{};
  LayerSet layers = LayerSet::all();
  struct Ends {
    std::optional<std::uint64_t> from{}, to{};
  };
  Ends tokens{}, steps{}, time{};
};

// Layers, component, kind, source; tokens, steps and time from where to where.
void add_filter_options(CLI::App& app, FilterOptions& options);

// Which accesses, of which steps: phase, tensor, op, component, kind, source, expert,
// reads or writes. `query` outlives the parsing. Returns the options.
std::vector<CLI::Option*> add_access_options(CLI::App& app, AccessQuery& query);

// The filter for this session. The error: a layer that its model has not, a stretch that
// ends before it begins.
std::expected<TraceFilter, TraceError> filter_of(const FilterOptions& options,
                                                 const SessionReader& reader);

}  // namespace tt::cli
