#include "cli/options/filter_options.h"

#include <format>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "analysis/common/session_layers.h"
#include "program/values.h"
#include "program/words.h"

namespace tt::cli {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

// One of the words of an enum, into an optional.
template <class Enum>
CLI::Option* add_word(CLI::App& app, const char* name, std::optional<Enum>& into, Enum last,
                      const std::string& what, const char* type) {
  const auto known = words(last);
  return app
      .add_option_function<Enum>(
          name, [&into](Enum value) { into = value; }, what + ": " + list_of(known))
      ->transform(choice(known))
      ->type_name(type);
}

void add_ends(CLI::App& app, const std::string& of, FilterOptions::Ends& ends,
              const std::string& what) {
  app.add_option("--from-" + of, ends.from, "The first " + what + " that counts")->type_name("N");
  app.add_option("--to-" + of, ends.to, "The " + what + " behind the last")->type_name("N");
}

// False: it ends before it begins.
template <class T>
bool put_stretch(const FilterOptions::Ends& ends, std::optional<Stretch<T>>& into) {
  if (!ends.from && !ends.to) return true;
  const std::uint64_t from = ends.from.value_or(0), to = ends.to.value_or(kMost);
  if (from > kMost || to > kMost || to < from) return false;
  into = Stretch<T>{static_cast<T>(from), static_cast<T>(to)};
  return true;
}

}  // namespace

void add_filter_options(CLI::App& app, FilterOptions& options) {
  app.add_option_function<std::string>(
         "--layers",
         [&options](const std::string& text) { options.layers = parse_layers(text).value(); },
         "Only ops of these layers: 0,3-5, outside (of no layer) or all (default)")
      ->check([](const std::string& text) {
        const auto layers = parse_layers(text);
        return layers ? std::string() : layers.error();
      })
      ->type_name("LAYERS");
  TraceFilter& filter = options.filter;
  add_word(app, "--component", filter.component, Component::Input, "Only ops of this component",
           "COMPONENT");
  add_word(app, "--kind", filter.kind, TensorKind::Input, "Only tensors of this kind", "KIND");
  add_word(app, "--source", filter.source, Source::Buffer, "Only accesses that come from there",
           "SOURCE");
  add_ends(app, "token", options.tokens, "token, from 0,");
  add_ends(app, "step", options.steps, "step, from 0,");
  add_ends(app, "ns", options.time, "nanosecond of the session");
}

std::vector<CLI::Option*> add_access_options(CLI::App& app, AccessQuery& query) {
  AccessFilter& filter = query.filter;
  const std::map<std::string, bool> directions = {{"read", false}, {"write", true}};
  return {app.add_option("--tensor", filter.tensor.name, "Part of the tensor's name, with * and ?")
              ->type_name("TEXT"),
          app.add_option("--op", filter.op_name, "Part of the op's name, with * and ?")
              ->type_name("TEXT"),
          add_word(app, "--phase", query.phase, Phase::Other, "Only steps of this phase", "PHASE"),
          add_word(app, "--component", filter.tensor.component, Component::Input,
                   "Only tensors of this component", "COMPONENT"),
          add_word(app, "--kind", filter.tensor.kind, TensorKind::Input,
                   "Only tensors of this kind", "KIND"),
          add_word(app, "--source", filter.tensor.source, Source::Buffer,
                   "Only tensors that lie there", "SOURCE"),
          app.add_option("--expert", filter.expert, "Only this expert")
              ->check(whole_number(0, kMostInt32))
              ->type_name("N"),
          app.add_option_function<bool>(
                 "--access", [&filter](bool write) { filter.write = write; }, "Only read, or write")
              ->transform(choice(directions))
              ->type_name("WORD"),
          app.add_option_function<std::uint32_t>(
                 "--first-step", [&query](std::uint32_t step) { query.first_step = StepId{step}; },
                 "The first step that counts")
              ->type_name("N"),
          app.add_option_function<std::uint32_t>(
                 "--last-step", [&query](std::uint32_t step) { query.last_step = StepId{step}; },
                 "The last one")
              ->type_name("N")};
}

std::expected<TraceFilter, TraceError> filter_of(const FilterOptions& options,
                                                 const SessionReader& reader) {
  TraceFilter filter = options.filter;
  const char* const turned = !put_stretch(options.tokens, filter.tokens) ? "token"
                             : !put_stretch(options.steps, filter.steps) ? "step"
                             : !put_stretch(options.time, filter.time)   ? "ns"
                                                                         : nullptr;
  if (turned != nullptr) {
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        std::format("What is between --from-{0} and --to-{0} ends before it begins.", turned)});
  }
  auto layers = layers_in(reader, options.layers);
  if (!layers) return std::unexpected(layers.error());
  filter.layers = *std::move(layers);
  return filter;
}

}  // namespace tt::cli
