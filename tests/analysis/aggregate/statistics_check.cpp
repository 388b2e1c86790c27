#include "tests/analysis/aggregate/statistics_check.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "analysis/common/op_info.h"
#include "analysis/tables/tensor_table.h"
#include "tests/analysis/aggregate/naive_quantile.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

void add(const GraphTemplate& graph, const Step& step, const StepAccess& access,
         SessionStatistics& out) {
  const Tensor& tensor = graph.tensor(access.tensor);
  AccessSums one{.accesses = 1};
  (access.write ? one.written : one.read) = access.touched;
  out.all += one;
  out.phases[step.phase] += one;
  out.layers[tensor.layer] += one;
  out.op_kinds[op_name(graph, graph.op(access.op))] += one;
  out.components[tensor.component] += one;
  out.sources[tensor.source] += one;
  if (tensor.kind == TensorKind::Weight) out.weights[tensor.name] += one;
}

std::size_t ops_that_ran(const GraphTemplate& graph, const Step& step) {
  const bool all = step.op_ends.empty() && !step.aborted;
  return all ? graph.ops.size() : step.op_ends.size();
}

bool names_layers(const GraphTemplate& graph, std::span<const Access> accesses, OpId op,
                  const LayerSet& layers) {
  for (const Access& access : accesses)
    if (access.op == op && layers.has(graph.tensor(access.tensor).layer)) return true;
  return false;
}

}  // namespace

void expect_statistics(const SessionReader& reader, const SessionIndex& index,
                       const StatisticsQuery& query) {
  SessionStatistics naive;
  std::set<std::tuple<TensorKind, Source, std::uint32_t, std::uint64_t, std::string>> owners;
  std::map<Phase, std::multiset<Ns>> durations;
  const auto walked = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (!query.steps.contains(step.id.v)) return true;
    ++naive.steps;
    naive.tokens += step.n_tokens;
    naive.time = naive.time + (step.end - step.begin);
    if (step.timing != Timing::Learned && !step.dropped && !step.aborted)
      durations[step.phase].insert(step.end - step.begin);
    if (step.graph.v == 0) return true;
    const auto graph = *reader.graph(step.graph);
    const auto accesses = accesses_of(*graph);
    for (std::uint32_t op = 0; op < ops_that_ran(*graph, step); ++op)
      naive.ops +=
          query.layers == LayerSet::all() || names_layers(*graph, accesses, OpId{op}, query.layers);
    for_each_access(*graph, accesses, step, [&](const StepAccess& access) {
      if (!query.layers.has(graph->tensor(access.tensor).layer)) return;
      add(*graph, step, access, naive);
      const Tensor& root = graph->tensor(graph->root(access.tensor));
      if (!owners.emplace(root.kind, root.source, root.file.file, root.file.offset, root.name)
               .second)
        return;
      ++naive.tensors[root.kind];
      if (root.kind == TensorKind::Weight) naive.weights_size += size_of(root);
    });
    return true;
  });
  ASSERT_TRUE(walked.has_value()) << walked.error().message;
  for (const auto& [phase, took] : durations) {
    const auto at = [&](double q) { return naive_quantile(took, q); };
    naive.step_times[phase] = {.p5 = at(0.05), .median = at(0.5), .p95 = at(0.95)};
  }
  const SessionStatistics found = session_statistics(index, query);
  EXPECT_EQ(found.all.accesses, naive.all.accesses);
  EXPECT_EQ(found.ops, naive.ops);
  EXPECT_EQ(found.weights_size, naive.weights_size);
  EXPECT_EQ(found, naive);
}

}  // namespace tt::test
