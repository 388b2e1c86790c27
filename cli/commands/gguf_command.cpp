// tt gguf MODEL: lists the tensors of a model with their file offsets, or the compression of its
// weights. Reads only the file headers.
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
#include "api/json/analysis/compression_json.h"
#include "api/json/model_json.h"
#include "cli/commands/verbs.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/validators.h"
#include "tracer/format/names/names.h"
#include "tracer/gguf/gguf_index.h"

namespace tt::cli {
namespace {

enum class Form : std::uint8_t { Table, Csv, Json };

struct GgufOptions {
  std::string model;
  Form form = Form::Table;
  bool json = false, compression = false;
};

std::string shape_text(const GgufTensor& tensor) {
  std::size_t dimensions = tensor.ne.size();
  while (dimensions > 1 && tensor.ne[dimensions - 1] == 1) --dimensions;
  std::string text;
  for (std::size_t i = 0; i < dimensions; ++i)
    text += std::format("{}{}", i == 0 ? "" : "x", tensor.ne[i]);
  return text;
}

void print_tensors(const GgufIndex& index) {
  TextTable files({{"file", Align::Right}, {"bytes", Align::Right}, {"path"}});
  for (std::size_t i = 0; i < index.files().size(); ++i) {
    const ModelFile& file = index.files()[i];
    files.add({std::to_string(i), std::to_string(file.size), file.path});
  }
  files.print();
  put("\n");
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
               std::to_string(tensor.file.length), tensor.type, shape_text(tensor),
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

int run(const GgufOptions& options) {
  const auto index = GgufIndex::open(options.model);
  if (!index) {
    std::println(stderr, "tt gguf: {}", index.error());
    return 1;
  }
  const Form form = options.json ? Form::Json : options.form;
  if (options.compression) {
    const CompressionReport report = compression(weights_of(*index));
    switch (form) {
      case Form::Table:
        print_compression(report);
        break;
      case Form::Csv:
        print_compression_csv(report);
        break;
      case Form::Json:
        print_line("{}", text_of(to_json(report)));
        break;
    }
    return 0;
  }
  switch (form) {
    case Form::Table:
      print_tensors(*index);
      break;
    case Form::Csv:
      print_text("{}", csv_of(*index));
      break;
    case Form::Json:
      print_line("{}", text_of(to_json(*index)));
      break;
  }
  return 0;
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
  command.footer("Example: tt gguf model.gguf --format csv > structure.csv");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
