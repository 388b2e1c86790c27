// Options that restrict a query to a part of a session. They correspond to REST parameters
// of the same names (--from-token: from_token).
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
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
  LayerSet layers = LayerSet::all();  // of the ops
  struct RangeEnds {
    std::optional<std::uint64_t> from{}, to{};
  };
  RangeEnds tokens{}, steps{}, time{};
};

// Adds --layers LIST; --layer is an alias. `description` begins the help text: "Layers of the ops".
// `layers` must outlive the parsing and is the default; `outside` is what "outside" selects, empty:
// not mentioned.
CLI::Option* add_layers_option(CLI::App& app, LayerSet& layers, const std::string& description,
                               const std::string& outside);

// Adds --limit N, the maximum number of rows; `limit` is the default.
CLI::Option* add_limit_option(CLI::App& app, std::size_t& limit,
                              const std::string& description = "Maximum number of rows",
                              const std::string& names = "--limit");

// A range of steps: --from-step and --to-step, half-open. The hidden options --first-step and
// --last-step are those of version 0.1, whose range includes the last step.
struct StepRangeOptions {
  std::uint32_t from = 0;
  std::optional<std::uint64_t> to{};
  // An error message if the range is empty.
  std::optional<std::string> error() const;
};
// `steps` must outlive the parsing. Returns the options.
std::vector<CLI::Option*> add_step_range_options(CLI::App& app, StepRangeOptions& steps);

// Adds the options for layers, component, kind and source, and for ranges of tokens, steps
// and time.
void add_filter_options(CLI::App& app, FilterOptions& options);

// Adds --clean, which leaves steps out of `of`. `leave_out` must outlive the parsing.
CLI::Option* add_clean_option(CLI::App& app, LeaveOut& leave_out, const std::string& of);
// How many steps --clean left out of `of`.
std::string left_out_text(std::uint64_t left_out, std::uint64_t all, const std::string& of);

// Adds the options that select accesses (tensor, op, component, kind, source, expert, reads
// or writes) and the phase of their steps. `query` must outlive the parsing. Returns the options.
std::vector<CLI::Option*> add_access_options(CLI::App& app, AccessQuery& query);

// The filter for this session. Errors: a layer that the model does not have, a range whose
// end is before its beginning.
std::expected<TraceFilter, TraceError> filter_of(const FilterOptions& options,
                                                 const SessionReader& reader);

}  // namespace tt::cli
