// tt values FILE: the captured outputs of ops.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <format>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/common/op_info.h"
#include "analysis/tables/value_summary.h"
#include "api/exchange/rows/byte_sink.h"
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

// Calls `visit(step, graph, name, output)` for the outputs that the options select, in order, until
// it returns an error. Returns how many were not captured.
template <class Visit>
std::expected<std::uint64_t, TraceError> each_output(const SessionReader& reader,
                                                     const ValuesOptions& options,
                                                     const ContinueCheck& keep_going, Visit visit) {
  std::uint64_t not_captured = 0;
  std::expected<void, TraceError> done;
  const auto add = [&](const StepValues& of) {
    if (!keep_going()) done = std::unexpected(cancelled_error());
    not_captured += of.not_captured;
    if (!done || of.outputs.empty()) return done.has_value();
    const auto step = reader.step(of.step);
    const auto graph = step ? reader.graph(step->graph) : std::unexpected(step.error());
    if (!graph) {
      done = std::unexpected(graph.error());
      return false;
    }
    for (const OutputValues& output : of.outputs) {
      const std::string tensor = value_name(**graph, output);
      if (options.output && tensor != *options.output) continue;
      done = visit(of.step, **graph, tensor, output);
      if (!done) return false;
    }
    return true;
  };
  const auto read = options.step ? reader.for_each_values(StepId{*options.step}, 1, add)
                                 : reader.for_each_values(StepId{0}, UINT32_MAX, add);
  if (!read) return std::unexpected(read.error());
  if (!done) return std::unexpected(done.error());
  return not_captured;
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
  const auto not_captured = each_output(reader, options, keep_going, add);
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
  constexpr Align kRight = Align::Right;
  TextTable table({{"step", kRight},
                   {"op", kRight},
                   {"operation"},
                   {"output"},
                   {"shape", kRight},
                   {"min", kRight},
                   {"max", kRight},
                   {"mean", kRight},
                   {"std", kRight},
                   {"norm", kRight},
                   {"NaN", kRight},
                   {"Inf", kRight}});
  const auto number = [](double value) { return std::format("{:.4g}", value); };
  const auto count = [](std::uint64_t n) { return n == 0 ? "" : std::to_string(n); };
  for (const CapturedOutput& of : outputs) {
    const ValueSummary& s = of.summary;
    table.add({std::to_string(of.step.v), std::to_string(of.values.op.v), of.operation, of.tensor,
               shape_of(of.values), number(s.min), number(s.max), number(s.mean), number(s.std),
               number(s.norm), count(s.nan), count(s.inf)});
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

// The dimensions, outermost first, without those of 1 that are outermost.
std::vector<std::uint64_t> array_shape(const OutputValues& values) {
  std::size_t dimensions = values.ne.size();
  while (dimensions > 1 && values.ne[dimensions - 1] == 1) --dimensions;
  return {values.ne.rend() - static_cast<std::ptrdiff_t>(dimensions), values.ne.rend()};
}

// The file format of numpy.save(), version 1.0.
std::string npy_of(const OutputValues& values) {
  std::string shape;
  for (const std::uint64_t n : array_shape(values)) shape += std::format("{}, ", n);
  std::string header =
      std::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  constexpr std::size_t kFixed = 10, kAlignment = 64;
  const std::size_t size = kFixed + header.size() + 1;  // with the line break
  header.append((kAlignment - size % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string npy("\x93NUMPY\x01\x00", 8);
  npy += static_cast<char>(header.size() & 0xFF);
  npy += static_cast<char>(header.size() >> 8);
  npy += header;
  const auto bytes = std::as_bytes(std::span(values.values));
  npy.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return npy;
}

std::uint64_t bytes_of(const OutputValues& values) {
  std::uint64_t n = sizeof(float);
  for (const std::uint64_t ne : values.ne) n *= ne;
  return n;
}

// The format of safetensors: the length of the header in 8 bytes, the header as JSON, the values
// one array after the other. They are read a second time, one step at a time.
std::expected<void, TraceError> write_safetensors(const std::filesystem::path& path,
                                                  const SessionReader& reader,
                                                  const std::vector<CapturedOutput>& outputs,
                                                  const ValuesOptions& options,
                                                  const ContinueCheck& keep_going) {
  Json header = Json::object();
  std::uint64_t at = 0;
  for (const CapturedOutput& of : outputs) {
    const std::uint64_t end = at + bytes_of(of.values);
    header[std::format("step{}.op{}.{}", of.step.v, of.values.op.v, of.tensor)] = {
        {"dtype", "F32"}, {"shape", array_shape(of.values)}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = text_of(header);
  constexpr std::size_t kAlignment = 8;
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string length;
  for (unsigned shift = 0; shift < 64; shift += 8)
    length += static_cast<char>(text.size() >> shift & 0xFF);
  auto file = exchange::OutputFile::create(path);
  if (!file) return std::unexpected(file.error());
  if (auto written = file->write(length + text); !written) return written;
  const auto written =
      each_output(reader, options, keep_going,
                  [&](StepId, const GraphTemplate&, const std::string&, const OutputValues& of) {
                    const auto bytes = std::as_bytes(std::span(of.values));
                    return file->write(std::string_view(reinterpret_cast<const char*>(bytes.data()),
                                                        bytes.size()));
                  });
  if (!written) return std::unexpected(written.error());
  return file->commit();
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
    if (const auto written = exchange::write_file(file, npy_of(outputs[0].values)); !written)
      return progress.failed(written.error());
    return progress.exit_code();
  }
  if (options.safetensors) {
    const auto written =
        write_safetensors(file, *reader, outputs, options, progress.start("writing the values"));
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
