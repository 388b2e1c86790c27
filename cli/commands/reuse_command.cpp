// tt reuse FILE: how many weight reads caches of several sizes would save, as a table or JSON.
#include <cstdint>
#include <format>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/weights/reuse.h"
#include "api/json/result_json.h"
#include "cli/commands/verbs.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/validators.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {
namespace {

struct ReuseOptions {
  std::string file;
  ReuseQuery query;
  std::vector<std::uint64_t> sizes;
  bool json = false;
};

void print_table(const Reuse& reuse) {
  print_line("{} of {}: {} read, {} distinct", counted(reuse.reads, "read"),
             counted(reuse.items, "part"), format_bytes(reuse.bytes), format_bytes(reuse.distinct));
  if (reuse.reads == 0) return;
  put("\n");
  print_line("Share of read bytes served by a cache of this size:");
  TextTable table({">memory", ">LRU", ">pinned", ">optimal"});
  const auto share = [&](const CachePoint& point) {
    const auto all = static_cast<double>(reuse.bytes.v);
    return std::format("{:.1f} %",
                       all > 0 ? 100.0 * static_cast<double>(point.bytes.v) / all : 0.0);
  };
  for (std::size_t i = 0; i < reuse.lru.size(); ++i) {
    table.add(format_bytes(reuse.lru[i].capacity), share(reuse.lru[i]), share(reuse.pin[i]),
              share(reuse.belady[i]));
  }
  table.print();
  put("\n");
  print_line(
      "LRU: evicts the least recently used part. Pinned: keeps the most read parts. Optimal:");
  print_line("upper bound for any cache, with knowledge of all future reads (Belady).");
}

int run(ReuseOptions& options) {
  Progress progress("reuse", progress_visibility(options.json));
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  for (const std::uint64_t size : options.sizes) options.query.capacities.push_back(Bytes{size});
  const auto found = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return reuse(session, options.query, progress.start("replaying reads"));
  });
  if (!found) return progress.failed(found.error());
  progress.end();
  const bool minimal = progress.note_missing_accesses(*reader);
  if (options.json) {
    put_line(text_of(to_json(*found)));
  } else if (!minimal) {
    print_table(*found);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_reuse_command(CLI::App& command) {
  auto options = std::make_shared<ReuseOptions>();
  add_session_file(command, options->file);
  const std::map<std::string, Grain> grains = {{"tensor", Grain::Tensor}, {"part", Grain::Part}};
  command
      .add_option("--grain", options->query.grain,
                  "Unit to cache: tensor (whole tensors) or part (parts that are read "
                  "separately, such as experts; default)")
      ->transform(choice(grains))
      ->type_name("GRAIN");
  command
      .add_option(
          "--sizes", options->sizes,
          "Cache sizes, like 500MB,2GiB (default: 10 %, 20 %, ... of the distinct bytes read)")
      ->delimiter(',')
      ->transform(size_in_bytes())
      ->type_name("SIZE,...");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example: tt record -m model.gguf -p Hello -o s.ttrace && tt reuse s.ttrace");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
