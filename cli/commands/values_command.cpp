// tt values FILE: the captured outputs of ops.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <format>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/common/op_info.h"
#include "analysis/tables/value_summary.h"
#include "analysis/values/captured_outputs.h"
#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/values/value_files.h"
#include "api/json/json.h"
#include "api/text/shape_text.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/options/session_file.h"
#include "cli/terminal/array_text.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/validators.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {
namespace {

struct ValuesOptions {
  std::string file;
  std::optional<std::string> output;  // name of an op's output
  std::optional<std::uint32_t> step;
  std::optional<std::filesystem::path> npy, safetensors;
  bool json = false, force = false;
};

struct CapturedOutput {
  StepId step;
  std::string operation, tensor;
  OutputValues values;  // without the values themselves, unless they are asked for
  ValueSummary summary;
};

struct Captured {
  std::vector<CapturedOutput> outputs;
  std::uint64_t not_captured = 0;
};

CapturedSelection selection_of(const ValuesOptions& options) {
  CapturedSelection selection{.step = {}, .output = options.output.value_or("")};
  if (options.step) selection.step = StepId{*options.step};
  return selection;
}

// The values are kept if an output is named.
std::expected<Captured, TraceError> captured_outputs(const SessionReader& reader,
                                                     const ValuesOptions& options,
                                                     const ContinueCheck& keep_going) {
  Captured captured;
  const auto add = [&](StepId step, const GraphTemplate& graph, const std::string& tensor,
                       const OutputValues& output) -> std::expected<void, TraceError> {
    captured.outputs.push_back(
        {.step = step,
         .operation = op_name(graph, graph.op(output.op)),
         .tensor = tensor,
         .values =
             options.output
                 ? output
                 : OutputValues{.op = output.op, .of = output.of, .ne = output.ne, .values = {}},
         .summary = summary_of(output)});
    return {};
  };
  const auto not_captured = for_each_captured(reader, selection_of(options), keep_going, add);
  if (!not_captured) return std::unexpected(not_captured.error());
  captured.not_captured = *not_captured;
  return captured;
}

std::string shape_of(const OutputValues& values) {
  std::array<std::int64_t, 4> shape{};
  std::ranges::transform(values.ne, shape.begin(),
                         [](std::uint64_t ne) { return static_cast<std::int64_t>(ne); });
  return shape_text(shape);
}

void print_table(const std::vector<CapturedOutput>& outputs) {
  TextTable table({">step", ">op", "operation", "output", ">shape", ">min", ">max", ">mean", ">std",
                   ">norm", ">NaN", ">Inf"});
  const auto number = [](double value) { return std::format("{:.4g}", value); };
  const auto count = [](std::uint64_t n) { return n == 0 ? "" : std::to_string(n); };
  for (const CapturedOutput& of : outputs) {
    const ValueSummary& s = of.summary;
    table.add(of.step.v, of.values.op.v, of.operation, of.tensor, shape_of(of.values),
              number(s.min), number(s.max), number(s.mean), number(s.std), number(s.norm),
              count(s.nan), count(s.inf));
  }
  table.print();
}

void print_values(const CapturedOutput& of) {
  const auto& ne = of.values.ne;
  print_line("step {}, op {}: {} = {} = {{{}, {}, {}, {}}}", of.step.v, of.values.op.v, of.tensor,
             of.operation, ne[0], ne[1], ne[2], ne[3]);
  put(array_text(ne, of.values.values));
}

Json json_of(const CapturedOutput& of) {
  Json json = {
      {"step", of.step.v},        {"op", of.values.op.v},  {"operation_type", of.operation},
      {"tensor_name", of.tensor}, {"shape", of.values.ne}, {"nan", of.summary.nan},
      {"inf", of.summary.inf}};
  const ValueSummary& s = of.summary;
  const std::pair<const char*, double> numbers[] = {
      {"min", s.min}, {"max", s.max}, {"mean", s.mean}, {"std", s.std}, {"norm", s.norm}};
  for (const auto& [name, number] : numbers)
    json[name] = s.finite > 0 ? Json(number) : Json(nullptr);
  if (!of.values.values.empty()) json["values"] = of.values.values;
  return json;
}

std::string which(const ValuesOptions& options) {
  return std::format("{}{}", options.output ? std::format(" of {}", *options.output) : "",
                     options.step ? std::format(" in step {}", *options.step) : "");
}

int run(const ValuesOptions& options) {
  Progress progress("values", progress_visibility(options.json));
  std::filesystem::path file;
  if (const auto& asked = options.npy ? options.npy : options.safetensors) {
    auto path = output_path(*asked, Target::FileOrPipe, {options.file}, options.force);
    if (!path) return progress.failed(path.error());
    file = *std::move(path);
  }
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  const auto captured = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return captured_outputs(session, options, progress.start("reading the values"));
  });
  if (!captured) return progress.failed(captured.error());
  progress.end();
  const std::vector<CapturedOutput>& outputs = captured->outputs;
  if (outputs.empty()) {
    return progress.failed(std::format(
        "{}: no output{} was captured. Record with --capture, such as --capture 'l_out@S0'.",
        options.file, which(options)));
  }
  if (options.npy) {
    if (outputs.size() > 1)
      return progress.failed(
          std::format("{} has {} outputs{}; --npy writes one. Add --step or another --op.",
                      options.file, outputs.size(), which(options)));
    if (const auto written = exchange::write_file(file, exchange::npy_of(outputs[0].values));
        !written)
      return progress.failed(written.error());
    return progress.exit_code();
  }
  if (options.safetensors) {
    auto out = exchange::OutputFile::create(file);
    if (!out) return progress.failed(out.error());
    auto written = exchange::write_safetensors(*reader, selection_of(options), out->sink(),
                                               progress.start("writing the values"));
    if (written) written = out->commit();
    if (!written) return progress.failed(written.error());
    progress.end();
    return progress.exit_code();
  }
  if (options.json) {
    Json json = {{"outputs", Json::array()}, {"not_captured", captured->not_captured}};
    for (const CapturedOutput& of : outputs) json["outputs"].push_back(json_of(of));
    put_line(text_of(json));
    return progress.exit_code();
  }
  if (options.output) {
    for (const CapturedOutput& of : outputs) print_values(of);
  } else {
    print_table(outputs);
    print_line("\n{} captured, {} not captured", counted(outputs.size(), "output"),
               captured->not_captured);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_values_command(CLI::App& command) {
  auto options = std::make_shared<ValuesOptions>();
  add_session_file(command, options->file);
  CLI::Option* output =
      command
          .add_option("--op", options->output,
                      "Name of an output, such as l_out-3: print its values, of each dimension the "
                      "first and the last three; with --json: all")
          ->type_name("NAME");
  command.add_option("--step", options->step, "Only of this step")->type_name("N");
  command
      .add_option("--npy", options->npy,
                  "Write the values of one output to a file for numpy.load()")
      ->needs(output)
      ->check(file_name())
      ->type_name("FILE");
  command
      .add_option("--safetensors", options->safetensors,
                  "Write the values of all outputs, or of those that --op and --step select, to a "
                  "file in the format of safetensors: arrays called step0.op17.l_out-3")
      ->excludes("--npy")
      ->check(file_name())
      ->type_name("FILE");
  command.add_flag("--json", options->json, "Print JSON");
  command.add_flag("--force", options->force, "Replace an existing file");
  command.footer("Example: tt values s.ttrace --op l_out-3 --step 0 --npy l_out.npy");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
