#include "cli/commands/memory_output.h"

#include <algorithm>
#include <format>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/findings/memory_ways.h"
#include "api/text/escape_control_chars.h"
#include "api/text/finding_text.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"

namespace tt::cli {
namespace {

std::string rate_text(double rate) { return rate > 0 ? std::format("{:.3g}", rate) : "?"; }

// The speed that a way is judged by: as measured, else as predicted.
double judged_rate(const WayResult& result) {
  return result.measured ? result.measured->rate : result.predicted.rate;
}

std::string judgement(const WayResult& result, const WayResult& plain) {
  if (!result.problem.empty()) return result.problem;
  if (!result.way.pin && !result.way.prefetch && result.way.load_mode == nullptr)
    return "the kernel decides what stays in memory";
  const double own = judged_rate(result), other = judged_rate(plain);
  // Every read of pinning alone is waited for, and it takes memory from the kernel's cache.
  const char* most = result.way.pin && !result.way.prefetch && !result.measured ? "at most " : "";
  std::string text;
  switch (way_speed(own, other)) {
    case WaySpeed::Unknown:
      return "";
    case WaySpeed::Slower:
      text = std::format("loses: {:.2f} times plain", own / other);
      break;
    case WaySpeed::AsFast:
      text = "as fast as plain";
      break;
    case WaySpeed::Faster:
      text = std::format("{}{:.3g} times plain", most, own / other);
      break;
  }
  if (is_limited_by_computing(result.low, result.high)) text += ", limited by computing";
  return text;
}

std::string error_text(const WayResult& result) {
  if (!result.measured || result.predicted.rate <= 0 || result.measured->rate <= 0) return "";
  return std::format("{:+.0f} %", 100 * (result.predicted.rate / result.measured->rate - 1));
}

void print_ways(const Outlook& outlook) {
  const bool measured = !outlook.tried.empty();
  std::vector<Column> columns = {"way", ">read per token", ">tokens/s", ">from", ">to"};
  if (measured) {
    columns.insert(columns.end(), {">measured: read", ">faults", ">tokens/s", ">error"});
  }
  columns.push_back({""});
  TextTable table(std::move(columns));
  for (const WayResult& result : outlook.ways) {
    std::vector<std::string> row = {result.way.name};
    if (result.way.load_mode == nullptr) {
      row.insert(row.end(), {format_bytes(result.predicted.bytes), rate_text(result.predicted.rate),
                             rate_text(result.low), rate_text(result.high)});
    } else {
      row.insert(row.end(), {"", "", "", ""});
    }
    if (measured) {
      if (result.measured) {
        row.insert(row.end(),
                   {format_bytes(result.measured->bytes), std::format("{:.0f}", result.faults),
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

std::string advice(const Outlook& outlook) {
  const std::vector<double> rates(std::from_range,
                                  outlook.ways | std::views::transform(judged_rate));
  const WayResult& best = outlook.ways[fastest_way(rates)];
  const double plain = rates.front();
  if (outlook.fits) return "All weights fit into the budget: a memory budget changes nothing.";
  if (plain <= 0) return "";
  if (way_speed(judged_rate(best), plain) != WaySpeed::Faster)
    return "No way is faster than plain: do not set a budget.";
  if (best.way.load_mode != nullptr) return std::format("Use --load-mode {}.", best.way.load_mode);
  if (outlook.budget_of == Outlook::BudgetOf::Plan && best.way.pin && best.way.prefetch)
    return "The session had this plan.";
  return std::format(
      "Use --memory-budget {}{}{}.",
      outlook.given ? std::to_string(*outlook.given >> 20) + "MiB" : std::string("auto"),
      best.way.pin ? "" : " --no-pin", best.way.prefetch ? "" : " --no-prefetch");
}

std::string budget_text(const Outlook& outlook) {
  const std::string size = format_bytes(outlook.budget) + " for weights";
  const std::string limit =
      std::format("the limit of {} ({})", format_bytes(outlook.limit.limit), outlook.limit.source);
  switch (outlook.budget_of) {
    case Outlook::BudgetOf::Option:
      return *outlook.given == outlook.budget
                 ? size
                 : std::format("{}; the plans had {}, which the limit left",
                               format_bytes(*outlook.given), format_bytes(outlook.budget));
    case Outlook::BudgetOf::Plan:
      return size + ", as the plan of the session had";
    case Outlook::BudgetOf::Recording:
      return std::format("{}: what others, and a reserve, left of {} when it was recorded", size,
                         limit);
    case Outlook::BudgetOf::Limit:
      break;
  }
  return std::format(
      "{}: what others, and a reserve, leave of {}{}", size, limit,
      outlook.beside > 0 && outlook.tried.empty()
          ? std::format(", less {} for the KV cache and buffers", format_bytes(outlook.beside))
          : "");
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

}  // namespace

void print_outlook(const Outlook& outlook) {
  const TokenDemand& demand = outlook.demand;
  const auto line = [](const char* name, const std::string& value) {
    if (!value.empty()) print_line("{:<10} {}", name, escape_control_chars(value));
  };
  std::uint64_t dense = 0;
  for (const WeightRange& weight : demand.weights) dense += weight.file.length;
  std::string weights = format_bytes(dense) + " that every token reads";
  if (demand.expert_bytes > 0)
    weights +=
        std::format("; {} of experts, of which a token uses {}", format_bytes(demand.expert_bytes),
                    format_bytes(demand.expert_bytes_per_token));
  line("model", outlook.model);
  line("weights", weights);
  if (outlook.enough) line("enough", finding_text(*outlook.enough));
  line("budget", budget_text(outlook));
  line("disk", outlook.disk
                   ? std::format("{}/s ({} to {}), measured on the model file",
                                 format_bytes(outlook.disk->mean), format_bytes(outlook.disk->low),
                                 format_bytes(outlook.disk->high))
                   : "unknown: the model file of the session cannot be read");
  const ReadSpeeds& speeds = outlook.speeds;
  if (speeds.pages > 0) {
    std::string pages = std::format("{}/s page by page", format_bytes(speeds.pages));
    if (speeds.experts > 0)
      pages += std::format("; experts of {} one after the other: {}/s",
                           format_bytes(demand.expert_slice_bytes), format_bytes(speeds.experts));
    line("pages", pages);
  }
  if (speeds.faults.bytes > 0)
    line("faults",
         std::format("a page fault reads {}, {}/s one at a time", format_bytes(speeds.faults.bytes),
                     format_bytes(speeds.faults.bytes_per_second)));
  // Not the session's tokens per second, which sampling and output belong to.
  std::string now = std::format("{} tokens evaluated/s in the median step",
                                rate_text(demand.seconds > 0 ? 1 / demand.seconds : 0));
  if (demand.disk_recorded) {
    const double all = static_cast<double>(dense + demand.expert_bytes_per_token);
    now += std::format(", {} read per token ({:.2f} times what it uses)",
                       format_bytes(demand.bytes), all > 0 ? demand.bytes / all : 0);
    if (demand.faults > 0)
      now += std::format(", {:.0f} page faults of {} each", demand.faults,
                         format_bytes(demand.bytes / demand.faults));
    if (demand.bytes == 0 && !outlook.fits)
      now +=
          "; the weights were in memory when it was recorded, so it does not show the disk's part";
  }
  line("recorded", demand.steps > 0 ? now : "no generated tokens");
  line("machine", outlook.machine);
  const auto time = [](double seconds) { return format_duration(seconds * 1e9); };
  if (demand.steps > 0 && demand.compute_seconds == 0 && demand.disturbed_steps > 0) {
    line("waits",
         "unknown: each generated step was the first, learned, or disturbed by other programs or a "
         "CPU limit, so its time is not that of computing. The predictions are of the disk alone: "
         "record more tokens on an idle machine");
  }
  if (demand.steps > 0 && demand.compute_seconds > 0) {
    line("waits", std::format("a token takes {}: its ops compute for {}, so it waits for {}",
                              time(demand.seconds), time(demand.compute_seconds),
                              time(std::max(0.0, demand.seconds - demand.compute_seconds))));
  }
  line("least", std::format("{} must be read per token: at most {} tokens/s",
                            format_bytes(outlook.least.bytes), rate_text(outlook.least.rate)));
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
    if (is_routing_uniform(outlook.expert_hits, outlook.uniform_hits))
      experts += ". Routing is near uniform: choosing which experts to keep cannot help";
    line("experts", experts);
  }
  put("\n");
  if (!outlook.tried.empty()) print_line("Measured under {}.", outlook.tried);
  print_ways(outlook);
  put("\n");
  print_line("{}", advice(outlook));
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
                    {"predicted", result.way.load_mode == nullptr ? std::move(predicted) : Json()},
                    {"measured", std::move(measured)},
                    {"problem", result.problem},
                    {"judgement", judgement(result, outlook.ways.front())}});
  }
  const ReadSpeeds& speeds = outlook.speeds;
  const auto known = [](double value) { return value > 0 ? Json(value) : Json(); };
  return {{"model", outlook.model},
          {"weights_bytes", dense},
          {"expert_bytes", demand.expert_bytes},
          {"expert_bytes_per_token", demand.expert_bytes_per_token},
          {"budget", outlook.budget},
          {"limit", outlook.limit.limit},
          {"limit_source", outlook.limit.source},
          {"kv_and_buffer_bytes", outlook.beside},
          {"enough_bytes",
           outlook.enough ? Json(outlook.enough->figures.number_or("enough", 0)) : Json()},
          {"machine", outlook.machine},
          {"disk_bytes_per_second", outlook.disk ? Json(outlook.disk->mean) : Json()},
          {"page_bytes_per_second", known(speeds.pages)},
          {"expert_bytes_per_second", known(speeds.experts)},
          {"fault_bytes", known(speeds.faults.bytes)},
          {"fault_bytes_per_second", known(speeds.faults.bytes_per_second)},
          {"compute_seconds", known(demand.compute_seconds)},
          {"disturbed_steps", demand.disturbed_steps},
          {"recorded",
           {{"evaluated_per_second", demand.seconds > 0 ? Json(1 / demand.seconds) : Json()},
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

}  // namespace tt::cli
