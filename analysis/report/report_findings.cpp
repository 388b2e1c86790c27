// Findings and advice of a report, as sentences.
#include <algorithm>
#include <format>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

#include "analysis/common/format_units.h"
#include "analysis/report/report.h"
#include "analysis/tables/session_overview.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

const BreakdownRow* row_of(const Breakdown& breakdown, std::string_view name) {
  const auto row = std::ranges::find(breakdown.rows, name, &BreakdownRow::name);
  return row == breakdown.rows.end() ? nullptr : &*row;
}

void find_damage(const ReportData& f, std::vector<std::string>& out) {
  if (!f.readable_steps) return;
  out.push_back(std::format("The file is damaged: this report covers the {} before the damage.",
                            counted(*f.readable_steps, "step")));
}

// What the user got, and then what of it was evaluation.
void find_speed(const ReportData& f, std::vector<std::string>& out) {
  const auto time = [](auto ns) { return format_duration(static_cast<double>(ns)); };
  if (const auto rate = f.speed.prompt_per_second()) {
    out.push_back(std::format("Prompt: {} in {}, {:.1f} tokens/s.",
                              counted(f.speed.prompt_tokens, "token"), time(f.speed.prompt_ns),
                              *rate));
  }
  if (f.speed.first_token_ns)
    out.push_back(std::format("First token after {}.", time(*f.speed.first_token_ns)));
  if (const auto rate = f.speed.per_second()) {
    out.push_back(std::format("Generation: {} after the first in {}, {:.1f} tokens/s.",
                              counted(f.speed.tokens, "token"), time(f.speed.ns), *rate));
  }
  if (f.generated_tokens > 0) {
    std::string found = std::format("Evaluation took {} per generated token",
                                    time(f.generate_time.v / f.generated_tokens));
    if (const auto share = f.speed.sample_share())
      found +=
          std::format("; sampling took {} of the time of generation", format_percent(*share, 1));
    out.push_back(found + ".");
  }
}

void find_reuse(const ReportData& f, std::vector<std::string>& out) {
  const auto reused = f.info.fact_number("result.reused_tokens").value_or(0);
  if (reused == 0) return;
  const std::string_view from = f.info.fact("result.reused_from");
  out.push_back(std::format("{} of the {} prompt tokens were reused{} and not evaluated.", reused,
                            f.info.fact_number("result.prompt_tokens").value_or(reused),
                            from.empty() ? "" : std::format(" from session {}", from)));
}

void find_conditions(const ReportData& f, std::vector<std::string>& out) {
  if (!f.conditions.text.empty()) out.push_back("Machine: " + f.conditions.text);
  if (f.left_out > 0)
    out.push_back(std::format("Times and sums are without {} of {} steps, which were not clean.",
                              f.left_out, f.steps));
}

void find_bytes(const ReportData& f, std::vector<std::string>& out) {
  const TraceSums& generate = f.by_op_kind.total.generate;
  if (f.generated_tokens > 0 && generate.bytes() > 0) {
    out.push_back(std::format(
        "A generated token touches {} in {:.0f} accesses: {}/s while its ops run.",
        format_bytes(generate.bytes() / f.generated_tokens),
        generate.accesses() / f.generated_tokens, format_bytes(generate.bytes_per_second())));
  }
  const double all = f.by_op_kind.disk.bytes() + f.by_op_kind.buffer.bytes();
  if (all > 0) {
    out.push_back(
        std::format("{} of all bytes touched are in the mapped model file, {} in other memory.",
                    format_percent(f.by_op_kind.disk.bytes(), all),
                    format_percent(f.by_op_kind.buffer.bytes(), all)));
  }
}

void find_hottest(const ReportData& f, std::vector<std::string>& out) {
  const auto& rows = f.by_op_kind.rows;
  const auto slowest =
      std::ranges::max_element(rows, {}, [](const BreakdownRow& r) { return r.all.time_ns; });
  if (slowest != rows.end() && slowest->all.time_ns > 0) {
    out.push_back(std::format("{} takes {} of the time of all ops, at {}/s.", slowest->name,
                              format_percent(slowest->all.time_ns, f.by_op_kind.total.all.time_ns),
                              format_bytes(slowest->all.bytes_per_second())));
  }
}

void find_pattern(const ReportData& f, std::vector<std::string>& out) {
  if (f.determinism.pairs > 0) {
    std::string found = std::format("{} of {} tokens read the same weights as the previous token.",
                                    f.determinism.same_weights, f.determinism.pairs);
    if (f.experts_followed > 0 && f.experts_turned > 0) {
      found += std::format(
          " Of the experts of a token, {} were also used by the previous token, in the same layer.",
          format_percent(static_cast<double>(f.experts_followed - f.experts_turned),
                         static_cast<double>(f.experts_followed)));
    }
    out.push_back(std::move(found));
  }
  if (f.prediction.reads > 0) {
    out.push_back(std::format(
        "The access pattern of the first half predicts {} of the reads of the second half.",
        format_percent(f.prediction.accuracy(), 1)));
  }
  if (f.read_order.reads > 0) {
    out.push_back(std::format(
        "{} of the weight reads begin within {} after the end of the previous read in the file.",
        format_percent(static_cast<double>(f.read_order.sequential),
                       static_cast<double>(f.read_order.reads)),
        format_bytes(static_cast<double>(kDefaultGap))));
  }
}

const BreakdownRow* most_faults(const Breakdown& breakdown) {
  const auto most = std::ranges::max_element(
      breakdown.rows, {}, [](const BreakdownRow& row) { return row.all.faults; });
  return most == breakdown.rows.end() || most->all.faults == 0 ? nullptr : &*most;
}

void find_faults(const ReportData& f, std::vector<std::string>& out) {
  const TraceSums& all = f.by_tensor.total.all;
  if (all.faults == 0) return;
  std::string found = std::format("Ops waited for the disk {} (page faults)",
                                  counted(static_cast<std::uint64_t>(all.faults), "time"));
  if (const BreakdownRow* most = most_faults(f.by_tensor))
    found += std::format(", most often for {} ({})", most->name,
                         format_percent(most->all.faults, all.faults));
  out.push_back(found + ".");
}

void find_warning(const ReportData& f, std::vector<std::string>& out) {
  if (const auto warning = f.info.fact("load.warning"); !warning.empty())
    out.push_back(std::format("Warning of the load: {}", warning));
}

bool is_scarce(const ReportData& f) { return f.available && *f.available < f.mapped_distinct; }

void find_memory(const ReportData& f, std::vector<std::string>& out) {
  if (const std::string budget = memory_budget_text(f.info); !budget.empty())
    out.push_back(std::format("Memory budget {}", budget));
  if (f.weights_read.v == 0) return;
  const auto size = [](Bytes bytes) { return format_bytes(static_cast<double>(bytes.v)); };
  const Bytes copies{f.weights_distinct.v - f.mapped_distinct.v};
  const std::string of_copies =
      copies.v == 0 ? ""
                    : std::format("; {} more are copies in memory, made at load", size(copies));
  if (f.mapped_distinct.v == 0) {
    out.push_back(std::format(
        "Memory: the {} of weights that were read are copies in memory, made at load (repacked, or "
        "not mapped). Pinning or caching parts of the model file would gain nothing.",
        size(f.weights_distinct)));
  } else if (is_scarce(f)) {
    out.push_back(std::format(
        "Memory: the {} of mapped weights that were read do not fit into the {} of available "
        "memory{}.",
        size(f.mapped_distinct), size(*f.available), of_copies));
  } else if (f.available) {
    out.push_back(std::format(
        "Memory: the {} of mapped weights that were read fit into the {} of available memory{}. "
        "Pinning or caching them would gain nothing after their first read.",
        size(f.mapped_distinct), size(*f.available), of_copies));
  }
}

// --- advice -------------------------------------------------------------------

void advise_validity(const ReportData& f, std::vector<Advice>& out) {
  for (const CheckResult& check : f.validation.checks) {
    if (check.status != CheckStatus::Failed) continue;
    out.push_back({.advice = "Do not trust this recording until its failed checks are explained.",
                   .because = std::format("{}: {}", to_text(check.check), check.evidence.front())});
    return;
  }
}

void advise_machine(const ReportData& f, std::vector<Advice>& out) {
  const std::string& because = f.conditions.text;
  const ThreadRoom room = thread_room(f.info);
  const bool below_one = room.is_below_one_thread(), one_thread = room.threads == 1;
  if (room.has_too_many_threads() &&
      (f.conditions.verdict == Verdict::Contended || f.conditions.verdict == Verdict::Throttled)) {
    out.push_back(
        {.advice = std::format("Use no more threads than processors (-t {}), and record again.",
                               room.processors),
         .because = "The session is " + because});
    return;
  }
  if (f.conditions.verdict == Verdict::Contended) {
    out.push_back({.advice = below_one    ? "Raise the CPU limit, and record again."
                             : one_thread ? "Stop other programs, and record again."
                                          : "Stop other programs, or use fewer threads (-t), and "
                                            "record again.",
                   .because = "The session is " + because});
  }
  if (f.conditions.verdict == Verdict::Throttled) {
    out.push_back({.advice = "Raise the CPU limit, or use no more threads (-t) than it allows.",
                   .because = "The session is " + because});
  }
}

// The first names of what to pin; the complete list is in the table.
std::string pinned_names(const PinPlan& plan) {
  constexpr std::size_t kNames = 8;
  const auto names = names_of(plan);
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kNames); ++i)
    out += (i > 0 ? "; " : "") + names[i];
  if (names.size() > kNames) out += std::format("; and {} more", names.size() - kNames);
  return out;
}

// Only where the weights do not fit: else they are in memory after their first read.
void advise_memory(const ReportData& f, std::vector<Advice>& out) {
  if (!is_scarce(f)) return;
  const std::string_view budget = f.info.fact("context.memory_budget");
  if (!budget.empty() && budget != "off") return;
  const PinPlan& pins = f.room.pins;
  const auto size = [](Bytes bytes) { return format_bytes(static_cast<double>(bytes.v)); };
  const auto share = [&](Bytes bytes) {
    return format_percent(static_cast<double>(bytes.v), static_cast<double>(f.mapped_read.v));
  };
  const std::string because = std::format(
      "The session reads {} of mapped weights and {} of memory are available. The kernel's cache "
      "(LRU) can serve {} of the bytes read, pinned weights {}; no policy serves more than {}.",
      size(f.mapped_distinct), size(*f.available), share(f.room.lru.bytes), share(pins.saved),
      share(f.room.belady.bytes));
  if (pins.weights.empty() || pins.saved <= f.room.lru.bytes) {
    out.push_back({.advice = "Use a smaller quantization, or more memory: no option would help.",
                   .because = because});
    return;
  }
  std::string more = std::format(
      " The gain is {} less to read from the disk{}. --memory-budget is an option of tt-server and "
      "tt record; llama.cpp has none that pins chosen weights: its --load-mode mmap+mlock locks "
      "the "
      "file from its start.",
      size(Bytes{pins.saved.v - f.room.lru.bytes.v}),
      f.generated_tokens > 0 ? std::format(" in {} generated token{} and the prompt",
                                           f.generated_tokens, f.generated_tokens == 1 ? "" : "s")
                             : "");
  if (f.info.fact("context.repack") == "on") more += " The budget switches repacking off.";
  out.push_back({.advice = std::format("Pin {} with --memory-budget auto: {}.", size(pins.held),
                                       pinned_names(pins)),
                 .because = because + more});
}

// Reading weights once at the start of a prompt is unavoidable. Page faults in every token
// mean that weights were evicted from memory. If they do not fit, locking them fails.
void advise_faults(const ReportData& f, std::vector<Advice>& out) {
  const TraceSums& generate = f.by_tensor.total.generate;
  if (f.generated_tokens == 0 || generate.faults < f.generated_tokens || is_scarce(f)) return;
  std::string because = std::format(
      "Each generated token waited for the disk {:.1f} times (page faults): bytes that it reads "
      "were not in memory",
      generate.faults / f.generated_tokens);
  if (const BreakdownRow* most = most_faults(f.by_tensor))
    because += std::format(", most often bytes of {}", most->name);
  because += f.available ? std::format(", although {} of memory were available.",
                                       format_bytes(static_cast<double>(f.available->v)))
                         : ".";
  out.push_back({.advice = f.info.fact("context.mlock") == "on"
                               ? "Keep the weights in memory: run fewer other programs."
                               : "Keep the weights in memory: use --load-mode mmap+mlock (older "
                                 "llama.cpp: --mlock), or run fewer other programs.",
                 .because = std::move(because)});
}

void advise_threads(const ReportData& f, std::vector<Advice>& out) {
  const ThreadRoom room = thread_room(f.info);
  const auto [threads, cores] = std::pair(room.threads, room.processors);
  if (threads == 0 || cores == 0 || threads == cores) return;
  const auto verdict = f.conditions.verdict;
  const bool is_held_up = verdict == Verdict::Contended || verdict == Verdict::Throttled;
  if (room.has_too_many_threads()) {
    if (is_held_up) return;  // advise_machine() says it
    out.push_back({.advice = std::format("Use fewer threads (-t {}).", cores),
                   .because = std::format(
                       "The session used {} threads on {} allowed processor{}: they wait for each "
                       "other at the end of every op.",
                       threads, cores, cores == 1 ? "" : "s")});
    return;
  }
  // More threads would wait for processors, too.
  if (is_held_up) return;
  out.push_back({.advice = std::format("Try more threads (-t {}).", cores),
                 .because = std::format(
                     "The session used {} threads on {} processors. The gain is at most a "
                     "factor of {:.2f}, and less where memory bandwidth is the limit.",
                     threads, cores, static_cast<double>(cores) / static_cast<double>(threads))});
}

// Without a memory budget, which excludes repacking, and with memory for the copies.
void advise_repacking(const ReportData& f, std::vector<Advice>& out) {
  const std::string_view repack = f.info.fact("context.repack"),
                         budget = f.info.fact("context.memory_budget");
  if (repack != "off" || f.weights_read.v == 0 || (!budget.empty() && budget != "off")) return;
  if (is_scarce(f)) return;
  out.push_back({.advice = "Let weights be repacked (remove --no-repack).",
                 .because = std::format(
                     "The weights ({} read) were used in the file's layout. Kernels for repacked "
                     "weights are faster on most processors, and need up to {} of memory for the "
                     "copies; record once more and compare (tt compare) to see the gain.",
                     format_bytes(static_cast<double>(f.weights_read.v)),
                     format_bytes(static_cast<double>(f.weights_distinct.v)))});
}

// Whether an op, or a part of a fused op, is a matrix multiplication.
bool is_matrix_product(std::string_view kind) {
  for (const auto word : kind | std::views::split('+')) {
    const std::string_view op(word);
    if (op == "MUL_MAT" || op == "MUL_MAT_ID") return true;
  }
  return false;
}

// From this share of the time on, a faster evaluation helps less than simpler sampling.
constexpr double kMuchSampling = 0.2;
bool is_sampling_slow(const ReportData& f) {
  return f.speed.sample_share().value_or(0) > kMuchSampling;
}

void advise_sampling(const ReportData& f, std::vector<Advice>& out) {
  if (!is_sampling_slow(f)) return;
  const bool grammar = !f.info.fact("request.grammar").empty();
  const double share = *f.speed.sample_share();
  out.push_back(
      {.advice = grammar ? "Use a simpler grammar: sampling limits the speed of generation."
                         : "Use fewer samplers, or a smaller top-k first: sampling limits the "
                           "speed of generation.",
       .because = std::format(
           "Choosing the tokens after the first took {} of the time of generation{}, {} per token. "
           "Without it, generation would be {:.1f} times as fast; a faster evaluation (smaller "
           "quantization, more threads) cannot save more than the other {}.",
           format_percent(share, 1), grammar ? ", with a grammar" : "",
           format_duration(static_cast<double>(*f.speed.sample_ns) /
                           static_cast<double>(f.speed.tokens)),
           1 / std::max(0.01, 1 - share), format_percent(1 - share, 1))});
}

// Matrix multiplications that read weights near the memory bandwidth are memory-bound.
void advise_bandwidth(const ReportData& f, std::vector<Advice>& out) {
  if (is_sampling_slow(f)) return;
  const TraceSums& all = f.by_op_kind.total.generate;
  TraceSums products;
  std::vector<std::string> kinds;
  for (const BreakdownRow& row : f.by_op_kind.rows) {
    if (!is_matrix_product(row.name) || row.generate.time_ns <= 0) continue;
    products += row.generate;
    kinds.push_back(row.name);
  }
  if (all.time_ns <= 0 || products.time_ns < 0.5 * all.time_ns) return;
  double best = 0;
  for (const BreakdownRow& row : f.by_tensor.rows)
    if (row.generate.bytes_read > 0.01 * all.bytes_read)
      best = std::max(best, row.generate.bytes_per_second());
  const double rate = products.bytes_per_second();
  if (best <= 0 || rate < 0.6 * best) return;
  out.push_back({.advice = "Use a smaller quantization: generation is memory-bound.",
                 .because = std::format(
                     "Matrix products ({}) take {} of a token's time and read {}/s, {} of the "
                     "fastest tensor's {}/s: reading fewer bytes makes it faster, more compute "
                     "does not. Half the bytes would save at most {} of the time.",
                     join(kinds), format_percent(products.time_ns, all.time_ns), format_bytes(rate),
                     format_percent(rate, best), format_bytes(best),
                     format_percent(products.time_ns / 2, all.time_ns))});
}

void advise_attention(const ReportData& f, std::vector<Advice>& out) {
  const BreakdownRow* softmax = row_of(f.by_op_kind, "SOFT_MAX");
  const BreakdownRow* attention = row_of(f.by_component, to_text(Component::Attention));
  const double all = f.by_op_kind.total.all.time_ns;
  if (softmax == nullptr || attention == nullptr ||
      row_of(f.by_op_kind, "FLASH_ATTN_EXT") != nullptr)
    return;
  if (attention->all.time_ns < 0.3 * all) return;
  out.push_back({.advice = "Try flash attention (-fa on).",
                 .because = std::format("Attention takes {} of the time, the most that can be "
                                        "gained, and without flash attention "
                                        "each token reads the whole padded window of the cache.",
                                        format_percent(attention->all.time_ns, all))});
}

// Some ops always run on the CPU, so a few per cent of the time are not a fallback.
void advise_devices(const ReportData& f, std::vector<Advice>& out) {
  constexpr double kFallback = 0.05;
  const std::string_view present = f.info.fact("host.devices");
  const auto cpu = std::ranges::find(f.devices, "CPU", &DeviceTime::name);
  if (cpu == f.devices.end()) return;
  double all = 0;
  std::vector<std::string> others;
  for (const DeviceTime& device : f.devices) {
    all += device.ns;
    if (device.name != "CPU") others.push_back(device.name);
  }
  if (others.empty() && !present.empty()) {
    out.push_back(
        {.advice = "Let the device compute (-ngl 99).",
         .because = std::format("The host has {}, but all ops ran on the CPU. The gain depends on "
                                "the device: compare a recording of each.",
                                present)});
  }
  if (others.empty() || cpu->ns < kFallback * all || all <= 0) return;
  out.push_back(
      {.advice = "Give the device more layers (-ngl) if its memory allows it.",
       .because = std::format(
           "Ops on the CPU took {} of the time, {} of it {}, although the session used {}.",
           format_percent(cpu->ns, all), format_percent(cpu->slowest_ns, cpu->ns), cpu->slowest,
           join(others))});
}

void advise_nothing(const ReportData& f, std::vector<Advice>& out) {
  if (!out.empty() || f.weights_read.v == 0) return;
  out.push_back({.advice = "Change nothing: no option is known to make this session faster.",
                 .because = "Checked: memory and page faults, threads, repacking, flash attention, "
                            "devices, and whether memory bandwidth is the limit."});
}

}  // namespace

std::vector<std::string> findings_of(const ReportData& data) {
  std::vector<std::string> findings;
  find_damage(data, findings);
  find_speed(data, findings);
  find_reuse(data, findings);
  find_conditions(data, findings);
  find_hottest(data, findings);
  find_bytes(data, findings);
  find_pattern(data, findings);
  find_faults(data, findings);
  find_memory(data, findings);
  find_warning(data, findings);
  return findings;
}

std::vector<Advice> advice_of(const ReportData& data) {
  std::vector<Advice> advice;
  advise_validity(data, advice);
  advise_machine(data, advice);
  advise_sampling(data, advice);
  advise_memory(data, advice);
  advise_faults(data, advice);
  advise_bandwidth(data, advice);
  advise_attention(data, advice);
  advise_threads(data, advice);
  advise_repacking(data, advice);
  advise_devices(data, advice);
  advise_nothing(data, advice);
  return advice;
}

}  // namespace tt
