// tt graph FILE: prints the graph of a step, or some of its layers, as DOT or JSON.
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analysis/graph/graph_part.h"
#include "api/json/trace_json.h"
#include "api/text/graph_dot.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "program/validators.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {
namespace {

enum class GraphForm : std::uint8_t { Dot, Json };

struct GraphOptions {
  std::string file;
  std::optional<std::uint32_t> step, graph;
  LayerSet layers = LayerSet::all();
  bool collapse = false, json = false;
  GraphForm form = GraphForm::Dot;
};

std::expected<GraphPart, TraceError> part_of(const SessionReader& reader,
                                             const GraphOptions& options,
                                             const ContinueCheck& keep_going) {
  const LayerSet& layers = options.layers;
  if (options.graph) return part_of_template(reader, TemplateId{*options.graph}, layers);
  if (options.step) return part_of_step(reader, StepId{*options.step}, layers);
  return reader.step_count()
      .and_then([&](std::uint32_t steps) {
        return last_with_graph(reader, StepId{0}, StepId{steps}, keep_going);
      })
      .and_then([&](StepId step) { return part_of_step(reader, step, layers); });
}

int run(const GraphOptions& options) {
  const GraphForm form = options.json ? GraphForm::Json : options.form;
  Progress progress("graph", progress_visibility(form == GraphForm::Json));
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  const auto part = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return part_of(session, options, progress.start("searching for a graph"));
  });
  if (!part) return progress.failed(part.error());
  progress.end();
  if (form == GraphForm::Dot) {
    put(options.collapse ? collapsed_dot(*part) : to_dot(*part));
  } else {
    put_line(text_of(options.collapse ? collapsed_json(*part) : to_json(*part)));
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_graph_command(CLI::App& command) {
  auto options = std::make_shared<GraphOptions>();
  add_session_file(command, options->file);
  auto* step = command
                   .add_option("--step", options->step,
                               "Step of the graph (default: last step with a recorded graph)")
                   ->type_name("N");
  command.add_option("--template", options->graph, "Template to print, numbered from 1")
      ->excludes(step)
      ->type_name("N");
  add_layers_option(command, options->layers, "Layers to print, with their inputs and consumers",
                    "nodes outside all layers");
  command.add_flag("--collapse", options->collapse,
                   "Merge the nodes of each layer and component into one node");
  const std::map<std::string, GraphForm> forms = {{"dot", GraphForm::Dot},
                                                  {"json", GraphForm::Json}};
  auto* form =
      command.add_option("--format", options->form, "Output format: dot or json (default: dot)")
          ->transform(choice(forms))
          ->type_name("FORMAT");
  command.add_flag("--json", options->json, "Same as --format json")->excludes(form);
  command.footer("Example: tt graph s.ttrace --layers 0 | dot -Tsvg -o layer.svg");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
