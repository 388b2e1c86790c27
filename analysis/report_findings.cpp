// Sentences: what the figures of a report mean, and what to do about it.
#include <algorithm>
#include <charconv>
#include <format>

#include "analysis/figure_text.h"
#include "analysis/report.h"

namespace tt {

namespace {

std::string fact(const ReportFigures& figures, std::string_view name) {
  for (const auto& [key, value] : figures.info.facts)
    if (key == name) return value;
  return {};
}

std::optional<double> number(const ReportFigures& figures, std::string_view name) {
  const std::string text = fact(figures, name);
  double value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || std::from_chars(text.data(), end, value).ptr != end) return std::nullopt;
  return value;
}

const BreakdownRow* row_of(const Breakdown& breakdown, std::string_view name) {
  const auto row = std::ranges::find(breakdown.rows, name, &BreakdownRow::name);
  return row == breakdown.rows.end() ? nullptr : &*row;
}

double per_second(std::uint32_t count, Ns time) {
  return time.v > 0 ? count * 1e9 / static_cast<double>(time.v) : 0;
}

double saved(const ReportFigures& figures, const CachePoint& point) {
  return figures.weights_read.v == 0
             ? 0
             : static_cast<double>(point.bytes.v) / static_cast<double>(figures.weights_read.v);
}

void find_speed(const ReportFigures& f, std::vector<std::string>& out) {
  if (f.prompt_tokens > 0) {
    out.push_back(std::format("The prompt: {} tokens in {}, {:.1f} a second.", f.prompt_tokens,
                              time_text(static_cast<double>(f.prompt_time.v)),
                              per_second(f.prompt_tokens, f.prompt_time)));
  }
  if (f.generated_tokens > 0) {
    out.push_back(std::format("The answer: {} tokens evaluated in {}, {:.1f} a second.",
                              f.generated_tokens, time_text(static_cast<double>(f.generate_time.v)),
                              per_second(f.generated_tokens, f.generate_time)));
  }
}

void find_bytes(const ReportFigures& f, std::vector<std::string>& out) {
  const TraceSums& generate = f.by_op_kind.total.generate;
  if (f.generated_tokens > 0 && generate.bytes() > 0) {
    out.push_back(std::format(
        "A generated token touches {} in {:.0f} accesses: {} a second while its ops run.",
        bytes_text(generate.bytes() / f.generated_tokens), generate.accesses() / f.generated_tokens,
        bytes_text(generate.bytes_per_second())));
  }
  const double all = f.by_op_kind.disk.bytes() + f.by_op_kind.buffer.bytes();
  if (all > 0) {
    out.push_back(std::format("{} of all bytes touched lie in the mapped model file, {} in memory.",
                              share_text(f.by_op_kind.disk.bytes(), all),
                              share_text(f.by_op_kind.buffer.bytes(), all)));
  }
}

void find_hottest(const ReportFigures& f, std::vector<std::string>& out) {
  const auto& rows = f.by_op_kind.rows;
  const auto slowest =
      std::ranges::max_element(rows, {}, [](const BreakdownRow& r) { return r.all.time_ns; });
  if (slowest != rows.end() && slowest->all.time_ns > 0) {
    out.push_back(std::format("{} takes {} of the time of all ops, at {} a second.", slowest->name,
                              share_text(slowest->all.time_ns, f.by_op_kind.total.all.time_ns),
                              bytes_text(slowest->all.bytes_per_second())));
  }
}

void find_pattern(const ReportFigures& f, std::vector<std::string>& out) {
  if (f.determinism.pairs > 0) {
    out.push_back(std::format("{} of {} tokens read the same weights as the one before.",
                              f.determinism.same_weights, f.determinism.pairs));
  }
  if (f.prediction.reads > 0) {
    out.push_back(std::format("The pattern of the first half tells {} of the reads of the second.",
                              share_text(f.prediction.accuracy(), 1)));
  }
  if (f.read_order.reads > 0) {
    out.push_back(
        std::format("{} of the reads of weights follow the one before within {} in the file.",
                    share_text(static_cast<double>(f.read_order.sequential),
                               static_cast<double>(f.read_order.reads)),
                    bytes_text(static_cast<double>(kUsualGap))));
  }
}

// --- advice -------------------------------------------------------------------

void advise_soundness(const ReportFigures& f, std::vector<Advice>& out) {
  for (const CheckResult& check : f.validation.checks) {
    if (check.verdict != Verdict::Failed) continue;
    out.push_back({.advice = "Do not trust this recording before its failed checks are understood.",
                   .because = std::format("{}: {}", to_text(check.check), check.evidence.front())});
    return;
  }
}

void advise_memory(const ReportFigures& f, std::vector<Advice>& out) {
  if (f.lru.size() < 2) return;
  const auto ram = number(f, "host.ram_bytes");
  const auto distinct = static_cast<double>(f.weights_distinct.v);
  const std::string need = bytes_text(distinct);
  if (ram && *ram < distinct) {
    const auto within = [&](const CachePoint& p) {
      return static_cast<double>(p.capacity.v) <= *ram;
    };
    const auto place = static_cast<std::size_t>(std::ranges::count_if(f.lru, within)) - 1;
    out.push_back(
        {.advice = std::format("Pin {} of the weights that are read most.",
                               bytes_text(static_cast<double>(f.pin[place].capacity.v))),
         .because = std::format(
             "The session reads {} of weights and the machine has {} of memory. Keeping what "
             "was used last saves {} of the bytes read, pinning {}; no policy saves more than {}.",
             need, bytes_text(*ram), share_text(saved(f, f.lru[place]), 1),
             share_text(saved(f, f.pin[place]), 1), share_text(saved(f, f.belady[place]), 1))});
    return;
  }
  const CachePoint &lru = f.lru[f.lru.size() / 2], &pin = f.pin[f.pin.size() / 2];
  out.push_back(
      {.advice = std::format("Have {} of memory for the weights.", need),
       .because = std::format(
           "So much of them was read; then each byte comes from the disk once. With half of it a "
           "page cache (LRU) saves {} of the bytes read, pinning the most read saves {}.",
           share_text(saved(f, lru), 1), share_text(saved(f, pin), 1))});
}

void advise_threads(const ReportFigures& f, std::vector<Advice>& out) {
  const auto threads = number(f, "context.threads"), cores = number(f, "host.cores");
  if (!threads || !cores || *threads >= *cores) return;
  out.push_back({.advice = std::format("Try more threads (-t {:.0f}).", *cores),
                 .because = std::format("It ran with {:.0f} of {:.0f} cores.", *threads, *cores)});
}

void advise_repacking(const ReportFigures& f, std::vector<Advice>& out) {
  const std::string repack = fact(f, "context.repack");
  const double disk = f.by_op_kind.disk.bytes_read;
  if (repack != "off" || disk <= 0) return;
  out.push_back({.advice = "Let weights be repacked (leave --no-repack out).",
                 .because = std::format(
                     "They were read as they lie in the file, {}; the kernels for repacked "
                     "weights are faster where there is memory for a second copy.",
                     bytes_text(disk))});
}

// Ops that stream weights can be no faster than memory is.
void advise_bandwidth(const ReportFigures& f, std::vector<Advice>& out) {
  const BreakdownRow* matmul = row_of(f.by_op_kind, "MUL_MAT");
  const TraceSums& all = f.by_op_kind.total.generate;
  if (matmul == nullptr || all.time_ns <= 0 || matmul->generate.time_ns < 0.5 * all.time_ns) return;
  double best = 0;
  for (const BreakdownRow& row : f.by_tensor.rows)
    if (row.generate.bytes_read > 0.01 * all.bytes_read)
      best = std::max(best, row.generate.bytes_per_second());
  const double rate = matmul->generate.bytes_per_second();
  if (best <= 0 || rate < 0.6 * best) return;
  out.push_back({.advice = "Use a smaller quantization: generating is bound by memory.",
                 .because = std::format(
                     "MUL_MAT takes {} of a token's time and reads {} a second, {} of the fastest "
                     "tensor's {}: fewer bytes make it faster, not more arithmetic.",
                     share_text(matmul->generate.time_ns, all.time_ns), bytes_text(rate),
                     share_text(rate, best), bytes_text(best))});
}

void advise_attention(const ReportFigures& f, std::vector<Advice>& out) {
  const BreakdownRow* softmax = row_of(f.by_op_kind, "SOFT_MAX");
  const BreakdownRow* attention = row_of(f.by_component, to_text(Component::Attention));
  const double all = f.by_op_kind.total.all.time_ns;
  if (softmax == nullptr || attention == nullptr ||
      row_of(f.by_op_kind, "FLASH_ATTN_EXT") != nullptr)
    return;
  if (attention->all.time_ns < 0.3 * all) return;
  out.push_back({.advice = "Try flash attention (-fa on).",
                 .because = std::format(
                     "Attention takes {} of the time, and without it each token reads the whole "
                     "padded window of the cache.",
                     share_text(attention->all.time_ns, all))});
}

void advise_devices(const ReportFigures& f, std::vector<Advice>& out) {
  const auto cpu = std::ranges::find(f.devices, "CPU");
  if (f.devices.size() < 2 || cpu == f.devices.end()) return;
  std::string others;
  for (const std::string& device : f.devices)
    if (device != "CPU") others += (others.empty() ? "" : ", ") + device;
  out.push_back({.advice = "Give the device more layers (-ngl), if it has room.",
                 .because = std::format("Some ops ran on the CPU although there is {}.", others)});
}

}  // namespace

std::vector<std::string> findings_of(const ReportFigures& figures) {
  std::vector<std::string> findings;
  find_speed(figures, findings);
  find_hottest(figures, findings);
  find_bytes(figures, findings);
  find_pattern(figures, findings);
  return findings;
}

std::vector<Advice> advice_of(const ReportFigures& figures) {
  std::vector<Advice> advice;
  advise_soundness(figures, advice);
  advise_memory(figures, advice);
  advise_bandwidth(figures, advice);
  advise_attention(figures, advice);
  advise_threads(figures, advice);
  advise_repacking(figures, advice);
  advise_devices(figures, advice);
  return advice;
}

}  // namespace tt
