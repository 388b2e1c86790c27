// tt gguf MODEL: lists metadata and tensors of a model with their file offsets, or the compression
// of its weights. Reads only the file headers. Checks what the loader checks: why it would refuse
// the file is printed to stderr, after the list of what can be read, and the exit code is 1. A
// sound file is loaded by llama.cpp without its weights, in a child process.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <format>
#include <map>
#include <memory>
#include <print>
#include <string>

#include "analysis/common/format_units.h"
#include "analysis/weights/compression.h"
#include "api/json/gguf_weights.h"
#include "api/json/model_json.h"
#include "api/json/result_json.h"
#include "api/text/escape_control_chars.h"
#include "api/text/shape_text.h"
#include "cli/commands/verbs.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/installation.h"
#include "program/validators.h"
#include "tracer/engine/model_check.h"
#include "tracer/engine/model_kind.h"
#include "tracer/format/names/names.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/text/utf8.h"

namespace tt::cli {
namespace {

enum class Form : std::uint8_t { Table, Csv, Json };

struct GgufOptions {
  std::string model;
  Form form = Form::Table;
  bool json = false, compression = false;
};

// For one line of a table.
std::string cell_text(std::string text) {
  constexpr std::size_t kMaxBytes = 80;
  if (text.size() <= kMaxBytes) return text;
  std::size_t end = kMaxBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string text_of_scalar(const GgufScalar& scalar) {
  return value_text({.key = {}, .type = {}, .value = scalar});
}

// "[a, b, c, ...] (32000)"
std::string metadata_text(const GgufEntry& entry) {
  constexpr std::size_t kShown = 6, kElementBytes = 20;
  const auto* array = std::get_if<GgufArray>(&entry.value);
  if (array == nullptr) return cell_text(value_text(entry));
  std::string text;
  const std::size_t shown = std::min(array->first.size(), kShown);
  for (std::size_t i = 0; i < shown; ++i) {
    std::string element = text_of_scalar(array->first[i]);
    if (element.size() > kElementBytes) element = cell_text(element).substr(0, kElementBytes);
    text += std::format("{}{}", i == 0 ? "" : ", ", to_valid_utf8(element));
  }
  return std::format("[{}{}] ({})", text, array->length > shown ? ", ..." : "", array->length);
}

void print_metadata(const GgufIndex& index) {
  TextTable table({{"key"}, {"type"}, {"value"}});
  for (const GgufEntry& entry : index.metadata()) {
    const auto* array = std::get_if<GgufArray>(&entry.value);
    table.add({cell_text(entry.key), array == nullptr ? entry.type : array->type + "[]",
               metadata_text(entry)});
  }
  table.print();
  put("\n");
}

void print_tensors(const GgufIndex& index) {
  TextTable files({{"file", Align::Right}, {"bytes", Align::Right}, {"path"}});
  for (std::size_t i = 0; i < index.files().size(); ++i) {
    const ModelFile& file = index.files()[i];
    files.add({std::to_string(i), std::to_string(file.size), file.path});
  }
  files.print();
  put("\n");
  print_metadata(index);
  TextTable table({{"file", Align::Right},
                   {"offset", Align::Right},
                   {"size", Align::Right},
                   {"type"},
                   {"shape", Align::Right},
                   {"layer", Align::Right},
                   {"component"},
                   {"name"}});
  for (const GgufTensor& tensor : index.tensors()) {
    table.add({std::to_string(tensor.file.file), std::to_string(tensor.file.offset),
               std::to_string(tensor.file.length), tensor.type, shape_text(tensor.ne),
               layer_text(layer_of(tensor.name)),
               to_text(component_of(tensor.name, TensorKind::Weight)), tensor.name});
  }
  table.print();
}

void add_sum(TextTable& table, const std::string& of, const Compression& sum,
             const Compression& total) {
  const double all = static_cast<double>(std::max<std::uint64_t>(total.bytes.v, 1));
  table.add({of, std::to_string(sum.tensors), std::to_string(sum.elements),
             format_bytes(static_cast<double>(sum.bytes.v)),
             std::format("{:.1f} %", 100 * static_cast<double>(sum.bytes.v) / all),
             std::format("{:.3f}", sum.bits_per_weight()), std::format("{:.2f}", sum.ratio(16)),
             std::format("{:.2f}", sum.ratio(32))});
}

TextTable make_sums_table(const char* what) {
  return TextTable({{what},
                    {"tensors", Align::Right},
                    {"elements", Align::Right},
                    {"size", Align::Right},
                    {"share", Align::Right},
                    {"bits/weight", Align::Right},
                    {"F16 ratio", Align::Right},
                    {"F32 ratio", Align::Right}});
}

void print_compression(const CompressionReport& report) {
  TextTable types = make_sums_table("type");
  for (const auto& [type, sum] : report.types) add_sum(types, type, sum, report.total);
  add_sum(types, "all", report.total, report.total);
  types.print();
  put("\n");
  TextTable layers = make_sums_table("layer");
  for (const auto& [layer, sum] : report.layers)
    add_sum(layers, layer_text(layer), sum, report.total);
  layers.print();
  put("\n");
  TextTable components = make_sums_table("component");
  for (const auto& [component, sum] : report.components)
    add_sum(components, to_text(component), sum, report.total);
  components.print();
}

void print_compression_csv(const CompressionReport& report) {
  print_text("type,tensors,elements,bytes,bits_per_weight,ratio_f16,ratio_f32\r\n");
  for (const auto& [type, sum] : report.types) {
    print_text("{},{},{},{},{},{},{}\r\n", type, sum.tensors, sum.elements, sum.bytes.v,
               sum.bits_per_weight(), sum.ratio(16), sum.ratio(32));
  }
}

void print(const GgufOptions& options, const GgufIndex& index) {
  const Form form = options.json ? Form::Json : options.form;
  if (options.compression) {
    const CompressionReport report = compression(weights_of(index));
    switch (form) {
      case Form::Table:
        print_compression(report);
        break;
      case Form::Csv:
        print_compression_csv(report);
        break;
      case Form::Json:
        put_line(text_of(to_json(report)));
        break;
    }
    return;
  }
  switch (form) {
    case Form::Table:
      print_tensors(index);
      break;
    case Form::Csv:
      put(csv_of(index));
      break;
    case Form::Json:
      put_line(text_of(to_json(index)));
      break;
  }
}

// Prints what is wrong with the file, or why it is not a model. Returns the exit code.
int print_faults(const GgufIndex& index, const std::string& model) {
  bool is_refused = false;
  for (const GgufFault& fault : index.faults()) {
    print_message("tt gguf: {}", fault.message);
    if (!fault.is_note()) is_refused = true;
  }
  if (is_refused) return 1;
  std::string why = not_a_model(index);
  if (why.empty()) {
    Sandbox sandbox(current_installation().worker);
    why = metadata_error(sandbox, model);
  }
  if (why.empty()) return 0;
  print_message("tt gguf: {}", why);
  return 1;
}

int run(const GgufOptions& options) {
  const GgufIndex index = GgufIndex::inspect(options.model);
  if (!index.files().empty()) print(options, index);
  flush_output();
  return print_faults(index, options.model);
}

}  // namespace

RunVerb add_gguf_command(CLI::App& command) {
  auto options = std::make_shared<GgufOptions>();
  command
      .add_option("model", options->model, "Model file (.gguf); the first file of a split model")
      ->required()
      ->type_name("FILE");
  command.add_flag("--compression", options->compression,
                   "Show bits per weight and the ratios to F16 and F32 by type, layer and "
                   "component (csv: by type)");
  const std::map<std::string, Form> forms = {
      {"table", Form::Table}, {"csv", Form::Csv}, {"json", Form::Json}};
  auto* form = command
                   .add_option("--format", options->form,
                               "Output format: table, csv or json (default: table)")
                   ->transform(choice(forms))
                   ->type_name("FORMAT");
  command.add_flag("--json", options->json, "Same as --format json")->excludes(form);
  command.footer(
      "If tt record would refuse the file, the reason is printed after what can be read, and the "
      "exit\n"
      "code is 1.\n\nExample: tt gguf model.gguf --format csv > structure.csv");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
