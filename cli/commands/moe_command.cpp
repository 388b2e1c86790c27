// tt moe FILE: how a session used its model's experts, and whether pinning them would help.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <format>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/common/session_layers.h"
#include "analysis/experts/expert_cache.h"
#include "analysis/experts/expert_pinning.h"
#include "analysis/experts/experts.h"
#include "api/json/result_json.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/validators.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/text/join.h"

namespace tt::cli {
namespace {

struct MoeOptions {
  std::string file;
  LayerSet layers;  // to show in detail; none: an overview
  std::uint32_t router = 0;
  std::optional<Phase> phase;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint32_t> slots;
  std::optional<std::uint64_t> budget;
  bool json = false;
};

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  return std::format("{:.1f} %", percent(part, whole));
}

// "2.71-2.86"
std::string interval_text(const RouterUse& use, LoadInterval LoadIntervals::* of) {
  if (!use.intervals) return "-";
  const LoadInterval& interval = (*use.intervals).*of;
  return std::format("{:.2f}-{:.2f}", interval.low, interval.high);
}

void print_routers(const std::vector<RouterUse>& routers) {
  TextTable table({">layer", ">experts", ">tokens", ">entropy", ">interval", ">gini", ">interval",
                   ">coverage", ">90 %", ">95 %", ">99 %", ">turnover",
                   "most used (share of choices)"});
  for (const RouterUse& use : routers) {
    const std::string router = use.router == 0 ? "" : std::format(".{}", use.router);
    table.add(std::format("{}{}", use.layer.v, router),
              std::format("{}/{}", use.per_token, use.experts), use.tokens,
              std::format("{:.2f}/{:.2f}", use.entropy(), std::log2(std::max(1U, use.experts))),
              interval_text(use, &LoadIntervals::entropy), std::format("{:.2f}", use.gini()),
              interval_text(use, &LoadIntervals::gini),
              std::format("{:.0f} %", 100 * use.coverage()), use.experts_for(kUsePercents[0]),
              use.experts_for(kUsePercents[1]), use.experts_for(kUsePercents[2]),
              std::format("{:.0f} %", 100 * use.turnover()), use.most_used(4));
  }
  table.print();
  put("\n");
  print_line("Entropy: of the choices in bits / maximum, with all experts chosen equally often.");
  print_line("Gini: 0 if all are chosen equally often. Coverage: experts chosen at least once.");
  print_line("Interval: of the value before it on text of this kind, with a confidence of 95 %.");
  print_line("90 %, 95 %, 99 %: how many of the most used experts have this share of the choices.");
  print_line("Turnover: share of a token's experts that the previous token did not use.");
}

void print_experts_for(const std::vector<RouterUse>& routers) {
  put("\n");
  for (const std::uint32_t percent : kUsePercents) {
    const ExpertsFor of = experts_for(routers, percent);
    print_line("{} % of the choices: {:g} experts per layer (median; {} to {})", percent, of.median,
               of.least, of.most);
  }
}

void print_slots(const ExpertPinning& pinning, std::uint64_t budget) {
  put("\n");
  TextTable table({">layer", ">slot"});
  for (const SlotSize& slot : pinning.slots) table.add(slot.layer.v, format_bytes(slot.bytes));
  table.print();
  put("\n");
  print_line("A budget of {} buys {} in each layer.", format_bytes(budget),
             counted(pinning.slots_per_layer(Bytes{budget}), "slot"));
  print_line("A slot holds all weights of one expert of one layer.");
}

void print_pinning(const ExpertPinning& pinning) {
  put("\n");
  print_line("{} of expert weights read ({:.0f} % of all weight reads), {} distinct",
             format_bytes(pinning.read), percent(pinning.read.v, pinning.weights_read.v),
             format_bytes(pinning.distinct));
  put("\n");
  print_line("Share of these bytes served by a cache of this size:");
  TextTable table(
      {">memory", ">slices", ">LRU", ">pinned", ">optimal", ">2nd half: LRU", ">2nd half: pinned"});
  for (const PinPoint& point : pinning.curve) {
    table.add(format_bytes(point.capacity), point.slices, percent_text(point.lru.v, pinning.read.v),
              percent_text(point.pinned.v, pinning.read.v),
              percent_text(point.best.v, pinning.read.v),
              percent_text(point.tried_lru.v, pinning.tried.v),
              percent_text(point.tried_pinned.v, pinning.tried.v));
  }
  table.print();
  put("\n");
  print_line(
      "Pinned and optimal use knowledge of all reads. 2nd half: pins the slices selected by");
  print_line("the first half of the reads, and counts the second half, also for LRU.");
  put("\n");
  if (const PinPoint* best = pinning.best_gain()) {
    print_line(
        "Pinning would have helped: a cache of {} saves {:.1f} percentage points more than "
        "LRU.",
        format_bytes(best->capacity),
        percent(best->tried_pinned.v - best->tried_lru.v, pinning.tried.v));
  } else {
    print_line("Pinning would not have helped: LRU saves at least as much at each of these sizes.");
  }
}

void print_caches(const ExpertCaches& caches) {
  put("\n");
  print_line("Caches of whole experts, {} of {} requests counted (the second half of {} tokens).",
             caches.counted, caches.requests, caches.tokens);
  print_line("Share of requests served, and in parentheses with the tokens in random order:");
  std::vector<Column> columns = {">slots per layer", "cache"};
  for (std::size_t i = 0; i < kCachePolicies; ++i)
    columns.push_back({to_text(static_cast<CachePolicy>(i)), Align::Right});
  TextTable table(columns);
  for (const CacheRow& row : caches.rows) {
    const auto add = [&](std::string slots, const char* cache, const auto& recorded,
                         const auto& control) {
      std::vector<std::string> cells = {std::move(slots), cache};
      for (std::size_t i = 0; i < kCachePolicies; ++i) {
        cells.push_back(std::format("{:.1f} % ({:.1f} %)", percent(recorded[i], caches.counted),
                                    percent(control[i], caches.counted_control)));
      }
      table.add(std::move(cells));
    };
    add(std::to_string(row.slots), "per layer", row.recorded.layers, row.control.layers);
    add("", "one pool", row.recorded.pool, row.control.pool);
  }
  table.print();
  put("\n");
  print_line("Pinned: those requested most in the first half; others are used without a slot.");
  print_line("Belady: the most that any cache of this size can serve; it knows all requests.");
  print_line("One pool: as many slots as all layers together, shared by them.");
}

void print_detail(const RouterDetail& detail) {
  print_routers({detail.use});
  put("\n");
  TextTable experts({">expert", ">choices", ">share", ">first",
                     "tokens (times chosen/times seen, lift and its 95 % interval)"});
  for (std::size_t i = 0; i < detail.use.used.size(); ++i) {
    const ExpertCount& count = detail.use.used[i];
    std::string tokens;
    for (const ExpertToken& token : detail.tokens[i]) {
      tokens +=
          std::format("{}\"{}\" {}/{} x{:.1f} ({:.1f} to {:.1f})", tokens.empty() ? "" : "  ",
                      token.text, token.choices, token.times, token.lift, token.low, token.high);
    }
    experts.add(count.expert, count.choices, percent_text(count.choices, detail.use.choices),
                count.first, tokens);
  }
  experts.print();
  if (detail.pairs.empty()) return;
  put("\n");
  TextTable pairs({">pair", ">tokens", ">lift"});
  for (const ExpertPair& pair : detail.pairs) {
    pairs.add(std::format("{} + {}", pair.a, pair.b), pair.together,
              std::format("{:.2f}", pair.lift));
  }
  pairs.print();
}

// The layers of --layers that exist; all: those with choices.
Expected<std::vector<LayerId>> detail_layers(const SessionReader& reader, const MoeOptions& options,
                                             Progress& progress) {
  auto layers = resolve_layers(reader, options.layers);
  if (!layers || !layers->empty()) return layers;
  return expert_use(reader, options.phase, progress.start("counting choices"))
      .transform([&](const std::vector<RouterUse>& routers) {
        for (const RouterUse& use : routers)
          if (use.router == options.router) layers->push_back(use.layer);
        return *std::move(layers);
      });
}

// Prints one table, or one JSON object in a line, per layer.
int run_layers(SessionReader& reader, const MoeOptions& options, Progress& progress) {
  const DetailLimits limits = options.json ? DetailLimits{.pairs = 10'000, .tokens = 100}
                                           : DetailLimits{.pairs = 10, .tokens = 4};
  const auto details = progress.query_valid_prefix(
      reader, [&](const SessionReader& session) -> Expected<std::vector<RouterDetail>> {
        const auto layers = detail_layers(session, options, progress);
        if (!layers) return std::unexpected(layers.error());
        std::vector<RouterDetail> all;
        for (const LayerId layer : *layers) {
          auto detail = router_detail(session, layer, options.router, options.phase, limits,
                                      progress.start("counting choices"));
          if (!detail) return std::unexpected(detail.error());
          all.push_back(*std::move(detail));
        }
        return all;
      });
  if (!details) return progress.failed(details.error());
  progress.end();
  for (const RouterDetail& detail : *details) {
    if (options.json) {
      put_line(text_of(to_json(detail)));
    } else {
      if (&detail != &details->front()) put("\n");
      print_detail(detail);
    }
  }
  return progress.exit_code();
}

int run(const MoeOptions& options) {
  Progress progress("moe", progress_visibility(options.json));
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  if (options.layers != LayerSet{}) return run_layers(*reader, options, progress);
  const auto routers = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return expert_use(session, options.phase, progress.start("counting choices"));
  });
  if (!routers) return progress.failed(routers.error());
  if (routers->empty()) {
    const auto info = reader->info();
    progress.note_missing_accesses(*reader);
    return info ? progress.failed(no_expert_choices(*info)) : progress.failed(info.error());
  }
  const std::vector<Bytes> capacities(options.sizes.begin(), options.sizes.end());
  const auto pinning = expert_pinning(*reader, capacities, progress.start("replaying reads"));
  if (!pinning) return progress.failed(pinning.error());
  const auto caches =
      expert_caches(*reader, options.phase, options.slots, progress.start("simulating caches"));
  if (!caches) return progress.failed(caches.error());
  progress.end();
  if (options.json) {
    Json json = to_json(*routers);
    json["pinning"] = to_json(*pinning);
    if (options.budget) {
      json["budget"] = {{"bytes", *options.budget},
                        {"slots_per_layer", pinning->slots_per_layer(Bytes{*options.budget})}};
    }
    json["caches"] = to_json(*caches);
    put_line(text_of(json));
  } else {
    print_routers(*routers);
    print_experts_for(*routers);
    if (pinning->read.v > 0) {
      if (options.budget) print_slots(*pinning, *options.budget);
      print_pinning(*pinning);
    } else if (options.budget) {
      print_line("The session has no weights of experts, so the size of a slot is unknown.");
    }
    print_caches(*caches);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_moe_command(CLI::App& command) {
  auto options = std::make_shared<MoeOptions>();
  add_session_file(command, options->file);
  add_layers_option(
      command, options->layers,
      "Layers to show in detail, each with its experts, the tokens that select them, and pairs",
      "");
  command
      .add_option("--router", options->router, "Index of the router, for layers with two routers")
      ->type_name("N");
  const std::map<std::string, Phase> phases = {{"prompt", Phase::Prompt},
                                               {"generate", Phase::Generate}};
  command
      .add_option_function<Phase>(
          "--phase", [options](Phase phase) { options->phase = phase; },
          "Phase of the choices and caches: prompt or generate (pinning covers both)")
      ->transform(choice(phases))
      ->type_name("PHASE");
  command
      .add_option(
          "--sizes", options->sizes,
          "Cache sizes, like 500MB,2GiB (default: 10 %, 20 %, ... of the distinct bytes read)")
      ->delimiter(',')
      ->transform(size_in_bytes())
      ->type_name("SIZE,...");
  command
      .add_option("--budget", options->budget,
                  "Memory for whole experts, like 4GiB: how many slots per layer it buys")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  command
      .add_option("--slots", options->slots,
                  "Slots per layer of caches of whole experts, like 2,8 (default: 1, 2, 4, ... "
                  "below the number of experts)")
      ->delimiter(',')
      ->check(whole_number(1, kMaxExpertSlots))
      ->type_name("N,...");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example: tt record -m moe.gguf -p Hello -o s.ttrace && tt moe s.ttrace");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
