// tt weights MODEL [TENSOR]: the values of weights, how far they are from those of another file,
// and which tensors may have fewer bits. Reads the model file; runs nothing.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <format>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "analysis/weights/weight_uses.h"
#include "api/exchange/rows/byte_sink.h"
#include "api/json/row_uses.h"
#include "cli/commands/verbs.h"
#include "cli/commands/weights_output.h"
#include "cli/options/output_path.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "program/validators.h"
#include "tracer/text/nearest.h"
#include "tracer/weights/block_parameters.h"
#include "tracer/weights/importance_file.h"
#include "tracer/weights/model_comparison.h"

namespace tt::cli {
namespace {

struct WeightsOptions {
  std::string model, tensor, reference, imatrix, session;
  std::optional<std::uint64_t> fit;
  std::size_t rows = kTriedRows;
  WeightsForm form = WeightsForm::Table;
  bool json = false, blocks = false, force = false;
  std::string output;

  WeightsForm chosen_form() const { return json ? WeightsForm::Json : form; }
};

struct Model {
  GgufIndex index;
  WeightReader reader;
};

std::expected<Model, std::string> open_model(const std::string& path) {
  auto index = GgufIndex::open(path);
  if (!index) return std::unexpected(std::move(index.error()));
  auto reader = WeightReader::open(*index);
  if (!reader) return std::unexpected(std::move(reader.error()));
  return Model{.index = *std::move(index), .reader = *std::move(reader)};
}

std::expected<const GgufTensor*, std::string> find_tensor(const GgufIndex& index,
                                                          const std::string& name) {
  if (const GgufTensor* found = index.find(name)) return found;
  const auto names = index.tensors() | std::views::transform(&GgufTensor::name);
  return std::unexpected(
      std::format("the model has no tensor {}{}", name, did_you_mean(name, names)));
}

int list(Model& model, const WeightsOptions& options, Progress& progress) {
  const auto summaries =
      tensor_summaries(model.reader, model.index, progress.start("reading weights"));
  if (!summaries) return progress.failed(summaries.error());
  progress.end();
  print_weights(*summaries, options.chosen_form());
  return progress.exit_code();
}

// A line per sub-block.
int list_blocks(Model& model, const GgufTensor& tensor, const WeightsOptions& options,
                Progress& progress) {
  if (block_layout(tensor.type) == nullptr)
    return progress.failed(
        std::format("{} has no blocks: its type is {}", tensor.name, tensor.type));
  const auto keep_going = progress.start("reading blocks");
  progress.end();
  BlockPrinter printer(tensor, options.chosen_form());
  const auto read = for_each_block(
      model.reader, tensor, [&](const WeightBlock& block) { printer.add(block); },
      [&] { return keep_going() && output_ok(); });
  if (!read && output_ok()) return progress.failed(read.error());
  printer.end();
  return progress.exit_code();
}

int show_tensor(Model& model, const GgufTensor& tensor, const WeightsOptions& options,
                Progress& progress) {
  const auto details = tensor_details(model.reader, tensor, progress.start("reading weights"));
  if (!details) return progress.failed(details.error());
  progress.end();
  print_details(*details, options.chosen_form());
  return progress.exit_code();
}

int compare(Model& model, const WeightsOptions& options, const Weighing& weighing,
            Progress& progress) {
  auto reference = open_model(options.reference);
  if (!reference) return progress.failed(reference.error());
  const OpenModel of_reference{.index = reference->index, .reader = reference->reader};
  const OpenModel of_model{.index = model.index, .reader = model.reader};
  if (!options.tensor.empty()) {
    const auto tensor = find_tensor(model.index, options.tensor);
    if (!tensor) return progress.failed(tensor.error());
    const auto compared = compare_tensor(of_reference, of_model, **tensor,
                                         {.worst = kWorstErrors, .rows = options.rows}, weighing,
                                         progress.start("comparing weights"));
    if (!compared) return progress.failed(compared.error());
    if (!compared->why.empty())
      return progress.failed(std::format("{}: {}", (*tensor)->name, compared->why));
    progress.end();
    print_worst(*compared, options.chosen_form());
    return progress.exit_code();
  }
  if (const std::string why = incomparable_reason(reference->index, model.index); !why.empty())
    return progress.failed(std::format("{}, {}: {}", options.model, options.reference, why));
  const auto compared = compare_models(of_reference, of_model, {.rows = options.rows}, weighing,
                                       progress.start("comparing weights"));
  if (!compared) return progress.failed(compared.error());
  progress.end();
  print_errors(*compared, options.rows, options.chosen_form());
  return progress.exit_code();
}

// How often a session read the rows of the weights.
std::expected<Uses, std::string> uses_in(const std::string& file, const GgufIndex& index,
                                         Progress& progress) {
  auto reader = open_session(file);
  if (!reader) return std::unexpected(reader.error().message);
  const auto read = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return weight_uses(session, progress.start("reading the session"));
  });
  if (!read) return std::unexpected(read.error().message);
  return row_uses(*read, index).transform_error([&](const std::string& why) {
    return std::format("{}: {}", file, why);
  });
}

std::string types_file(const QuantizationMix& mix) {
  std::string text;
  for (const MixTensor& tensor : mix.tensors)
    if (!tensor.is_fixed) text += tensor.rule + "\n";
  return text;
}

// Where --fit writes; empty: nowhere.
std::expected<std::filesystem::path, std::string> types_path(const WeightsOptions& options) {
  if (options.output.empty()) return {};
  std::vector<std::filesystem::path> inputs = model_files(options.model);
  inputs.insert(inputs.end(), {options.reference, options.imatrix, options.session});
  return output_path(options.output, Target::File, inputs, options.force);
}

int fit(Model& model, const WeightsOptions& options, const Weighing& weighing,
        const std::filesystem::path& output, Progress& progress) {
  const auto keep_going = progress.start("trying types");
  auto mix =
      quantization_mix(model.reader, model.index, {.bytes = *options.fit, .rows = options.rows},
                       weighing, [&] { return keep_going(); });
  if (!mix) return progress.failed(mix.error());
  progress.end();
  if (!output.empty()) {
    if (const auto written = exchange::write_file(output, types_file(*mix)); !written)
      return progress.failed(written.error());
  }
  print_mix(*mix, options.chosen_form());
  if (!output.empty() && options.chosen_form() == WeightsForm::Table)
    print_line(
        "\nllama-quantize --tensor-type-file {} {} new.gguf Q8_0\n"
        "tt weights new.gguf --reference {}",
        options.output, options.model, options.model);
  return progress.exit_code();
}

int run(const WeightsOptions& options) {
  Progress progress("weights", progress_visibility(options.chosen_form() == WeightsForm::Json));
  auto model = open_model(options.model);
  if (!model) return progress.failed(model.error());
  const auto output = types_path(options);
  if (!output) return progress.failed(output.error());
  if (!options.session.empty() && options.reference.empty() && !options.fit)
    return progress.failed("--session weighs the errors of --reference or --fit: give one of them");
  Weighing weighing;
  if (!options.imatrix.empty()) {
    auto read = read_importance(options.imatrix, progress.start("reading importances"));
    if (!read) return progress.failed(read.error());
    weighing.importances = *std::move(read);
  }
  if (!options.session.empty()) {
    auto uses = uses_in(options.session, model->index, progress);
    if (!uses) return progress.failed(uses.error());
    weighing.uses = *std::move(uses);
  }
  if (!options.reference.empty()) return compare(*model, options, weighing, progress);
  if (options.fit) return fit(*model, options, weighing, *output, progress);
  if (options.tensor.empty()) return list(*model, options, progress);
  auto tensor = find_tensor(model->index, options.tensor);
  if (!tensor) return progress.failed(tensor.error());
  if (std::string why = undecodable_reason(**tensor); !why.empty())
    return progress.failed(std::format("{}: {}", (*tensor)->name, why));
  return options.blocks ? list_blocks(*model, **tensor, options, progress)
                        : show_tensor(*model, **tensor, options, progress);
}

}  // namespace

RunVerb add_weights_command(CLI::App& command) {
  auto options = std::make_shared<WeightsOptions>();
  command
      .add_option("model", options->model, "Model file (.gguf); the first file of a split model")
      ->required()
      ->type_name("FILE");
  auto* tensor = command.add_option("tensor", options->tensor,
                                    "Show one tensor: quantiles, a histogram, its largest rows");
  auto* reference =
      command
          .add_option("--reference", options->reference,
                      "Show the errors against the same tensors of this file, such as the F16 "
                      "file from which the model was quantized")
          ->type_name("FILE");
  command
      .add_option("--imatrix", options->imatrix,
                  "Weigh errors by the importances in this file of llama-imatrix")
      ->type_name("FILE");
  auto* fit = command
                  .add_option("--fit", options->fit,
                              "Find the types with which all tensors fit into SIZE with the least "
                              "error")
                  ->transform(size_in_bytes())
                  ->excludes(reference)
                  ->excludes(tensor)
                  ->type_name("SIZE");
  command
      .add_option("--rows", options->rows,
                  "Rows of each tensor that --fit tries, and that --reference predicts errors from")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--session", options->session,
                  "Weigh errors by how often this session read each row: those of experts that "
                  "are often chosen count most")
      ->type_name("FILE");
  auto* output =
      command
          .add_option("-o,--output", options->output,
                      "File for the types of --fit, as llama-quantize --tensor-type-file reads it")
          ->needs(fit)
          ->type_name("FILE");
  command.add_flag("--force", options->force, "Replace an existing file")->needs(output);
  command
      .add_flag("--blocks", options->blocks,
                "List all blocks of the tensor: scales, minima, statistics of their values")
      ->needs(tensor)
      ->excludes(reference);
  const std::map<std::string, WeightsForm> forms = {
      {"table", WeightsForm::Table}, {"csv", WeightsForm::Csv}, {"json", WeightsForm::Json}};
  auto* form = command
                   .add_option("--format", options->form,
                               "Output format: table, csv or json (default: table)")
                   ->transform(choice(forms))
                   ->type_name("FORMAT");
  command.add_flag("--json", options->json, "Same as --format json")->excludes(form);
  command.footer(
      "Example: tt weights q4.gguf --reference f16.gguf\n"
      "         tt weights f16.gguf --fit 2GiB -o types.txt");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
