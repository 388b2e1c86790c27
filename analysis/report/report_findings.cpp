// Findings and advice of a report, as sentences.
#include <algorithm>
#include <format>
#include <ranges>

#include "analysis/common/format_units.h"
#include "analysis/report/report.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

const BreakdownRow* row_of(const Breakdown& breakdown, std::string_view name) {
  const auto row = std::ranges::find(breakdown.rows, name, &BreakdownRow::name);
  return row == breakdown.rows.end() ? nullptr : &*row;
}

double per_second(std::uint32_t count, Ns time) {
  return time.v > 0 ? count * 1e9 / static_cast<double>(time.v) : 0;
}

void find_damage(const ReportData& f, std::vector<std::string>& out) {
  if (!f.readable_steps) return;
  out.push_back(
      std::format("The file is damaged: this report covers the {} steps before the damage.",
                  *f.readable_steps));
}

void find_speed(const ReportData& f, std::vector<std::string>& out) {
  if (f.prompt_tokens > 0) {
    out.push_back(std::format("Prompt: {} tokens in {}, {:.1f} tokens/s.", f.prompt_tokens,
                              format_duration(static_cast<double>(f.prompt_time.v)),
                              per_second(f.prompt_tokens, f.prompt_time)));
  }
  if (f.generated_tokens > 0) {
    out.push_back(std::format("Generation: {} tokens in {}, {:.1f} tokens/s.", f.generated_tokens,
                              format_duration(static_cast<double>(f.generate_time.v)),
                              per_second(f.generated_tokens, f.generate_time)));
  }
}

void find_conditions(const ReportData& f, std::vector<std::string>& out) {
  if (!f.conditions.text.empty()) out.push_back("Machine: " + f.conditions.text);
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
    out.push_back(std::format("{} of {} tokens read the same weights as the previous token.",
                              f.determinism.same_weights, f.determinism.pairs));
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
  std::string found = std::format("Ops waited for the disk {:.0f} times (page faults)", all.faults);
  if (const BreakdownRow* most = most_faults(f.by_tensor))
    found += std::format(", {} of them for {}", format_percent(most->all.faults, all.faults),
                         most->name);
  out.push_back(found + ".");
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

void advise_memory(const ReportData& f, std::vector<Advice>& out) {
  if (f.weights_read.v == 0) return;
  const auto ram = f.info.fact_number("host.ram_bytes");
  const auto distinct = static_cast<double>(f.weights_distinct.v);
  const std::string need = format_bytes(distinct);
  const PinPlan& pins = f.room.pins;
  const auto saved = [&](Bytes bytes) {
    return format_percent(static_cast<double>(bytes.v), static_cast<double>(f.weights_read.v));
  };
  if (ram && *ram < f.weights_distinct.v) {
    if (pins.weights.empty()) return;
    out.push_back(
        {.advice = std::format("Pin {}: {}.", format_bytes(static_cast<double>(pins.held.v)),
                               pinned_names(pins)),
         .because = std::format(
             "The session reads {} of weights and the host has {} of memory. An LRU cache saves "
             "{} of the bytes read, pinning saves {}; no policy saves more than {}.",
             need, format_bytes(static_cast<double>(*ram)), saved(f.room.lru.bytes),
             saved(pins.saved), saved(f.room.belady.bytes))});
    return;
  }
  std::string because = std::format(
      "This is the size of the weights that were read; each byte is then read from the disk "
      "once. With half of it, a page cache (LRU) saves {} of the bytes read, pinning the most "
      "read weights saves {}",
      saved(f.room.lru.bytes), saved(pins.saved));
  because += pins.weights.empty() ? "." : std::format(": {}.", pinned_names(pins));
  out.push_back({.advice = std::format("Have {} of memory for the weights.", need),
                 .because = std::move(because)});
}

// Reading weights once at the start of a prompt is unavoidable. Page faults in every token
// mean that weights were evicted from memory.
void advise_faults(const ReportData& f, std::vector<Advice>& out) {
  const TraceSums& generate = f.by_tensor.total.generate;
  if (f.generated_tokens == 0 || generate.faults < f.generated_tokens) return;
  std::string because = std::format(
      "Each generated token waited for the disk {:.1f} times (page faults): bytes that it reads "
      "were not in memory",
      generate.faults / f.generated_tokens);
  if (const BreakdownRow* most = most_faults(f.by_tensor))
    because += std::format(", most often bytes of {}", most->name);
  out.push_back(
      {.advice =
           "Keep the weights in memory: add memory, use --mlock, or run fewer other programs.",
       .because = because + "."});
}

void advise_threads(const ReportData& f, std::vector<Advice>& out) {
  const auto threads = f.info.fact_number("context.threads"),
             cores = f.info.fact_number("host.cores");
  if (!threads || !cores || *threads >= *cores) return;
  out.push_back(
      {.advice = std::format("Try more threads (-t {}).", *cores),
       .because = std::format("The session used {} threads on {} cores.", *threads, *cores)});
}

void advise_repacking(const ReportData& f, std::vector<Advice>& out) {
  const std::string_view repack = f.info.fact("context.repack");
  if (repack != "off" || f.weights_read.v == 0) return;
  out.push_back({.advice = "Let weights be repacked (remove --no-repack).",
                 .because = std::format(
                     "The weights ({} read) were used in the file's layout; the kernels for "
                     "repacked weights are faster, but need memory for a second copy.",
                     format_bytes(static_cast<double>(f.weights_read.v)))});
}

// Whether an op, or a part of a fused op, is a matrix multiplication.
bool is_matrix_product(std::string_view kind) {
  for (const auto word : kind | std::views::split('+')) {
    const std::string_view op(word);
    if (op == "MUL_MAT" || op == "MUL_MAT_ID") return true;
  }
  return false;
}

// Matrix multiplications that read weights near the memory bandwidth are memory-bound.
void advise_bandwidth(const ReportData& f, std::vector<Advice>& out) {
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
                     "does not.",
                     join(kinds), format_percent(products.time_ns, all.time_ns), format_bytes(rate),
                     format_percent(rate, best), format_bytes(best))});
}

void advise_attention(const ReportData& f, std::vector<Advice>& out) {
  const BreakdownRow* softmax = row_of(f.by_op_kind, "SOFT_MAX");
  const BreakdownRow* attention = row_of(f.by_component, to_text(Component::Attention));
  const double all = f.by_op_kind.total.all.time_ns;
  if (softmax == nullptr || attention == nullptr ||
      row_of(f.by_op_kind, "FLASH_ATTN_EXT") != nullptr)
    return;
  if (attention->all.time_ns < 0.3 * all) return;
  out.push_back(
      {.advice = "Try flash attention (-fa on).",
       .because = std::format(
           "Attention takes {} of the time, and without flash attention each token reads the whole "
           "padded window of the cache.",
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
         .because = std::format("The host has {}, but all ops ran on the CPU.", present)});
  }
  if (others.empty() || cpu->ns < kFallback * all || all <= 0) return;
  out.push_back(
      {.advice = "Give the device more layers (-ngl) if its memory allows it.",
       .because = std::format(
           "Ops on the CPU took {} of the time, {} of it {}, although the session used {}.",
           format_percent(cpu->ns, all), format_percent(cpu->slowest_ns, cpu->ns), cpu->slowest,
           join(others))});
}

}  // namespace

std::vector<std::string> findings_of(const ReportData& data) {
  std::vector<std::string> findings;
  find_damage(data, findings);
  find_speed(data, findings);
  find_conditions(data, findings);
  find_hottest(data, findings);
  find_bytes(data, findings);
  find_pattern(data, findings);
  find_faults(data, findings);
  return findings;
}

std::vector<Advice> advice_of(const ReportData& data) {
  std::vector<Advice> advice;
  advise_validity(data, advice);
  advise_memory(data, advice);
  advise_faults(data, advice);
  advise_bandwidth(data, advice);
  advise_attention(data, advice);
  advise_threads(data, advice);
  advise_repacking(data, advice);
  advise_devices(data, advice);
  return advice;
}

}  // namespace tt
