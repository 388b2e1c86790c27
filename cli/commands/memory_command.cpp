// tt memory FILE: what a token must read from the disk under a memory budget, and which way of
// keeping the weights helps, as predicted and, with --try, as measured.
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/tables/session_conditions.h"
#include "api/json/json.h"
#include "api/text/escape_control_chars.h"
#include "cli/commands/memory_trial.h"
#include "cli/commands/scratch_folder.h"
#include "cli/commands/verbs.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/validators.h"
#include "tracer/memory/disk_speed.h"
#include "tracer/memory/memory_limit.h"
#include "tracer/memory/memory_plan.h"
#include "tracer/memory/model_pages.h"

namespace tt::cli {
namespace {

namespace fs = std::filesystem;

// In the order of the table. The first one is compared with.
constexpr std::array kWays = {
    MemoryWay{.name = "plain"},
    MemoryWay{.name = "pin", .pin = true},
    MemoryWay{.name = "prefetch", .prefetch = true},
    MemoryWay{.name = "pin+prefetch", .pin = true, .prefetch = true},
};

struct MemoryCommand {
  std::string file;
  fs::path model;
  std::optional<std::uint64_t> budget;
  int threads = 0;
  std::uint32_t tokens = 16;
  bool measure = false, json = false;
};

struct Figures {
  double bytes = 0;  // per token
  double rate = 0;   // tokens/s; 0: unknown
};

struct WayResult {
  MemoryWay way;
  Figures predicted{};
  double low = 0, high = 0;  // tokens/s predicted for the range of the disk's speed
  std::optional<Figures> measured{};
  double faults = 0;      // measured, per token
  std::string problem{};  // why it was not measured
};

// One pass over a prompt.
struct PromptOutlook {
  std::uint32_t tokens = 0;
  double compute_seconds = 0, plain_seconds = 0, least_seconds = 0;
  // How many times as fast as plain it can be.
  double gain() const { return least_seconds > 0 ? plain_seconds / least_seconds : 1; }
};

struct Outlook {
  std::string model;
  TokenDemand demand;
  MemoryLimit limit;
  bool given = false;  // the budget, by --budget
  std::uint64_t budget = 0;
  std::uint64_t beside = 0;  // KV cache and buffers of the session
  std::string machine;       // what disturbed the recording, but for the disk; empty: nothing
  std::optional<ReadSpeed> disk;
  Figures least;
  std::optional<PromptOutlook> prompt;
  double expert_hits = 0, uniform_hits = 0;  // of the cache of pin+prefetch; shares
  std::vector<WayResult> ways;
  std::string tried;  // under which limit the ways were measured
};

double speed_of(const std::optional<ReadSpeed>& disk, double ReadSpeed::* figure) {
  return disk ? *disk.*figure : 0;
}

PlanInput plan_input(const TokenDemand& demand, const MemoryWay& way, std::uint64_t budget,
                     double disk) {
  const bool acts = way.pin || way.prefetch;
  return {
      .weights = demand.weights,
      .expert_bytes = demand.expert_bytes,
      .expert_bytes_per_token = demand.expert_bytes_per_token,
      .budget = budget,
      .pin = way.pin || !acts,
      .prefetch = way.prefetch || !acts,
      .disk_bytes_per_second = disk,
      .compute_seconds = demand.compute_seconds,
      .block = block_bytes(),
      .expert_hit_rate = [&demand](std::uint64_t room) { return expert_hit_rate(demand, room); }};
}

Figures predict(const TokenDemand& demand, const MemoryWay& way, std::uint64_t budget,
                double disk) {
  const MemoryPlan plan = plan_memory(plan_input(demand, way, budget, disk));
  if (way.pin || way.prefetch) return {plan.bytes_per_token, plan.tokens_per_second};
  return {plan.plain_bytes_per_token, plan.plain_tokens_per_second};
}

// What no way of keeping `budget` bytes of weights can be below.
Figures least_reads(const TokenDemand& demand, std::uint64_t budget, double disk) {
  std::uint64_t dense = 0;
  for (const WeightRange& weight : demand.weights) dense += weight.file.length;
  const std::uint64_t room = budget - std::min(budget, dense);
  const double bytes =
      static_cast<double>(dense - std::min(budget, dense)) +
      (1 - expert_hit_rate(demand, room)) * static_cast<double>(demand.expert_bytes_per_token);
  return {bytes, token_rate({.ahead = bytes}, demand.compute_seconds, disk)};
}

// All tokens of a pass share its reads, and compute much longer than one token: reading ahead saves
// at most the time that plain waits for the disk. A long prompt uses nearly all experts.
std::optional<PromptOutlook> prompt_outlook(const TokenDemand& demand, std::uint64_t budget,
                                            double disk) {
  if (demand.prompt.tokens < 2 || disk <= 0) return std::nullopt;
  std::uint64_t weights = demand.expert_bytes;
  for (const WeightRange& weight : demand.weights) weights += weight.file.length;
  const std::uint64_t least = weights - std::min(budget, weights);
  const double compute = std::max(0.0, demand.prompt.seconds - demand.prompt.bytes / disk);
  const double waiting = least > 0 ? static_cast<double>(weights) / disk : 0;
  return PromptOutlook{.tokens = demand.prompt.tokens,
                       .compute_seconds = compute,
                       .plain_seconds = compute + waiting,
                       .least_seconds = std::max(compute, static_cast<double>(least) / disk)};
}

void predict_ways(Outlook& outlook) {
  const double disk = speed_of(outlook.disk, &ReadSpeed::mean);
  outlook.least = least_reads(outlook.demand, outlook.budget, disk);
  outlook.prompt = prompt_outlook(outlook.demand, outlook.budget, disk);
  const MemoryPlan plan =
      plan_memory(plan_input(outlook.demand, kWays.back(), outlook.budget, disk));
  if (outlook.demand.expert_bytes > 0) {
    outlook.expert_hits = expert_hit_rate(outlook.demand, plan.expert_cache);
    outlook.uniform_hits = uniform_hit_rate(outlook.demand, plan.expert_cache);
  }
  for (WayResult& result : outlook.ways) {
    const auto at = [&](double speed) {
      return predict(outlook.demand, result.way, outlook.budget, speed);
    };
    result.predicted = at(disk);
    result.low = at(speed_of(outlook.disk, &ReadSpeed::low)).rate;
    result.high = at(speed_of(outlook.disk, &ReadSpeed::high)).rate;
  }
}

// ---------------------------------------------------------------- --try

// Runs every way. With a given budget, in a memory group that leaves so much for the weights.
std::expected<void, std::string> measure_ways(const MemoryCommand& options, const TrialSetup& setup,
                                              Outlook& outlook, Progress& progress) {
  // What the planner leaves to others (free_for_weights()).
  constexpr std::uint64_t kBesideProcess = 24U << 20;
  std::unique_ptr<MemoryGroup> group;
  outlook.tried = std::format("the memory limit that applies ({})", outlook.limit.source);
  if (options.budget) {
    progress.start("measuring the memory beside the weights")();
    const auto unlimited = try_way(
        {.model = setup.model, .folder = setup.folder, .threads = setup.threads, .tokens = 1},
        kWays.front(), {}, nullptr);
    if (!unlimited) return std::unexpected(unlimited.error());
    const std::uint64_t limit = *options.budget + unlimited->anonymous + kBesideProcess;
    std::string problem;
    group = MemoryGroup::make(limit, problem);
    outlook.tried =
        group ? std::format("a memory limit of {}: the budget, and {} for the process",
                            format_bytes(static_cast<double>(limit)),
                            format_bytes(static_cast<double>(limit - *options.budget)))
              : std::format(
                    "the memory limit that applies ({}), which the plain run can use, too: "
                    "no memory group could be made ({})",
                    outlook.limit.source, problem);
  }
  std::optional<std::uint64_t> planned;
  for (WayResult& result : outlook.ways) {
    if (!progress.start(std::format("measuring {}", result.way.name))())
      return std::unexpected("interrupted");
    const auto trial = try_way(setup, result.way, options.budget, group.get());
    if (!trial) {
      result.problem = trial.error();
      continue;
    }
    const TokenDemand& demand = trial->demand;
    result.measured = Figures{demand.bytes, demand.seconds > 0 ? 1 / demand.seconds : 0};
    result.faults = demand.faults;
    if (trial->budget && *trial->budget > 0) planned = trial->budget;
    // The least times of the least disturbed run.
    if (demand.compute_seconds > 0)
      outlook.demand.compute_seconds =
          std::min(outlook.demand.compute_seconds, demand.compute_seconds);
  }
  // The plans had what the limit really left.
  if (planned) outlook.budget = *planned;
  return {};
}

// ---------------------------------------------------------------- output

std::string bytes_text(double bytes) { return format_bytes(bytes); }

std::string rate_text(double rate) { return rate > 0 ? std::format("{:.3g}", rate) : "?"; }

// The speed that a way is judged by: as measured, else as predicted.
double judged_rate(const WayResult& result) {
  return result.measured ? result.measured->rate : result.predicted.rate;
}

std::string judgement(const WayResult& result, const WayResult& plain) {
  if (!result.problem.empty()) return result.problem;
  if (!result.way.pin && !result.way.prefetch) return "the kernel decides what stays in memory";
  const double own = judged_rate(result), other = judged_rate(plain);
  if (own <= 0 || other <= 0) return "";
  const double ratio = own / other;
  std::string text = ratio < 0.98   ? std::format("loses: {:.2f} times plain", ratio)
                     : ratio > 1.02 ? std::format("{:.3g} times plain", ratio)
                                    : "as fast as plain";
  // A faster disk would not help.
  if (result.high > 0 && result.high - result.low < 0.01 * result.high)
    text += ", limited by computing";
  return text;
}

std::string error_text(const WayResult& result) {
  if (!result.measured || result.predicted.rate <= 0 || result.measured->rate <= 0) return "";
  return std::format("{:+.0f} %", 100 * (result.predicted.rate / result.measured->rate - 1));
}

void print_ways(const Outlook& outlook) {
  const bool measured = !outlook.tried.empty();
  std::vector<Column> columns = {{"way"},
                                 {"read per token", Align::Right},
                                 {"tokens/s", Align::Right},
                                 {"from", Align::Right},
                                 {"to", Align::Right}};
  if (measured) {
    columns.insert(columns.end(), {{"measured: read", Align::Right},
                                   {"faults", Align::Right},
                                   {"tokens/s", Align::Right},
                                   {"error", Align::Right}});
  }
  columns.push_back({""});
  TextTable table(std::move(columns));
  for (const WayResult& result : outlook.ways) {
    std::vector<std::string> row = {result.way.name, bytes_text(result.predicted.bytes),
                                    rate_text(result.predicted.rate), rate_text(result.low),
                                    rate_text(result.high)};
    if (measured) {
      if (result.measured) {
        row.insert(row.end(),
                   {bytes_text(result.measured->bytes), std::format("{:.0f}", result.faults),
                    rate_text(result.measured->rate), error_text(result)});
      } else {
        row.insert(row.end(), {"", "", "failed", ""});
      }
    }
    row.push_back(judgement(result, outlook.ways.front()));
    table.add(std::move(row));
  }
  table.print();
}

// The fastest one; of ways that are as fast, the last one, which reads least.
const WayResult& best_way(const Outlook& outlook) {
  constexpr double kAsFast = 0.98;
  const double best = std::ranges::max(outlook.ways | std::views::transform(judged_rate));
  return *std::ranges::find_last_if(outlook.ways, [&](const WayResult& result) {
            return judged_rate(result) >= kAsFast * best;
          }).begin();
}

std::string advice(const Outlook& outlook) {
  const WayResult& best = best_way(outlook);
  const WayResult& plain = outlook.ways.front();
  if (outlook.least.bytes == 0)
    return "All weights fit into the budget: a memory budget changes nothing.";
  if (judged_rate(plain) <= 0) return "";
  if (judged_rate(best) < 1.02 * judged_rate(plain))
    return "No way is faster than plain: do not set a budget.";
  return std::format(
      "Use --memory-budget {}{}{}.",
      outlook.given ? std::to_string(outlook.budget >> 20) + "MiB" : std::string("auto"),
      best.way.pin ? "" : " --no-pin", best.way.prefetch ? "" : " --no-prefetch");
}

std::string auto_budget_text(const Outlook& outlook) {
  const auto bytes = [](std::uint64_t n) { return bytes_text(static_cast<double>(n)); };
  std::string text =
      std::format("{} for weights: what others, and a reserve, leave of the limit of {} ({})",
                  bytes(outlook.budget), bytes(outlook.limit.limit), outlook.limit.source);
  if (outlook.beside > 0 && outlook.tried.empty())
    text += std::format(", less {} for the KV cache and buffers", bytes(outlook.beside));
  return text;
}

void print_outlook(const Outlook& outlook) {
  const TokenDemand& demand = outlook.demand;
  const auto line = [](const char* name, const std::string& value) {
    if (!value.empty()) print_line("{:<10} {}", name, escape_control_chars(value));
  };
  std::uint64_t dense = 0;
  for (const WeightRange& weight : demand.weights) dense += weight.file.length;
  std::string weights = bytes_text(static_cast<double>(dense)) + " that every token reads";
  if (demand.expert_bytes > 0)
    weights += std::format("; {} of experts, of which a token uses {}",
                           bytes_text(static_cast<double>(demand.expert_bytes)),
                           bytes_text(static_cast<double>(demand.expert_bytes_per_token)));
  line("model", outlook.model);
  line("weights", weights);
  line("budget", outlook.given ? std::format("{} for weights",
                                             bytes_text(static_cast<double>(outlook.budget)))
                               : auto_budget_text(outlook));
  line("disk", outlook.disk
                   ? std::format("{}/s ({} to {}), measured on the model file",
                                 bytes_text(outlook.disk->mean), bytes_text(outlook.disk->low),
                                 bytes_text(outlook.disk->high))
                   : "unknown: the model file of the session cannot be read");
  std::string now =
      std::format("{} tokens/s", rate_text(demand.seconds > 0 ? 1 / demand.seconds : 0));
  if (demand.disk_recorded) {
    const double all = static_cast<double>(dense + demand.expert_bytes_per_token);
    now += std::format(", {} read per token ({:.2f} times what it uses)", bytes_text(demand.bytes),
                       all > 0 ? demand.bytes / all : 0);
    if (demand.faults > 0)
      now += std::format(", {:.0f} page faults of {} each", demand.faults,
                         bytes_text(demand.bytes / demand.faults));
    if (demand.bytes == 0 && outlook.least.bytes > 0)
      now +=
          "; the weights were in memory when it was recorded, so it does not show the disk's part";
  }
  line("recorded", demand.steps > 0 ? now : "no generated tokens");
  line("machine", outlook.machine);
  const auto time = [](double seconds) { return format_duration(seconds * 1e9); };
  if (demand.steps > 0 && demand.compute_seconds > 0) {
    line("waits", std::format("a token takes {}: its ops compute for {}, so it waits for {}",
                              time(demand.seconds), time(demand.compute_seconds),
                              time(std::max(0.0, demand.seconds - demand.compute_seconds))));
  }
  line("least", std::format("{} must be read per token: at most {} tokens/s",
                            bytes_text(outlook.least.bytes), rate_text(outlook.least.rate)));
  if (const auto& prompt = outlook.prompt) {
    line("prompt",
         std::format("a pass of {} tokens computes for {}; plain about {}, at best {}: at "
                     "most {:.2f} times plain",
                     prompt->tokens, time(prompt->compute_seconds), time(prompt->plain_seconds),
                     time(prompt->least_seconds), prompt->gain()));
  }
  if (demand.expert_bytes > 0) {
    std::string experts = std::format(
        "{:.0f} % of the used experts are in the cache; {:.0f} % if all were equally likely",
        100 * outlook.expert_hits, 100 * outlook.uniform_hits);
    if (outlook.expert_hits < 1.1 * outlook.uniform_hits)
      experts += ". Routing is near uniform: choosing which experts to keep cannot help";
    line("experts", experts);
  }
  put("\n");
  if (!outlook.tried.empty()) print_line("Measured under {}.", outlook.tried);
  print_ways(outlook);
  put("\n");
  print_line("{}", advice(outlook));
}

Json figures_json(const Figures& figures) {
  return {{"bytes_per_token", figures.bytes},
          {"tokens_per_second", figures.rate > 0 ? Json(figures.rate) : Json()}};
}

Json prompt_json(const PromptOutlook& prompt) {
  return {{"tokens", prompt.tokens},
          {"compute_seconds", prompt.compute_seconds},
          {"plain_seconds", prompt.plain_seconds},
          {"least_seconds", prompt.least_seconds},
          {"times_plain_at_most", prompt.gain()}};
}

Json json_of(const Outlook& outlook) {
  const TokenDemand& demand = outlook.demand;
  std::uint64_t dense = 0;
  for (const WeightRange& weight : demand.weights) dense += weight.file.length;
  Json ways = Json::array();
  for (const WayResult& result : outlook.ways) {
    Json predicted = figures_json(result.predicted);
    predicted["low"] = result.low;
    predicted["high"] = result.high;
    Json measured;
    if (result.measured) {
      measured = figures_json(*result.measured);
      measured["faults_per_token"] = result.faults;
    }
    ways.push_back({{"way", result.way.name},
                    {"predicted", std::move(predicted)},
                    {"measured", std::move(measured)},
                    {"problem", result.problem},
                    {"judgement", judgement(result, outlook.ways.front())}});
  }
  return {{"model", outlook.model},
          {"weights_bytes", dense},
          {"expert_bytes", demand.expert_bytes},
          {"expert_bytes_per_token", demand.expert_bytes_per_token},
          {"budget", outlook.budget},
          {"limit", outlook.limit.limit},
          {"limit_source", outlook.limit.source},
          {"kv_and_buffer_bytes", outlook.beside},
          {"machine", outlook.machine},
          {"disk_bytes_per_second", outlook.disk ? Json(outlook.disk->mean) : Json()},
          {"compute_seconds", demand.compute_seconds},
          {"recorded",
           {{"tokens_per_second", demand.seconds > 0 ? Json(1 / demand.seconds) : Json()},
            {"bytes_per_token", demand.disk_recorded ? Json(demand.bytes) : Json()},
            {"faults_per_token", demand.disk_recorded ? Json(demand.faults) : Json()}}},
          {"least", figures_json(outlook.least)},
          {"prompt", outlook.prompt ? prompt_json(*outlook.prompt) : Json()},
          {"expert_hits", outlook.expert_hits},
          {"expert_hits_uniform", outlook.uniform_hits},
          {"ways", std::move(ways)},
          {"tried", outlook.tried},
          {"advice", advice(outlook)}};
}

int run(const MemoryCommand& options) {
  Progress progress("memory", progress_visibility(options.json));
  if (options.file.empty() == options.model.empty()) {
    progress.failed(options.file.empty() ? "a session file or --model is required"
                                         : "give a session file or --model, not both");
    return 2;
  }
  if (options.file.ends_with(".gguf"))
    return progress.failed(std::format("{0} is a model: tt memory --model {0}", options.file));
  if (std::error_code none; !options.model.empty() && !fs::exists(options.model, none))
    return progress.failed(not_found(options.model));
  // The runs get their options as arguments only.
  ::unsetenv("TT_MEMORY_BUDGET");
  const ScratchFolder folder("tt-memory");
  if (folder.path().empty()) return progress.failed(ScratchFolder::error());
  TrialSetup setup{.model = options.model,
                   .folder = folder.path(),
                   .threads = options.threads,
                   .tokens = options.tokens};
  Outlook outlook;
  std::string session = options.file;
  if (session.empty()) {
    progress.start("recording some tokens")();
    const auto plain = try_way(setup, kWays.front(), {}, nullptr);
    if (!plain) return progress.failed(plain.error());
    session = plain->session;
  }
  auto reader = open_session(session);
  if (!reader) return progress.failed(reader.error());
  const auto info = reader->info();
  if (!info) return progress.failed(info.error());
  if (info->model_files.empty()) return progress.failed("the session names no model file");
  if (setup.model.empty()) setup.model = info->model_files.front().path;
  outlook.model = setup.model;
  auto demand = progress.query_valid_prefix(*reader, [&](const SessionReader& readable) {
    return token_demand(readable, 0, progress.start("reading"));
  });
  if (!demand) return progress.failed(demand.error());
  outlook.demand = *std::move(demand);
  auto conditions = progress.query_valid_prefix(*reader, [&](const SessionReader& readable) {
    return session_conditions(readable, LeaveOut::Nothing, progress.start("reading"));
  });
  if (!conditions) return progress.failed(conditions.error());
  if (const auto verdict = conditions->verdict;
      verdict && *verdict != Verdict::Clean && *verdict != Verdict::Disk)
    outlook.machine = std::move(conditions->text);
  if (outlook.demand.weights.empty() && outlook.demand.layers.empty())
    return progress.failed("the session has no accesses of generated tokens");

  outlook.limit = MemoryLimitReader().read();
  outlook.given = options.budget.has_value();
  // A model that is loaded with these options needs them, too.
  for (const char* fact : {"result.kv_bytes", "result.compute_bytes", "result.logits_bytes"})
    outlook.beside += info->fact_number(fact).value_or(0);
  const std::uint64_t left = free_for_weights(outlook.limit, 0);
  outlook.budget = options.budget.value_or(left - std::min(left, outlook.beside));
  constexpr std::uint64_t kMaxRead = 256U << 20;
  outlook.disk = measure_read_speed(setup.model, kMaxRead, progress.start("measuring the disk"));
  for (const MemoryWay& way : kWays) outlook.ways.emplace_back().way = way;
  if (options.measure) {
    if (const auto done = measure_ways(options, setup, outlook, progress); !done)
      return progress.failed(done.error());
  }
  predict_ways(outlook);
  progress.end();
  if (options.json) {
    print_line("{}", text_of(json_of(outlook)));
  } else {
    print_outlook(outlook);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_memory_command(CLI::App& command) {
  auto options = std::make_shared<MemoryCommand>();
  add_session_file(command, options->file)->required(false);
  command
      .add_option("-m,--model", options->model,
                  "GGUF file instead of a session: some tokens are recorded first")
      ->type_name("FILE");
  command
      .add_option("--budget", options->budget,
                  "Memory for the weights, like 450MiB or 6GiB (default: what the memory limit "
                  "leaves)")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  command.add_flag("--try", options->measure,
                   "Also run the model in every way and print the measurements. With --budget in a "
                   "memory cgroup of this size, if one may be made");
  command
      .add_option("-n,--n-predict", options->tokens, "With --try or --model: tokens to generate")
      ->check(whole_number(1, 100'000))
      ->capture_default_str();
  command
      .add_option("-t,--threads", options->threads,
                  "With --try or --model: number of compute threads; 0: one per core")
      ->check(whole_number(0, kMaxThreads))
      ->capture_default_str();
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example: tt memory --model model.gguf --budget 6GiB --try");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
