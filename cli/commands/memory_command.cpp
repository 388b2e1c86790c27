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
#include <span>
#include <string>
#include <utility>

#include "analysis/common/format_units.h"
#include "analysis/findings/session_findings.h"
#include "analysis/tables/session_conditions.h"
#include "api/json/json.h"
#include "cli/commands/memory_output.h"
#include "cli/commands/memory_trial.h"
#include "cli/commands/scratch_folder.h"
#include "cli/commands/verbs.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "program/validators.h"
#include "tracer/memory/limits/memory_limit.h"
#include "tracer/memory/pages/disk_speed.h"
#include "tracer/memory/pages/model_pages.h"
#include "tracer/memory/plan/memory_plan.h"

namespace tt::cli {
namespace {

namespace fs = std::filesystem;

// In the order of the table. The first one is compared with.
constexpr std::array kWays = {
    MemoryWay{.name = "plain"},
    MemoryWay{.name = "mmap+mlock", .load_mode = "mmap+mlock"},
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

double speed_of(const std::optional<ReadSpeed>& disk, double ReadSpeed::* figure) {
  return disk ? *disk.*figure : 0;
}

// `disk`: a speed of the disk. The other reads are as much slower or faster.
ReadSpeeds speeds_for(const Outlook& outlook, double disk) {
  return outlook.disk ? outlook.speeds.times(disk / outlook.disk->mean) : outlook.speeds;
}

PlanInput plan_input(const Outlook& outlook, const MemoryWay& way, double disk) {
  const TokenDemand& demand = outlook.demand;
  const bool acts = way.pin || way.prefetch;
  return {
      .weights = demand.weights,
      .expert_bytes = demand.expert_bytes,
      .expert_bytes_per_token = demand.expert_bytes_per_token,
      .budget = outlook.budget,
      .pin = way.pin || !acts,
      .prefetch = way.prefetch || !acts,
      .speeds = speeds_for(outlook, disk),
      .compute_seconds = demand.unread_seconds,
      .block = block_bytes(),
      .faulted =
          [&outlook](std::uint64_t room, std::span<const FileRange> kept) {
            return outlook.demand.fault_replay.bytes_per_token(
                static_cast<std::uint64_t>(outlook.speeds.faults.bytes), room, kept);
          },
      .expert_hit_rate = [&demand](std::uint64_t room) { return expert_hit_rate(demand, room); }};
}

Figures predict(const Outlook& outlook, const MemoryWay& way, double disk) {
  const MemoryPlan plan = plan_memory(plan_input(outlook, way, disk));
  if (way.pin || way.prefetch) return {plan.bytes_per_token, plan.tokens_per_second};
  return {plan.plain_bytes_per_token, plan.plain_tokens_per_second};
}

// Of the session; nullopt: it had no plan.
std::optional<std::uint64_t> planned_budget(const SessionInfo& info) {
  return info.fact("memory.state") == "active" ? info.fact_number("memory.budget") : std::nullopt;
}

// The limit under which the session was recorded. nullopt: not recorded, or weights were repacked,
// so that memory was taken by them.
std::optional<MemoryLimit> recorded_limit(const SessionInfo& info) {
  const auto limit = info.fact_number("host.memory_limit_bytes");
  const auto available = info.fact_number("host.memory_available_bytes");
  if (!limit || !available || info.fact("context.repack") == "on") return std::nullopt;
  return MemoryLimit{.limit = *limit,
                     .used = *limit,
                     .fixed = *limit - std::min(*limit, *available),
                     .source = std::string(info.fact("host.memory_limit"))};
}

// Sets the budget and the limit that it is of.
void choose_budget(const MemoryCommand& options, const SessionInfo& info, Outlook& outlook) {
  using Of = Outlook::BudgetOf;
  // A model that is loaded with these options needs them, too.
  for (const char* fact : {"result.kv_bytes", "result.compute_bytes", "result.logits_bytes"})
    outlook.beside += info.fact_number(fact).value_or(0);
  outlook.limit = MemoryLimitReader().read();
  outlook.given = options.budget;
  const auto recorded = recorded_limit(info);
  if (options.budget) {
    outlook.budget_of = Of::Option;
    outlook.budget = *options.budget;
  } else if (const auto planned = planned_budget(info); planned && !options.measure) {
    outlook.budget_of = Of::Plan;
    outlook.budget = *planned;
  } else if (recorded && !options.measure) {
    outlook.budget_of = Of::Recording;
    outlook.limit = *recorded;
    outlook.budget = free_for_weights(outlook.limit, 0);
  } else {
    outlook.budget_of = Of::Limit;
    const std::uint64_t left = free_for_weights(outlook.limit, 0);
    outlook.budget = left - std::min(left, outlook.beside);
  }
}

// Reads the model file in the ways in which plans and page faults read it.
void measure_reads(const SessionInfo& info, Outlook& outlook, Progress& progress) {
  constexpr std::uint64_t kBlocks = 256U << 20, kPages = 64U << 20, kExperts = 32U << 20;
  const TokenDemand& demand = outlook.demand;
  const auto threads = static_cast<unsigned>(info.fact_number("context.threads").value_or(0));
  // A plan reads a part of each weight, so not one place after the other.
  ReadPattern pattern{
      .most = kBlocks, .window = kDefaultWindow, .stride = 2, .busy_threads = threads};
  const auto measure = [&] {
    return measure_read_speed(outlook.model, pattern, progress.start("measuring the disk"));
  };
  ReadSpeeds& speeds = outlook.speeds;
  outlook.disk = measure();
  speeds.blocks = speed_of(outlook.disk, &ReadSpeed::mean);
  pattern.most = kPages;
  pattern.blocks = false;
  pattern.piece = 1U << 20;
  if (const auto pages = measure()) {
    speeds.pages = pages->mean;
    speeds.page_seconds = pages->processor_seconds;
  }
  if (demand.expert_slice_bytes > 0) {
    pattern.most = kExperts;
    pattern.piece = demand.expert_slice_bytes;
    pattern.window = 0;
    pattern.pause = kPollInterval;  // until the choice of the router is seen
    speeds.experts = speed_of(measure(), &ReadSpeed::mean);
  }
  speeds.faults =
      measure_fault_reads(outlook.model, threads, progress.start("measuring page faults"))
          .value_or(FaultReads{});
  // If the session waited mostly for page faults, they were as fast as it waited.
  const double waited = demand.seconds - demand.compute_seconds;
  if (!planned_budget(info) && demand.bytes > speeds.faults.bytes && demand.compute_seconds > 0 &&
      waited > demand.compute_seconds) {
    speeds.faults.bytes_per_second = demand.bytes / waited;
    speeds.faults.map_seconds = 0;
  }
  // Many reads in flight are not slower than one: where they were measured as slower, something
  // else used the disk.
  const double one = std::max(speeds.experts, speeds.faults.bytes_per_second);
  if (outlook.disk && outlook.disk->mean < one) {
    outlook.disk->mean = speeds.blocks = one;
    outlook.disk->high = std::max(outlook.disk->high, one);
  }
}

// What no way of keeping `budget` bytes of weights can be below, where all is read at the highest
// of the measured speeds.
Figures least_reads(const Outlook& outlook, double disk) {
  const ReadSpeeds& speeds = outlook.speeds;
  const double bytes = least_bytes_per_token(outlook.demand.fault_replay, outlook.budget);
  const double fastest =
      std::max({disk, speeds.pages, speeds.experts, speeds.faults.bytes_per_second});
  return {bytes, token_rate({.blocks = bytes}, outlook.demand.unread_seconds, {.blocks = fastest})};
}

// All tokens of a pass share its reads, and compute much longer than one token: reading ahead saves
// at most the time that plain waits for page faults. A long prompt uses nearly all experts.
std::optional<PromptOutlook> prompt_outlook(const Outlook& outlook, double disk) {
  const TokenDemand& demand = outlook.demand;
  if (demand.prompt.tokens < 2 || disk <= 0) return std::nullopt;
  const FaultReads& measured = outlook.speeds.faults;
  const double faults = measured.bytes_per_second > 0 ? measured.bytes_per_second : disk;
  std::uint64_t weights = demand.expert_bytes;
  for (const WeightRange& weight : demand.weights) weights += weight.file.length;
  const std::uint64_t least = weights - std::min(outlook.budget, weights);
  // A plan reads at the speed of the disk.
  const bool planned = outlook.budget_of == Outlook::BudgetOf::Plan;
  const double compute = demand.prompt.seconds - demand.prompt.bytes / (planned ? disk : faults);
  if (compute <= 0) return std::nullopt;  // it was waiting all the time
  const double waiting = least > 0 ? static_cast<double>(weights) / faults : 0;
  return PromptOutlook{.tokens = demand.prompt.tokens,
                       .compute_seconds = compute,
                       .plain_seconds = compute + waiting,
                       .least_seconds = std::max(compute, static_cast<double>(least) / disk)};
}

void predict_ways(Outlook& outlook) {
  const double disk = speed_of(outlook.disk, &ReadSpeed::mean);
  outlook.least = least_reads(outlook, disk);
  outlook.prompt = prompt_outlook(outlook, disk);
  const MemoryPlan plan = plan_memory(plan_input(outlook, kWays.back(), disk));
  outlook.fits = plan.kind == MemoryPlan::Kind::Fits;
  if (outlook.demand.expert_bytes > 0) {
    outlook.expert_hits = expert_hit_rate(outlook.demand, plan.expert_cache);
    outlook.uniform_hits = uniform_hit_rate(outlook.demand, plan.expert_cache);
  }
  for (WayResult& result : outlook.ways) {
    if (result.way.load_mode != nullptr) continue;
    const auto at = [&](double speed) { return predict(outlook, result.way, speed); };
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
                            format_bytes(limit), format_bytes(limit - *options.budget))
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
    if (demand.compute_seconds > 0) {
      const auto take_less = [](double& seconds, double other) {
        seconds = seconds > 0 ? std::min(seconds, other) : other;
      };
      take_less(outlook.demand.compute_seconds, demand.compute_seconds);
      take_less(outlook.demand.unread_seconds, demand.unread_seconds);
    }
  }
  // The plans had what the limit really left.
  if (planned) outlook.budget = *planned;
  return {};
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
  if (folder.path().empty()) return progress.failed(folder.error());
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
    return token_demand(readable, 0, is_disturbed, progress.start("reading"));
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

  const auto memory = progress.query_valid_prefix(
      *reader, [&](const SessionReader& readable) { return model_memory(readable, *info); });
  if (!memory) return progress.failed(memory.error());
  outlook.enough = enough_memory(*memory, false);
  choose_budget(options, *info, outlook);
  measure_reads(*info, outlook, progress);
  for (const MemoryWay& way : kWays)
    if (options.measure || way.load_mode == nullptr) outlook.ways.emplace_back().way = way;
  if (options.measure) {
    if (const auto done = measure_ways(options, setup, outlook, progress); !done)
      return progress.failed(done.error());
  }
  predict_ways(outlook);
  progress.end();
  if (options.json) {
    put_line(text_of(json_of(outlook)));
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
                  "With --try or --model: number of compute threads; 0: one per processor that "
                  "the program may use")
      ->check(whole_number(0, kMaxThreads))
      ->capture_default_str();
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example: tt memory --model model.gguf --budget 6GiB --try");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
