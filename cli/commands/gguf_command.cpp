// tt gguf MODEL: lists metadata and tensors of a model with their file offsets, or the compression
// of its weights. Reads only the file headers. Checks what the loader checks: why it would refuse
// the file is printed to stderr, after the list of what can be read, and the exit code is 1. A
// sound file is loaded by llama.cpp without its weights, in a child process.
//
// tt gguf reorder MODEL --by-use SESSION -o NEW: writes the model with its tensors in the order in
// which the session uses them.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <format>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/weights/compression.h"
#include "analysis/weights/file_order.h"
#include "api/exchange/rows/byte_sink.h"
#include "api/json/gguf_weights.h"
#include "api/json/model_json.h"
#include "api/json/result_json.h"
#include "api/text/escape_control_chars.h"
#include "api/text/shape_text.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/installation.h"
#include "program/validators.h"
#include "tracer/engine/model_check.h"
#include "tracer/engine/model_kind.h"
#include "tracer/format/names/names.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/reordered_gguf.h"
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
  return std::string(utf8_prefix(text, kMaxBytes)) + "...";
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
  TextTable table({"key", "type", "value"});
  for (const GgufEntry& entry : index.metadata()) {
    const auto* array = std::get_if<GgufArray>(&entry.value);
    table.add(cell_text(entry.key), array == nullptr ? entry.type : array->type + "[]",
              metadata_text(entry));
  }
  table.print();
  put("\n");
}

void print_tensors(const GgufIndex& index) {
  TextTable files({">file", ">bytes", "path"});
  for (std::size_t i = 0; i < index.files().size(); ++i) {
    const ModelFile& file = index.files()[i];
    files.add(i, file.size, file.path);
  }
  files.print();
  put("\n");
  print_metadata(index);
  TextTable table({">file", ">offset", ">size", "type", ">shape", ">layer", "component", "name"});
  for (const GgufTensor& tensor : index.tensors()) {
    table.add(tensor.file.file, tensor.file.offset, tensor.file.length, tensor.type,
              shape_text(tensor.ne), layer_of(tensor.name),
              to_text(component_of(tensor.name, TensorKind::Weight)), tensor.name);
  }
  table.print();
}

void add_sum(TextTable& table, const std::string& of, const Compression& sum,
             const Compression& total) {
  const double all = static_cast<double>(std::max<std::uint64_t>(total.bytes.v, 1));
  table.add(of, sum.tensors, sum.elements, format_bytes(sum.bytes),
            std::format("{:.1f} %", 100 * static_cast<double>(sum.bytes.v) / all),
            std::format("{:.3f}", sum.bits_per_weight()), std::format("{:.2f}", sum.ratio(16)),
            std::format("{:.2f}", sum.ratio(32)));
}

TextTable make_sums_table(const char* what) {
  return TextTable({what, ">tensors", ">elements", ">size", ">share", ">bits/weight", ">F16 ratio",
                    ">F32 ratio"});
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

// ---------------------------------------------------------------- reorder

struct ReorderOptions {
  std::string model, session, output;
  bool force = false, json = false;
};

// What is printed.
struct Reordered {
  std::uint64_t bytes_before = 0, bytes_after = 0;
  std::size_t tensors = 0, used = 0, moved = 0;
  std::string hash_before, hash_after;
};

void print(const ReorderOptions& options, const Reordered& done) {
  if (options.json) {
    put_line(text_of({{"tensors", done.tensors},
                      {"used", done.used},
                      {"moved", done.moved},
                      {"files",
                       {{{"path", options.model},
                         {"size", done.bytes_before},
                         {"tensors_xxh128", done.hash_before}},
                        {{"path", options.output},
                         {"size", done.bytes_after},
                         {"tensors_xxh128", done.hash_after}}}}}));
    return;
  }
  print_line("{} of {} tensors are used by generated tokens of {}; {} tensors were moved.",
             done.used, done.tensors, options.session, done.moved);
  TextTable files({"file", ">bytes", "XXH128 of all tensors"});
  files.add(options.model, done.bytes_before, done.hash_before);
  files.add(options.output, done.bytes_after, done.hash_after);
  files.print();
}

Status check_space(const std::filesystem::path& output, std::uint64_t bytes) {
  std::error_code unknown;
  const auto space = std::filesystem::space(output.parent_path(), unknown);
  if (unknown || space.available >= bytes) return {};
  return std::unexpected(TraceError{
      TraceError::Kind::DiskFull,
      std::format("{} needs {}, but the disk has only {} left. Choose a folder on another disk.",
                  output.string(), format_bytes(bytes), format_bytes(space.available))});
}

// Writes the file, and compares the hashes of all tensors before it gets its name.
Expected<Reordered> write_reordered(const ReorderOptions& options, const ReorderedGguf& plan,
                                    const std::filesystem::path& output, Progress& progress) {
  if (auto room = check_space(output, plan.bytes()); !room) return std::unexpected(room.error());
  auto file = exchange::OutputFile::create(output);
  if (!file) return std::unexpected(file.error());
  const auto before = plan.write(file->sink(), progress.start_bytes("writing " + options.output));
  if (!before) return std::unexpected(before.error());
  const auto after =
      tensor_hashes(file->written_path(), progress.start_bytes("checking " + options.output));
  if (!after) return std::unexpected(after.error());
  if (*before != *after)
    return std::unexpected(TraceError{
        TraceError::Kind::Damaged,
        std::format("the tensors of {} have other bytes than those of {} (XXH128 {} and {}), so it "
                    "was removed. Check the disk and run the command again.",
                    options.output, options.model, hash_of(*after), hash_of(*before))});
  if (auto named = file->commit(); !named) return std::unexpected(named.error());
  return Reordered{.bytes_before = plan.bytes_before(),
                   .bytes_after = plan.bytes(),
                   .tensors = plan.tensors(),
                   .moved = plan.moved(),
                   .hash_before = hash_of(*before),
                   .hash_after = hash_of(*after)};
}

int reorder(const ReorderOptions& options) {
  Progress progress("gguf reorder", progress_visibility(options.json));
  std::vector<std::filesystem::path> inputs = model_files(options.model);
  inputs.emplace_back(options.session);
  const auto output = output_path(options.output, Target::File, inputs, options.force);
  if (!output) return progress.failed(output.error());
  auto session = open_session(options.session);
  if (!session) return progress.failed(session.error());
  const auto order = progress.query_valid_prefix(*session, [&](const SessionReader& reader) {
    return weights_by_use(reader, progress.start("reading the session"));
  });
  if (!order) return progress.failed(order.error());
  if (order->empty())
    return progress.failed(std::format(
        "{} has no generated token with accesses to weights. Record some tokens of the model at "
        "the level detailed.",
        options.session));
  const auto plan = ReorderedGguf::plan(options.model, *order);
  if (!plan && plan.error().kind == TraceError::Kind::NotFound)
    return progress.failed(std::format("{}, which {} uses. Record a session of this model.",
                                       plan.error().message, options.session));
  if (!plan) return progress.failed(plan.error());
  auto done = write_reordered(options, *plan, *output, progress);
  if (!done) return progress.failed(done.error());
  done->used = order->size();
  progress.end();
  print(options, *done);
  return progress.exit_code();
}

std::function<int()> add_reorder(CLI::App& command) {
  auto options = std::make_shared<ReorderOptions>();
  command.add_option("model", options->model, "Model file (.gguf); not a split model")
      ->required()
      ->type_name("FILE");
  command
      .add_option("--by-use", options->session,
                  "Session (.ttrace): the tensors that its generated tokens use come first, in "
                  "the order of their first use")
      ->required()
      ->type_name("FILE");
  command.add_option("-o,--output", options->output, "File to write")
      ->required()
      ->type_name("FILE");
  command.add_flag("--force", options->force, "Replace an existing file");
  command.add_flag("--json", options->json, "Print the result as JSON");
  command.footer(
      "Metadata and the bytes of all tensors stay the same; a hash of them is printed of both "
      "files.\n\n"
      "Example: tt record -m model.gguf -p Hello -n 2 -o s.ttrace\n"
      "         tt gguf reorder model.gguf --by-use s.ttrace -o by-use.gguf");
  return [options] { return reorder(*options); };
}

}  // namespace

RunVerb add_gguf_command(CLI::App& command) {
  auto options = std::make_shared<GgufOptions>();
  // CLI11 takes the name of a part of the verb for a positional argument that is required.
  auto* model = command
                    .add_option("model", options->model,
                                "Model file (.gguf); the first file of a split model")
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
  CLI::App* const reorder = command.add_subcommand(
      "reorder", "Write the model with its tensors in the order in which a session uses them");
  return [options, model, reorder, run_reorder = add_reorder(*reorder)] {
    if (reorder->parsed()) return run_reorder();
    if (model->count() == 0) throw CLI::RequiredError(model->get_name());
    return run(*options);
  };
}

}  // namespace tt::cli
