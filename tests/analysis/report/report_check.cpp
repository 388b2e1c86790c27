#include "tests/analysis/report/report_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/common/op_info.h"
#include "api/report/report_text.h"
#include "api/text/finding_text.h"
#include "tests/analysis/aggregate/naive_faults.h"
#include "tests/analysis/aggregate/naive_sums.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

// A part of a weight that ops read separately.
struct Item {
  std::string tensor;
  std::int32_t expert = -1;
  std::int32_t layer = 0;
  std::uint64_t bytes = 0, reads = 0;
  bool mapped = false;
};

// Results of a walk over all accesses.
struct WalkedSession {
  std::vector<Item> items;         // in order of their first read
  std::vector<std::size_t> reads;  // item indices, in read order
  std::uint64_t read = 0, distinct = 0, mapped_read = 0, mapped_distinct = 0;
  std::uint32_t prompt = 0, generated = 0;
  Ns prompt_time{}, generate_time{};
  std::vector<double> token_ms;
  std::map<std::string, std::map<std::string, double>> devices;  // ns by device and op kind
};

double sum_of(const std::map<std::string, double>& of) {
  double sum = 0;
  for (const auto& [name, amount] : of) sum += amount;
  return sum;
}

WalkedSession walked(const SessionReader& reader) {
  WalkedSession out;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::size_t> places;
  const auto walk = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    const Ns took = step.end - step.begin;
    if (step.phase == Phase::Prompt) {
      out.prompt += step.n_tokens;
      out.prompt_time.v += took.v;
    }
    if (step.phase == Phase::Generate) {
      out.generated += step.n_tokens;
      out.generate_time.v += took.v;
      // The recording slows learned steps down: they are no times of tokens.
      for (std::uint32_t i = 0; step.timing != Timing::Learned && i < step.n_tokens; ++i)
        out.token_ms.push_back(static_cast<double>(took.v) / 1e6 / step.n_tokens);
    }
    if (step.graph.v == 0) return true;
    const auto graph = reader.graph(step.graph).value();
    for (std::size_t i = 0; i < graph->ops.size(); ++i) {
      const Op& op = graph->ops[i];
      double& ns = out.devices[op.device][op_name(*graph, op)];
      if (i < step.op_ends.size())
        ns += static_cast<double>(
            (step.op_ends[i] - (i == 0 ? step.first_op : step.op_ends[i - 1])).v);
    }
    std::set<std::pair<std::uint32_t, std::size_t>> of_op;
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      const FileRange& range = access.range;
      if (access.write || range.empty()) return;
      const auto [at, fresh] =
          places.try_emplace({range.file, range.offset, range.length}, out.items.size());
      if (fresh) {
        const Tensor& tensor = graph->tensor(graph->root(access.tensor));
        const bool mapped = tensor.source == Source::Disk;
        out.items.push_back({.tensor = tensor.name,
                             .expert = access.expert,
                             .layer = tensor.layer.v,
                             .bytes = range.length,
                             .mapped = mapped});
        out.distinct += range.length;
        if (mapped) out.mapped_distinct += range.length;
      }
      if (!of_op.emplace(access.op.v, at->second).second) return;
      ++out.items[at->second].reads;
      out.reads.push_back(at->second);
      out.read += range.length;
      if (out.items[at->second].mapped) out.mapped_read += range.length;
    });
    return true;
  });
  EXPECT_TRUE(walk.has_value());
  return out;
}

// Pinned memory that keeps bytes of items from their first read on, and the bytes it saves.
struct PinnedMemory {
  std::vector<std::uint64_t> bytes;  // per item
  std::uint64_t saved = 0;
  std::map<std::string, PinnedWeight> by_tensor;
};

PinnedMemory pin_memory(const WalkedSession& session, std::uint64_t memory) {
  PinnedMemory held{.bytes = std::vector<std::uint64_t>(session.items.size()), .by_tensor = {}};
  // Pin the remaining item with the most reads, repeatedly.
  for (std::uint64_t most = session.reads.size(); most > 1; --most) {
    for (std::size_t i = 0; i < session.items.size(); ++i) {
      if (session.items[i].reads != most || !session.items[i].mapped) continue;
      held.bytes[i] = std::min(memory, session.items[i].bytes);
      memory -= held.bytes[i];
    }
  }
  std::vector<bool> read(session.items.size());
  for (const std::size_t i : session.reads) {
    const Item& item = session.items[i];
    if (held.bytes[i] == 0) continue;
    PinnedWeight& weight = held.by_tensor[item.tensor];
    ++weight.reads;
    if (!read[i]) {
      weight.held.v += held.bytes[i];
      weight.layer.v = item.layer;
      if (item.expert >= 0) weight.experts.push_back(item.expert);
    } else {
      weight.saved.v += held.bytes[i];
      held.saved += held.bytes[i];
    }
    read[i] = true;
  }
  return held;
}

// The smallest of the facts about memory.
std::optional<std::uint64_t> available(const ReportData& figures) {
  std::optional<std::uint64_t> smallest;
  for (const auto& [key, value] : figures.info.facts) {
    if (key != "host.ram_bytes" && key != "host.memory_limit_bytes" &&
        key != "host.memory_available_bytes")
      continue;
    const std::uint64_t bytes = std::stoull(value);
    smallest = std::min(smallest.value_or(bytes), bytes);
  }
  return smallest;
}

void expect_pins(const ReportData& figures, const WalkedSession& session) {
  const PinPlan& plan = figures.room.pins;
  const auto memory = available(figures);
  EXPECT_EQ(figures.available.has_value(), memory.has_value());
  if (!memory || *memory >= session.mapped_distinct) {
    EXPECT_EQ(plan, PinPlan{});
    return;
  }
  EXPECT_EQ(figures.available->v, *memory);
  EXPECT_EQ(plan.memory.v, *memory);
  PinnedMemory held = pin_memory(session, plan.memory.v);
  EXPECT_EQ(plan.saved.v, held.saved);
  EXPECT_EQ(plan.weights.size(), held.by_tensor.size());
  std::uint64_t sum = 0;
  for (const PinnedWeight& weight : plan.weights) {
    SCOPED_TRACE(weight.tensor);
    PinnedWeight& expected = held.by_tensor[weight.tensor];
    expected.tensor = weight.tensor;
    std::ranges::sort(expected.experts);
    EXPECT_EQ(weight.experts, expected.experts);
    EXPECT_EQ(weight, expected);
    sum += weight.held.v;
  }
  EXPECT_EQ(plan.held.v, sum);
  EXPECT_LE(sum, plan.memory.v);
  EXPECT_GE(figures.room.belady.bytes, plan.saved);
}

// When which advice is given: report_test.cpp.
void expect_pinned_names(const ReportData& figures) {
  // The advice names the first pinned tensors and experts.
  const auto names = names_of(figures.room.pins);
  for (const Advice& one : advice_of(figures)) {
    if (one.kind != AdviceKind::PinWeights) continue;
    const AdviceText words = advice_text(one);
    for (const std::string& name : names | std::views::take(8))
      EXPECT_TRUE(words.advice.contains(name)) << name << " in " << words.advice;
  }
}

}  // namespace

void expect_figures(const ReportData& figures, const SessionReader& reader) {
  const WalkedSession session = walked(reader);
  EXPECT_EQ(figures.weights_read.v, session.read);
  EXPECT_EQ(figures.weights_distinct.v, session.distinct);
  EXPECT_EQ(figures.mapped_read.v, session.mapped_read);
  EXPECT_EQ(figures.mapped_distinct.v, session.mapped_distinct);
  EXPECT_EQ(figures.prompt_tokens, session.prompt);
  EXPECT_EQ(figures.generated_tokens, session.generated);
  EXPECT_EQ(figures.prompt_time, session.prompt_time);
  EXPECT_EQ(figures.generate_time, session.generate_time);
  EXPECT_EQ(figures.token_ms, session.token_ms);
  EXPECT_EQ(figures.devices.size(), session.devices.size());
  for (const DeviceTime& device : figures.devices) {
    ASSERT_TRUE(session.devices.contains(device.name)) << device.name;
    auto kinds = session.devices.at(device.name);
    EXPECT_NEAR(device.ns, sum_of(kinds), 1e-9 * std::max(1.0, device.ns)) << device.name;
    for (const auto& [kind, ns] : kinds) EXPECT_LE(ns, device.slowest_ns) << kind;
    if (device.ns > 0) {
      EXPECT_EQ(kinds[device.slowest], device.slowest_ns) << device.slowest;
    }
  }
  EXPECT_TRUE(std::ranges::is_sorted(figures.devices, std::greater{}, &DeviceTime::ns));
  for (const auto& [axis, breakdown] : {std::pair(Axis::OpKind, &figures.by_op_kind),
                                        std::pair(Axis::Tensor, &figures.by_tensor)}) {
    SCOPED_TRACE(to_text(axis));
    NaiveSums expected = naive_sums(reader, axis), seen;
    for (const BreakdownRow& row : breakdown->rows) seen[row.name] += row.all;
    for (const auto& [name, sums] : seen) {
      SCOPED_TRACE(name);
      expect_equal_sums(sums, expected[name]);
      expected.erase(name);
    }
    if (axis == Axis::Tensor) expected.erase("");
    for (const auto& [name, sums] : expected)
      EXPECT_EQ(sums, TraceSums{}) << "missing row for " << name;
  }
  expect_pins(figures, session);
  expect_pinned_names(figures);
}

void expect_report(const std::filesystem::path& file, const SessionIndex& index,
                   const SessionReader& reader) {
  const auto figures = gather_report_data(file, index, reader);
  ASSERT_TRUE(figures.has_value()) << figures.error().message;
  expect_figures(*figures, reader);
  EXPECT_TRUE(figures->validation.passed());
  const Report report = report_of(*figures);
  EXPECT_FALSE(report.findings.empty());
  for (const ReportFormat format :
       {ReportFormat::Html, ReportFormat::Markdown, ReportFormat::JsonText}) {
    const std::string text = text_of(report, format);
    for (const ReportSection& section : report.sections)
      EXPECT_NE(text.find(section.title), std::string::npos) << section.title;
  }
}

}  // namespace tt::test
