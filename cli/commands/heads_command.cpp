// tt heads FILE: the weight bytes of each attention head, or with --kv the KV cache reads of each
// step.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "analysis/attention/heads.h"
#include "analysis/attention/kv_use.h"
#include "analysis/common/format_units.h"
#include "api/json/result_json.h"
#include "cli/commands/verbs.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {
namespace {

struct HeadsOptions {
  std::string file;
  bool kv = false, json = false;
};

void print_heads(const HeadTable& table) {
  print_line("{}, {}", counted(table.heads, "head"), counted(table.kv_heads, "KV head"));
  if (table.weights.empty()) return;
  put("\n");
  print_line("Bytes of each attention head in each weight, and how much of the weight was read:");
  TextTable text({">layer", "role", ">heads", ">bytes/head", ">ranges/head", ">bytes/range",
                  ">weight's file offset", ">weight's reads", ">weight's bytes read", "weight"});
  for (const HeadWeight& weight : table.weights) {
    const bool divided = weight.geometry.count > 0;
    const auto if_divided = [&](std::uint64_t n) { return divided ? std::to_string(n) : "-"; };
    text.add(weight.layer, to_text(weight.role), if_divided(weight.geometry.count),
             if_divided(weight.head_bytes().v), if_divided(weight.rows),
             if_divided(weight.geometry.bytes.v), weight.file.offset, weight.reads, weight.read.v,
             weight.name);
  }
  text.print();
  put("\n");
  print_line("Q, K, V: head h starts at the file offset + h * bytes/head. O: a head has one range");
  print_line(
      "per row. \"-\": heads share blocks or the whole weight, or the weight combines Q, K and V.");
}

bool is_empty(const KvStep& step) {
  return step.layers.empty() && step.state_read.v + step.state_written.v == 0;
}

void print_kv(const Page<KvStep>& steps) {
  print_line("Bytes of the KV cache that each step and layer read and wrote:");
  TextTable text({">step", "phase", ">tokens", ">layer", ">read: fresh", ">read: cached",
                  ">read: other", ">written"});
  const auto row = [&](const KvStep& step, const std::string& layer, const KvLayer& sum) {
    text.add(step.step.v, to_text(step.phase), step.n_tokens, layer, sum.fresh.v, sum.cached.v,
             sum.other.v, sum.written.v);
  };
  for (const KvStep& step : steps.rows) {
    for (const KvLayer& layer : step.layers) row(step, layer_text(layer.layer), layer);
    if (step.state_read.v + step.state_written.v == 0) continue;
    row(step, "state",
        {.layer = kNoLayer, .other = step.state_read, .written = step.state_written});
  }
  text.print();
  put("\n");
  print_line(
      "Bytes read that the same step wrote (fresh), that earlier steps wrote (cached), that");
  print_line("no step of this session wrote (other); bytes written.");
}

int run(const HeadsOptions& options) {
  Progress progress("heads", progress_visibility(options.json));
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  progress.note_missing_accesses(*reader);
  if (options.kv) {
    const auto steps = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
      return kv_use(session, kAllRows, progress.start("tracking the KV cache"));
    });
    if (!steps) return progress.failed(steps.error());
    progress.end();
    if (std::ranges::all_of(steps->rows, is_empty)) {
      return progress.failed(kNoKvAccesses);
    }
    if (options.json) {
      put_line(text_of(to_json(*steps)));
    } else {
      print_kv(*steps);
    }
    return progress.exit_code();
  }
  const auto table = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return head_table(session, progress.start("counting reads"));
  });
  if (!table) return progress.failed(table.error());
  const auto is_divided = [](const HeadWeight& weight) { return weight.geometry.count > 0; };
  if (!table->weights.empty() && std::ranges::none_of(table->weights, is_divided)) {
    return progress.failed(kNoHeadWeights);
  }
  progress.end();
  if (options.json) {
    put_line(text_of(to_json(*table)));
  } else {
    print_heads(*table);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_heads_command(CLI::App& command) {
  auto options = std::make_shared<HeadsOptions>();
  add_session_file(command, options->file);
  command.add_flag(
      "--kv", options->kv,
      "Show KV cache bytes per step and layer instead: read (fresh, cached, other), written");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example: tt record -m model.gguf -p Hello -o s.ttrace && tt heads s.ttrace --kv");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
