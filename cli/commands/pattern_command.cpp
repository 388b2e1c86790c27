// tt pattern FILE: whether each token accesses the same bytes; writes access_pattern.json.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "analysis/common/format_units.h"
#include "analysis/weights/pattern.h"
#include "api/exchange/rows/byte_sink.h"
#include "api/json/result_json.h"
#include "api/text/escape_control_chars.h"
#include "cli/commands/verbs.h"
#include "cli/options/output_path.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {
namespace {

struct PatternOptions {
  std::string file;
  std::optional<std::filesystem::path> output;  // -: stdout
  bool json = false, force = false;
};

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

void print_summary(const AccessPattern& pattern, const Determinism& same) {
  print_line("{} compared with the previous one: {} identical, {} read the same weights",
             counted(same.pairs, "token"), same.identical, same.same_weights);
  for (const FirstDifference& first : same.firsts) {
    const std::uint64_t count = same.differing[static_cast<std::size_t>(first.cause)];
    print_line("  {:<10} {:>9} ({:.2f} %), first in step {}, op {}, {}", to_text(first.cause),
               counted(count, "access"), share(count, same.accesses), first.step.v, first.op.v,
               escape_control_chars(first.tensor));
  }
  std::uint64_t routed = 0;
  for (const PatternEntry& entry : pattern.entries) routed += entry.kind == ReadKind::Routed;
  print_line("{} per token, {} of them selected by routers",
             counted(pattern.entries.size(), "weight read"), routed);
  const Prediction& prediction = pattern.prediction;
  print_line(
      "next-read prediction: {:.2f} % of reads correct, {:.2f} % of bytes ({} tested, {} "
      "used for learning)",
      100 * prediction.accuracy(), share(prediction.right_bytes.v, prediction.bytes.v),
      counted(prediction.steps_tried, "token"), prediction.steps_learned);
}

int run(const PatternOptions& options) {
  const bool to_stdout = options.json || options.output == "-";
  const bool to_file = options.output && options.output != "-";
  std::filesystem::path file;
  Progress progress("pattern", progress_visibility(to_stdout));
  if (to_file) {
    auto output = output_path(*options.output, Target::FileOrPipe, {options.file}, options.force);
    if (!output) return progress.failed(output.error());
    file = *std::move(output);
  }
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  const auto found = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return recorded_pattern(session, progress.start("learning the read order"));
  });
  if (!found) return progress.failed(found.error());
  const AccessPattern& pattern = found->pattern;
  if (pattern.entries.empty()) return progress.failed(kNoPattern);
  progress.end();
  const std::string json = text_of(to_json(*found)) + '\n';
  if (to_file) {
    if (const auto written = exchange::write_file(file, json); !written)
      return progress.failed(written.error());
  }
  if (to_stdout) {
    put(json);
  } else {
    print_summary(pattern, found->determinism);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_pattern_command(CLI::App& command) {
  auto options = std::make_shared<PatternOptions>();
  add_session_file(command, options->file);
  command
      .add_option("-o,--output", options->output,
                  "File for the pattern, for example access_pattern.json; -: stdout")
      ->type_name("FILE");
  command.add_flag("--json", options->json, "Print the pattern as JSON");
  command.add_flag("--force", options->force, "Replace an existing file");
  command.footer("Example: tt pattern s.ttrace -o access_pattern.json");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
