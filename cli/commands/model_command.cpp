// tt model SHAPE -o FILE: writes a generated model; tt model --list lists shapes and quantizations.
// Exit code 2 for an unknown shape or quantization or an invalid combination. Written files are
// removed after an interrupt.
#include <cstdio>
#include <format>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/common/format_units.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/terminal/interrupt_guard.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/status_line.h"
#include "tracer/format/file/input_file.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::cli {
namespace {

using modelgen::ModelError;
using modelgen::ModelSpec;

// Parsed options; must outlive the subcommand.
struct GeneratedModel {
  ModelSpec spec;
  std::string shape;
  std::string output;
  std::vector<std::string> class_types;
  std::string pieces_file;
  bool list = false;
  bool force = false;
  bool quiet = false;
};

void print_list() {
  print_line("Shapes:");
  for (const modelgen::NamedShape& shape : modelgen::named_shapes()) {
    print_line("  {:<16} {} [{}]", shape.name, shape.description, shape.quant);
  }
  std::string names;
  for (const std::string& name : modelgen::quant_mixes()) {
    names += " " + name;
  }
  print_line("Quantizations (--quant):{}", names);
  print_line("Classes (--quant-class): embedding attention ffn experts ssm output");
}

std::expected<std::vector<std::string>, std::string> read_pieces(const std::string& path) {
  constexpr std::uint64_t kMaxBytes = 64U << 20;
  const auto text = read_input(path, kMaxBytes, InputKind::RegularOrPipe);
  if (!text) return std::unexpected("--pieces: " + text.error().message);
  std::istringstream file(*text);
  std::vector<std::string> pieces;
  for (std::string line; std::getline(file, line);) {
    pieces.push_back(line == "\\n" ? "\n" : line);
  }
  return pieces;
}

constexpr int kWrongUsage = 2;

int exit_code_of(ModelError::Kind kind) {
  switch (kind) {
    case ModelError::Kind::UnknownShape:
    case ModelError::Kind::UnknownQuantization:
    case ModelError::Kind::BadSpec:
      return kWrongUsage;
    case ModelError::Kind::Io:
      return 1;
    case ModelError::Kind::Cancelled:
      return 130;
  }
  return 1;
}

int run(GeneratedModel& options) {
  if (options.list) {
    print_list();
    return 0;
  }
  const auto fail = [](const std::string& message, int exit_code) {
    print_message("tt model: {}", message);
    return exit_code;
  };
  if (options.shape.empty()) {
    return fail("a shape is required. `tt model --list` lists the shapes", kWrongUsage);
  }
  options.spec.shape = options.shape;
  if (options.output.empty()) {
    options.output = options.shape + ".gguf";
  }
  for (const auto& file : modelgen::model_files(options.spec, options.output)) {
    const auto output = output_path(file, Target::File, {options.pieces_file}, options.force);
    if (!output) return fail(output.error(), 1);
    std::error_code none;
    if (options.spec.splits <= 1) {
      options.output = output->string();
    } else if (std::filesystem::is_symlink(file, none)) {  // the files are named after the first
      return fail(file.string() +
                      " is a link, which a split model cannot be written through. "
                      "Choose another name.",
                  1);
    }
  }
  for (const std::string& text : options.class_types) {
    const auto chosen = modelgen::parse_class_type(text);
    if (!chosen) {
      return fail("--quant-class: " + chosen.error().message, kWrongUsage);
    }
    options.spec.class_type.insert_or_assign(chosen->first, chosen->second);
  }
  if (!options.pieces_file.empty()) {
    auto pieces = read_pieces(options.pieces_file);
    if (!pieces) {
      return fail(pieces.error(), 1);
    }
    options.spec.pieces = std::move(*pieces);
  }

  // On an interrupt write_model() removes the files it has written.
  const InterruptGuard guard;
  StatusLine line(!options.quiet);
  const auto report = modelgen::write_model(
      options.spec, options.output, [&](std::uint64_t done, std::uint64_t total) {
        line.show(std::format("{:3} % of {}", done * 100 / total, format_bytes(total)));
        return !was_interrupted();
      });
  line.clear();
  if (!report) {
    return fail(report.error().message, exit_code_of(report.error().kind));
  }
  if (!options.quiet) {
    for (const auto& file : report->files) {
      print_line("{}", file.string());
    }
    print_line("{} tensors, {}, {:.1f} s", report->tensors, format_bytes(report->bytes),
               static_cast<double>(report->took.count()) / 1e3);
  }
  return 0;
}

}  // namespace

RunVerb add_model_command(CLI::App& command) {
  auto options = std::make_shared<GeneratedModel>();
  command.add_option("shape", options->shape, "Architecture and size of the model (see --list)");
  command.add_flag("--list", options->list, "List the shapes and quantizations and exit");
  command.add_option("-o,--output", options->output, "File to write (default: SHAPE.gguf)");
  command.add_option("--quant", options->spec.quant,
                     "Quantization: a ggml type, q4_k_m or mxfp4_moe (default: that of the shape)");
  command
      .add_option("--quant-class", options->class_types,
                  "Override --quant for one class of tensors, CLASS=TYPE; may be repeated. "
                  "Classes: embedding, attention, ffn, experts, ssm, output")
      ->allow_extra_args(false);
  command
      .add_option("--seed", options->spec.seed,
                  "Random seed; the same seed and options give the same bytes")
      ->capture_default_str();
  command
      .add_option("--splits", options->spec.splits,
                  "Number of files to split the model into, NAME-00001-of-0000N.gguf")
      ->capture_default_str();
  command.add_flag("--tied", options->spec.tied,
                   "Omit output.weight; the token embedding is the output weight");
  modelgen::DimOverrides& dims = options->spec.dims;
  command.add_option("--layers", dims.layers, "Number of layers");
  command.add_option("--embd", dims.embd, "Embedding length");
  command.add_option("--heads", dims.heads, "Number of attention heads");
  command.add_option("--kv-heads", dims.kv_heads, "Number of key/value heads");
  command.add_option("--ff", dims.ff, "Feed-forward length (of each expert)");
  command.add_option("--experts", dims.experts, "Number of routed experts");
  command.add_option("--experts-used", dims.experts_used, "Number of experts used per token");
  command.add_option("--vocab", dims.vocab, "Vocabulary size");
  command.add_option("--context", dims.context, "Context length in the metadata");
  command.add_option("--pieces", options->pieces_file,
                     "File with a learned vocabulary: one piece per line, best merge first, "
                     "U+2581 for a space, \\n for a line feed");
  command.add_flag("--force", options->force, "Replace an existing file");
  command.add_flag("-q,--quiet", options->quiet, "Print only errors");
  command.footer(
      "Example: tt model --list\n"
      "         tt model moe --layers 4 --experts 16 -o moe.gguf");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
