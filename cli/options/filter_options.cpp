#include "cli/options/filter_options.h"

#include <format>
#include <limits>
#include <map>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/common/format_units.h"
#include "analysis/common/no_such_part.h"
#include "analysis/common/session_layers.h"
#include "program/enum_names.h"
#include "program/validators.h"
#include "tracer/text/join.h"

namespace tt::cli {
namespace {

constexpr std::uint64_t kMaxIndex = std::numeric_limits<std::int64_t>::max();

// Adds an option that parses an enum name into `into`.
template <class Enum>
CLI::Option* add_enum_option(CLI::App& app, const char* name, std::optional<Enum>& into, Enum last,
                             const std::string& what, const char* type) {
  const auto names = enum_names(last);
  return app
      .add_option_function<Enum>(
          name, [&into](Enum value) { into = value; }, what + ": " + join(names | std::views::keys))
      ->transform(choice(names))
      ->type_name(type);
}

void add_range_options(CLI::App& app, const std::string& of, FilterOptions::RangeEnds& ends,
                       const std::string& what) {
  app.add_option("--from-" + of, ends.from, "First " + what + " to include")->type_name("N");
  app.add_option("--to-" + of, ends.to, "First " + what + " after the range")->type_name("N");
}

// Sets `into` if one of the ends is given. False: the end is before the beginning.
template <class T>
bool set_range(const FilterOptions::RangeEnds& ends, std::optional<Range<T>>& into) {
  if (!ends.from && !ends.to) return true;
  const std::uint64_t from = ends.from.value_or(0), to = ends.to.value_or(kMaxIndex);
  if (from > kMaxIndex || to > kMaxIndex || to < from) return false;
  into = Range<T>{static_cast<T>(from), static_cast<T>(to)};
  return true;
}

}  // namespace

CLI::Option* add_layers_option(CLI::App& app, LayerSet& layers, const std::string& description,
                               const std::string& outside) {
  return app
      .add_option_function<std::string>(
          "--layers,--layer",
          [&layers](const std::string& text) { layers = parse_layers(text).value(); },
          std::format("{}: a list like 0,3-5{} or all{}", description,
                      outside.empty() ? "" : std::format(", outside ({})", outside),
                      layers == LayerSet::all() ? " (default)" : ""))
      ->check([](const std::string& text) {
        const auto parsed = parse_layers(text);
        return parsed ? std::string() : parsed.error();
      })
      ->type_name("LIST");
}

CLI::Option* add_limit_option(CLI::App& app, std::size_t& limit, const std::string& description,
                              const std::string& names) {
  return app.add_option(names, limit, description)->type_name("N")->capture_default_str();
}

CLI::Option* add_clean_option(CLI::App& app, LeaveOut& leave_out, const std::string& of) {
  return app.add_flag_callback(
      "--clean", [&leave_out] { leave_out = LeaveOut::Disturbed; },
      "Leave steps that were contended, throttled or waited for the disk out of " + of);
}

std::string left_out_text(std::uint64_t left_out, std::uint64_t all, const std::string& of) {
  return std::format("Not in {}: {} of {} that were not clean (--clean).", of, left_out,
                     counted(all, "step"));
}

std::optional<std::string> StepRangeOptions::error() const {
  if (!to || from < *to) return std::nullopt;
  return "--from-step must be less than --to-step";
}

std::vector<CLI::Option*> add_step_range_options(CLI::App& app, StepRangeOptions& steps) {
  CLI::Option* from =
      app.add_option("--from-step", steps.from, "First step (0-based) to include")->type_name("N");
  CLI::Option* to = app.add_option_function<std::uint32_t>(
                           "--to-step", [&steps](std::uint32_t step) { steps.to = step; },
                           "First step (0-based) after the range")
                        ->type_name("N");
  CLI::Option* first = app.add_option("--first-step", steps.from)->type_name("N");
  CLI::Option* last =
      app.add_option_function<std::uint32_t>(
             "--last-step", [&steps](std::uint32_t step) { steps.to = std::uint64_t{step} + 1; })
          ->type_name("N");
  first->group("")->excludes(from);
  last->group("")->excludes(to);
  return {from, to, first, last};
}

void add_filter_options(CLI::App& app, FilterOptions& options) {
  add_layers_option(app, options.layers, "Layers of the ops", "ops outside all layers");
  TraceFilter& filter = options.filter;
  add_enum_option(app, "--component", filter.component, Component::Input, "Component of the op",
                  "COMPONENT");
  add_enum_option(app, "--kernel", filter.kernel, Kernel::Device, "Kernel that ran the op",
                  "KERNEL");
  add_enum_option(app, "--kind", filter.kind, TensorKind::Input, "Kind of the tensor", "KIND");
  add_enum_option(app, "--source", filter.source, Source::Buffer,
                  "Memory source of the accessed bytes", "SOURCE");
  add_range_options(app, "token", options.tokens, "token (0-based)");
  add_range_options(app, "step", options.steps, "step (0-based)");
  add_range_options(app, "ns", options.time, "nanosecond of the session time");
}

std::vector<CLI::Option*> add_access_options(CLI::App& app, AccessQuery& query) {
  AccessFilter& filter = query.filter;
  const std::map<std::string, bool> directions = {{"read", false}, {"write", true}};
  return {
      app.add_option("--tensor", filter.tensor.name,
                     "Substring of the tensor name; may contain * and ?")
          ->type_name("TEXT"),
      app.add_option("--op", filter.op_name,
                     "Substring of the op type or of the name of its output; may contain * and ?")
          ->type_name("TEXT"),
      add_enum_option(app, "--phase", query.phase, Phase::Other, "Phase of the step", "PHASE"),
      add_enum_option(app, "--component", filter.tensor.component, Component::Input,
                      "Component of the tensor", "COMPONENT"),
      add_enum_option(app, "--kind", filter.tensor.kind, TensorKind::Input, "Kind of the tensor",
                      "KIND"),
      add_enum_option(app, "--source", filter.tensor.source, Source::Buffer,
                      "Memory source of the tensor", "SOURCE"),
      app.add_option("--expert", filter.expert, "Expert to include")
          ->check(whole_number(0, kMaxInt32))
          ->type_name("N"),
      app.add_option_function<bool>(
             "--access", [&filter](bool write) { filter.write = write; },
             "Direction: read or write")
          ->transform(choice(directions))
          ->type_name("WORD")};
}

std::expected<TraceFilter, TraceError> filter_of(const FilterOptions& options,
                                                 const SessionReader& reader) {
  TraceFilter filter = options.filter;
  const char* const reversed = !set_range(options.tokens, filter.tokens) ? "token"
                               : !set_range(options.steps, filter.steps) ? "step"
                               : !set_range(options.time, filter.time)   ? "ns"
                                                                         : nullptr;
  if (reversed != nullptr) {
    return std::unexpected(
        TraceError{TraceError::Kind::NotFound,
                   std::format("--from-{0} must not be greater than --to-{0}.", reversed)});
  }
  for (const auto& [what, from, count] :
       {std::tuple{"step", options.steps.from.value_or(0), reader.step_count()},
        std::tuple{"token", options.tokens.from.value_or(0), reader.token_count()}}) {
    if (!count) return std::unexpected(count.error());
    if (from == 0 || from < *count) continue;
    return std::unexpected(no_such_part("session", what, from, *count));
  }
  auto layers = resolve_layers(reader, options.layers);
  if (!layers) return std::unexpected(layers.error());
  filter.layers = *std::move(layers);
  return filter;
}

}  // namespace tt::cli
