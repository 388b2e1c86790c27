#include "cli/reuse_command.h"

#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <print>
#include <string>
#include <vector>

#include "analysis/reuse.h"
#include "api/reuse_json.h"
#include "cli/options/tracer_options.h"
#include "tracer/format/session_reader.h"

namespace tt::cli {
namespace {

struct ReuseOptions {
  std::string file;
  Grain grain = Grain::Part;
  std::vector<std::uint64_t> sizes;
  bool json = false;
};

constexpr int kPoints = 10;  // of the curve, when no sizes are asked for

std::vector<Bytes> capacities_of(const ReuseOptions& options, const ReadSequence& sequence) {
  std::vector<Bytes> capacities;
  for (const std::uint64_t size : options.sizes) capacities.push_back(Bytes{size});
  if (capacities.empty()) {
    for (std::uint64_t i = 1; i <= kPoints; ++i)
      capacities.push_back(Bytes{sequence.distinct_bytes().v * i / kPoints});
  }
  return capacities;
}

double megabytes(Bytes bytes) { return static_cast<double>(bytes.v) / 1e6; }

void print_table(const ReadSequence& sequence, const ReuseCurves& curves) {
  std::println("{} reads of {} parts: {:.1f} MB read, {:.1f} MB distinct", sequence.reads.size(),
               sequence.items.size(), megabytes(sequence.bytes()),
               megabytes(sequence.distinct_bytes()));
  std::println("");
  std::println("share of the bytes read that so much memory would have saved");
  std::println("{:>12} {:>8} {:>8} {:>8}", "MB", "LRU", "pinned", "best");
  const auto share = [&](const CachePoint& point) {
    const auto all = static_cast<double>(sequence.bytes().v);
    return all > 0 ? 100.0 * static_cast<double>(point.bytes.v) / all : 0.0;
  };
  for (std::size_t i = 0; i < curves.lru.size(); ++i) {
    std::println("{:>12.1f} {:>6.1f} % {:>6.1f} % {:>6.1f} %", megabytes(curves.lru[i].capacity),
                 share(curves.lru[i]), share(curves.pin[i]), share(curves.belady[i]));
  }
  std::println("");
  std::println(
      "LRU: the least recently used goes first. Pinned: the most read stay. Best: what no");
  std::println("cache can beat, since it knows the future (Belady).");
}

int run(const ReuseOptions& options) {
  const auto reader = SessionReader::open(options.file);
  if (!reader) {
    std::println(stderr, "tt reuse: {}", reader.error().message);
    return 1;
  }
  constexpr PageRange kAllSteps{.from = 0, .limit = std::numeric_limits<std::uint32_t>::max()};
  const auto sequence = weight_reads(*reader, kAllSteps, options.grain);
  if (!sequence) {
    std::println(stderr, "tt reuse: {}", sequence.error().message);
    return 1;
  }
  const auto distances = reuse_distances(*sequence);
  const auto capacities = capacities_of(options, *sequence);
  const ReuseCurves curves{.lru = lru_curve(*sequence, distances, capacities),
                           .belady = belady_curve(*sequence, capacities),
                           .pin = pin_curve(*sequence, capacities)};
  if (options.json) {
    std::println("{}", text_of(to_json(*sequence, options.grain,
                                       reuse_histogram(*sequence, distances), curves)));
  } else {
    print_table(*sequence, curves);
  }
  return 0;
}

}  // namespace

CLI::App* add_reuse_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReuseOptions>();
  CLI::App* command = app.add_subcommand(
      "reuse",
      "What memory would save of a session's reads of weights: LRU, pinned, best possible");
  command->add_option("file", options->file, "A session, .ttrace")->required()->type_name("FILE");
  const std::map<std::string, Grain> grains = {{"tensor", Grain::Tensor}, {"part", Grain::Part}};
  command
      ->add_option("--grain", options->grain,
                   "What is kept: whole tensors, or the parts that are read by themselves, as "
                   "experts are (tensor, part; default: part)")
      ->transform(CLI::CheckedTransformer(grains, CLI::ignore_case).description(""))
      ->type_name("GRAIN");
  command
      ->add_option("--sizes", options->sizes,
                   "Memory to reckon with, like 500MB,2GB (default: tenths of what is read)")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(true).description(""))
      ->type_name("SIZE,...");
  command->add_flag("--json", options->json, "For programs: JSON on stdout");
  command->footer("Example: tt record -m model.gguf -p Hello -o s.ttrace && tt reuse s.ttrace");
  name_environment(*command);
  command->callback([options, &exit_code] { exit_code = run(*options); });
  return command;
}

}  // namespace tt::cli
