#include "tests/analysis/sql/naive_tables.h"
#include "tracer/format/model/lens_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/kernel.h"
#include "analysis/common/op_info.h"
#include "analysis/experts/routing.h"
#include "analysis/graph/dependencies.h"
#include "tests/analysis/aggregate/naive_faults.h"
#include "tests/analysis/aggregate/naive_sums.h"
#include "tests/analysis/sql/sql_line.h"
#include "tracer/format/access/access.h"
#include "tracer/format/model/step.h"

namespace tt::test {
namespace {

std::int64_t wrapping_difference(Ns a, Ns b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a.v) -
                                   static_cast<std::uint64_t>(b.v));
}
std::int64_t begin_of(const Step& step, OpId op) {
  if (op.v >= step.op_ends.size()) return step.begin.v;
  return op.v == 0 ? step.first_op.v : step.op_ends[op.v - 1].v;
}
std::string qkv(Role role) {
  switch (role) {
    case Role::Q:
      return "Q";
    case Role::K:
      return "K";
    case Role::V:
      return "V";
    case Role::Qkv:
      return "QKV";
    case Role::O:
      return "O";
    default:
      return "NULL";
  }
}

std::string naive_expert_name(const std::string& tensor, std::int32_t expert) {
  static const std::regex kLayer(R"(blk\.[^.]*\.)"), kExperts("_exps");
  std::smatch layer;
  std::regex_search(tensor, layer, kLayer, std::regex_constants::match_continuous);
  const std::string rest = tensor.substr(static_cast<std::size_t>(layer.length()));
  return std::format(
      "{}expert_{}.{}", layer.str(), expert,
      std::regex_replace(rest, kExperts, "", std::regex_constants::format_first_only));
}

Lines naive_accesses(const SessionContents& all) {
  static constexpr const char* kExtents[] = {"all", "rows", "experts", "cells"};
  Lines lines;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    const auto rules = accesses_of(*graph);
    const auto categories = categories_of(*graph);
    const auto layer_heads = heads_of_layers(*graph);
    const Allocation allocation =
        step.allocation.v == 0 ? Allocation{} : all.reader.allocation(step.allocation).value();
    std::map<std::uint32_t, std::int64_t> parts;  // of each access
    for_each_access(*graph, rules, step, [&](const StepAccess& access) { ++parts[access.access]; });
    std::uint32_t last = kNone, part = 0;
    for_each_access(*graph, rules, step, [&](const StepAccess& access) {
      part = access.access == last ? part + 1 : 0;
      last = access.access;
      const Access& rule = rules[access.access];
      const Tensor& tensor = graph->tensor(access.tensor);
      const Op& op = graph->op(access.op);
      const bool timed = access.op.v < step.op_ends.size();
      const bool expert = access.expert >= 0;
      std::uint64_t address =
          access.tensor.v < allocation.addresses.size() ? allocation.addresses[access.tensor.v] : 0;
      if (address != 0 && expert)
        address += static_cast<std::uint64_t>(access.expert) * rule.stride;
      const std::uint32_t heads =
          head_geometry(tensor, layer_heads, {all.info.n_heads, all.info.n_heads_kv}).count;
      Line line;
      line.number(step.id.v).number(access.op.v).number(access.access).number(part);
      line.number(begin_of(step, access.op));
      const std::int64_t whole =
          timed ? wrapping_difference(step.op_ends[access.op.v], Ns{begin_of(step, access.op)}) : 0;
      line.number_or_null(timed, whole);
      // The first part has the rest of the division.
      const bool is_main = main_access(*graph, rules, access.op.v) == &rule;
      const std::int64_t count = parts[access.access], each = whole / count;
      const std::int64_t own = part > 0 ? each : whole - each * (count - 1);
      line.number_or_null(timed, is_main ? own : 0);
      line.number(step.first_token).number(step.n_tokens);
      line.text(to_text(step.phase)).text(to_text(step.timing)).number(step.graph.v);
      line.text(op_name(*graph, op)).layer(op.layer).text(op.device).number(access.write);
      line.number(access.tensor.v).text(tensor.name).text(tensor.type).text(to_text(tensor.kind));
      line.u64(size_of(tensor).v);
      line.number_or_null(address != 0, static_cast<std::int64_t>(address));
      line.layer(tensor.layer).text(to_text(tensor.component)).text(to_text(tensor.role));
      line.text(to_text(categories[access.tensor.v])).text(to_text(tensor.source));
      line.number_or_null(!rule.range.empty(), rule.range.file);
      const bool in_file = !access.range.empty();
      line.number_or_null(in_file, static_cast<std::int64_t>(access.range.offset));
      line.number_or_null(in_file, static_cast<std::int64_t>(access.range.length));
      line.number_or_null(!rule.range.empty(), static_cast<std::int64_t>(rule.range.offset));
      line.u64(access.touched.v).text(kExtents[static_cast<int>(rule.extent)]).u64(rule.unit.v);
      line.text(qkv(tensor.role)).null().number_or_null(heads != 0, heads);
      line.number_or_null(expert, access.expert);
      line.number_or_null(expert && access.rank >= 0, access.rank);
      if (expert && !std::isnan(access.score)) {
        line.real(static_cast<double>(access.score));
      } else {
        line.null();
      }
      line.text(expert ? naive_expert_name(tensor.name, access.expert) : "NULL");
      lines.push_back(line.take());
    });
  }
  return lines;
}

Lines naive_ops(const SessionContents& all) {
  Lines lines;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    const bool whole = step.op_ends.empty() && !step.aborted;
    std::map<std::uint32_t, std::uint64_t> read, written;
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      (access.write ? written : read)[access.op.v] += access.touched.v;
    });
    for (std::uint32_t i = 0; i < (whole ? graph->ops.size() : step.op_ends.size()); ++i) {
      const Op& op = graph->ops[i];
      const TensorId output = graph->node(op.last()).output;
      Line line;
      line.number(step.id.v).number(i).text(to_text(step.phase)).number(step.graph.v);
      line.number(step.first_token).text(op_name(*graph, op)).layer(op.layer).text(op.device);
      if (const auto kernel = kernel_of(*graph, op, kernel_rules_of(all.info))) {
        line.text(to_text(*kernel));
      } else {
        line.null();
      }
      line.number(step.threads);
      line.number(op.nodes).number(output.v).text(graph->tensor(output).name);
      line.text(graph->tensor(output).type);
      for (const auto ne : graph->tensor(output).ne) line.number(ne);
      const OpRole role = op_role_of(*graph, op);
      line.text(to_text(role.component)).text(to_text(role.role));
      line.number(begin_of(step, OpId{i}));
      line.number_or_null(
          !whole, whole ? 0 : wrapping_difference(step.op_ends[i], Ns{begin_of(step, OpId{i})}));
      line.u64(read[i]).u64(written[i]);
      const auto stats = std::ranges::find(step.stats, OpId{i}, &ValueStats::op);
      const bool described = stats != step.stats.end();
      for (const auto of :
           {&ValueStats::min, &ValueStats::max, &ValueStats::mean, &ValueStats::std})
        described&& std::isfinite((*stats).*of) ? line.real(static_cast<double>((*stats).*of))
                                                : line.null();
      for (const auto of : {&ValueStats::nan, &ValueStats::inf})
        described ? line.u64((*stats).*of) : line.null();
      lines.push_back(line.take());
    }
  }
  return lines;
}

// The rule of docs/conditions.md. Null: not known.
const char* naive_verdict(const Step& step) {
  const StepConditions& c = step.conditions;
  if (!c.interval_ns || !c.cpu_ns || !c.cpu_wait_ns) return nullptr;
  const double all = static_cast<double>(*c.interval_ns) * (step.threads == 0 ? 1 : step.threads);
  if (all <= 0) return nullptr;
  const auto wait = static_cast<double>(*c.cpu_wait_ns);
  const double throttled = std::min(static_cast<double>(c.throttled_ns.value_or(0)), all);
  const double other = all - static_cast<double>(*c.cpu_ns) - wait - throttled;
  const double blocked = c.major_faults.value_or(0) > 0 ? std::max(other, 0.0) : 0;
  constexpr double kLeast = 1e5;
  const bool contended = wait >= kLeast && wait >= all * 0.05;
  if (throttled >= kLeast && throttled >= all * 0.05) return "throttled";
  if (c.thermal_throttles.value_or(0) > 0 && all >= kLeast) return "throttled";
  if (blocked >= kLeast && blocked >= all * 0.1 && !(contended && wait >= blocked)) return "disk";
  return contended ? "contended" : "clean";
}

// Bytes that are in any of the ranges, counted between each two neighbouring ends of ranges.
std::uint64_t naive_union(const std::vector<FileRange>& ranges) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> ends;
  for (const FileRange& range : ranges) {
    ends.emplace(range.file, range.offset);
    ends.emplace(range.file, range.offset + range.length);
  }
  std::uint64_t bytes = 0;
  for (auto end = ends.begin(); end != ends.end() && std::next(end) != ends.end(); ++end) {
    const auto& [file, from] = *end;
    const auto& [next_file, to] = *std::next(end);
    const bool covered = std::ranges::any_of(ranges, [&](const FileRange& range) {
      return range.file == file && range.offset <= from && from < range.offset + range.length;
    });
    if (covered && file == next_file) bytes += to - from;
  }
  return bytes;
}

Lines naive_steps(const SessionContents& all) {
  Lines lines;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    std::uint64_t rows = 0, read = 0, written = 0;
    std::vector<FileRange> mapped;
    if (graph != nullptr) {
      for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
        ++rows;
        (access.write ? written : read) += access.touched.v;
        if (access.write || graph->tensor(graph->root(access.tensor)).source != Source::Disk)
          return;
        mapped.push_back(access.range);
      });
    }
    Line line;
    line.number(step.id.v).text(to_text(step.phase)).text(to_text(step.timing));
    line.number_or_null(step.graph.v != 0, step.graph.v).number(step.first_token);
    line.number(step.n_tokens).number(step.begin.v).number(step.end.v);
    line.number(wrapping_difference(step.end, step.begin))
        .number(step.first_op.v)
        .number(step.threads);
    line.u64(step.op_ends.size()).u64(rows).u64(read).u64(written);
    line.number(step.dropped).number(step.aborted);
    const StepConditions& c = step.conditions;
    if (const char* verdict = naive_verdict(step)) {
      line.text(verdict);
    } else {
      line.null();
    }
    for (const auto& value : {c.interval_ns,
                              c.cpu_ns,
                              c.cpu_wait_ns,
                              c.voluntary_switches,
                              c.involuntary_switches,
                              c.minor_faults,
                              c.major_faults,
                              c.disk_read_bytes,
                              c.throttled_ns,
                              c.pressure_cpu_ns,
                              c.pressure_io_ns,
                              c.pressure_memory_ns,
                              c.frequency_khz,
                              c.thermal_throttles,
                              c.memory_limit_bytes,
                              c.locked_bytes,
                              c.resident_bytes,
                              c.queue_ns,
                              c.sample_ns,
                              c.detokenize_ns,
                              c.build_ns,
                              c.evaluate_ns,
                              c.graphs_built}) {
      if (value) {
        line.u64(*value);
      } else {
        line.null();
      }
    }
    const std::uint64_t bytes = naive_union(mapped);
    line.u64(bytes);
    if (c.disk_read_bytes && bytes > 0) {
      line.real(static_cast<double>(static_cast<float>(static_cast<double>(*c.disk_read_bytes) /
                                                       static_cast<double>(bytes))));
    } else {
      line.null();
    }
    if (c.disk_read_bytes && c.major_faults.value_or(0) > 0) {
      line.u64(*c.disk_read_bytes / *c.major_faults);
    } else {
      line.null();
    }
    lines.push_back(line.take());
  }
  return lines;
}

Lines naive_experts(const SessionContents& all) {
  Lines lines;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    for (const RoutingRow& row : routing_rows(*graph, step)) {
      Line line;
      line.number(step.id.v).layer(row.layer).number_or_null(row.token != kNone, row.token);
      line.text(to_text(step.phase)).number(row.expert).number(row.rank);
      if (std::isnan(row.score)) {
        line.null();
      } else {
        line.real(static_cast<double>(row.score));
      }
      lines.push_back(line.take());
    }
  }
  return lines;
}

Lines naive_tensors(const SessionContents& all) {
  Lines lines;
  for (const auto& [id, graph] : all.graphs) {
    const std::vector<Category> categories = categories_of(graph);
    for (std::uint32_t i = 0; i < graph.tensors.size(); ++i) {
      const Tensor& t = graph.tensors[i];
      const bool view = t.view_of != kNoTensor, in_file = !t.file.empty();
      Line line;
      line.number(id.v).number(i).text(t.name).text(t.type).text(to_text(t.kind)).layer(t.layer);
      line.text(to_text(t.component)).text(to_text(t.role));
      line.text(to_text(categories[i]));
      line.text(t.input == InputLabel::None ? "NULL" : to_text(t.input));
      line.text(to_text(t.source)).text(t.buffer).u64(size_of(t).v);
      for (const auto ne : t.ne) line.number(ne);
      for (const auto nb : t.nb) line.u64(nb);
      line.number_or_null(view, t.view_of.v);
      line.number_or_null(view, static_cast<std::int64_t>(t.view_offset));
      line.number_or_null(in_file, t.file.file);
      line.number_or_null(in_file, static_cast<std::int64_t>(t.file.offset));
      line.number_or_null(in_file, static_cast<std::int64_t>(t.file.length));
      lines.push_back(line.take());
    }
  }
  return lines;
}

Lines naive_edges(const SessionContents& all) {
  Lines lines;
  for (const auto& [id, graph] : all.graphs) {
    for (const Dependency& edge : dependencies_of(graph)) {
      const Tensor &from = graph.tensor(edge.from), &to = graph.tensor(edge.to);
      Line line;
      line.number(id.v).number(edge.from.v).number(edge.to.v).text(from.name).text(to.name);
      lines.push_back(line.layer(from.layer).layer(to.layer).take());
    }
  }
  return lines;
}

Lines naive_templates(const SessionContents& all) {
  Lines lines;
  for (const auto& [id, graph] : all.graphs) {
    Line line;
    line.number(id.v).text(std::format("{:016x}", graph.fingerprint)).u64(graph.tensors.size());
    line.u64(graph.nodes.size()).u64(graph.ops.size()).u64(graph.slots.size());
    lines.push_back(line.u64(accesses_of(graph).size()).take());
  }
  return lines;
}

Lines naive_tokens(const SessionContents& all) {
  Lines lines;
  for (const Token& token : all.reader.tokens(0, UINT32_MAX).value()) {
    Line line;
    line.number(token.index).number(token.id).number(token.position).number(token.generated);
    line.number(token.reused)
        .number_or_null(token.sequence.has_value(), token.sequence.value_or(0));
    line.null();  // a slot of llama-server: tests/attach/attach_answers_test.cpp
    if (token.draft == Draft::None)
      line.null();
    else
      line.text(to_text(token.draft));
    lines.push_back(line.text(token.text).take());
  }
  return lines;
}

Lines naive_session(const SessionContents& all) {
  const SessionInfo& info = all.info;
  const LossCounters losses = all.reader.losses().value();
  Line line;
  line.text(info.id).text(info.title).number(info.start_utc_ns).text(to_text(info.level));
  line.number(info.exact_timing).text(to_text(info.state)).text(info.error);
  line.u64(all.steps.size()).u64(all.reader.token_count().value());
  for (const auto n : {info.n_layers, info.n_heads, info.n_heads_kv, info.n_embd, info.n_vocab,
                       info.n_experts, info.n_experts_used})
    line.number(n);
  line.u64(losses.steps_without_times).u64(losses.slot_values_dropped);
  line.u64(losses.count_mismatches).u64(losses.steps_not_written);
  line.u64(losses.page_faults_lost);
  return {line.take()};
}

Lines naive_model(const SessionContents& all) {
  Lines lines;
  for (const ModelFile& file : all.info.model_files) {
    Line line;
    line.u64(lines.size()).text(file.path).u64(file.size).number(file.mtime_ns);
    lines.push_back(line.text(file.header_hash).take());
  }
  return lines;
}

// Counts and bytes by phase, template, access and expert.
Lines naive_access_totals(const SessionContents& all) {
  std::map<std::tuple<Phase, TemplateId, std::uint32_t, std::int32_t>,
           std::pair<std::uint64_t, std::uint64_t>>
      sums;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      auto& [count, bytes] = sums[{step.phase, step.graph, access.access, access.expert}];
      ++count;
      bytes += access.touched.v;
    });
  }
  Lines lines;
  for (const auto& [key, sum] : sums) {
    const auto& [phase, id, index, expert] = key;
    const GraphTemplate& graph = all.graphs.at(id);
    const Access access = accesses_of(graph)[index];
    const Tensor& tensor = graph.tensor(access.tensor);
    const Op& op = graph.op(access.op);
    Line line;
    line.text(to_text(phase)).number(id.v).number(index).number(access.op.v);
    line.text(op_name(graph, op)).layer(op.layer).text(op.device).number(access.write);
    line.number(access.tensor.v).text(tensor.name).text(tensor.type).text(to_text(tensor.kind));
    line.layer(tensor.layer).text(to_text(tensor.component)).text(to_text(tensor.role));
    line.text(to_text(tensor.source)).number_or_null(expert >= 0, expert);
    lines.push_back(line.u64(sum.first).u64(sum.second).take());
  }
  return lines;
}

Lines naive_op_totals(const SessionContents& all) {
  struct Sum {
    std::uint64_t executions = 0, ns = 0, read = 0, written = 0;
    bool timed = false;
  };
  std::map<std::tuple<Phase, TemplateId, std::uint32_t>, Sum> sums;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    const bool whole = step.op_ends.empty() && !step.aborted;
    for (std::uint32_t i = 0; i < (whole ? graph->ops.size() : step.op_ends.size()); ++i) {
      Sum& sum = sums[{step.phase, step.graph, i}];
      ++sum.executions;
      if (whole) continue;
      sum.timed = true;
      sum.ns += static_cast<std::uint64_t>(
          wrapping_difference(step.op_ends[i], Ns{begin_of(step, OpId{i})}));
    }
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      Sum& sum = sums[{step.phase, step.graph, access.op.v}];
      (access.write ? sum.written : sum.read) += access.touched.v;
    });
  }
  Lines lines;
  for (const auto& [key, sum] : sums) {
    const auto& [phase, id, index] = key;
    const GraphTemplate& graph = all.graphs.at(id);
    const Op& op = graph.ops[index];
    const Tensor& output = graph.tensor(graph.node(op.last()).output);
    Line line;
    line.text(to_text(phase)).number(id.v).number(index).text(op_name(graph, op)).layer(op.layer);
    line.text(op.device).text(output.name).text(to_text(op_role_of(graph, op).component));
    line.u64(sum.executions);
    line.number_or_null(sum.timed, static_cast<std::int64_t>(sum.ns));
    lines.push_back(line.u64(sum.read).u64(sum.written).take());
  }
  return lines;
}

Lines naive_metadata(const SessionContents& all) {
  Lines lines;
  for (const auto& [name, value] : all.info.facts)
    lines.push_back(Line().text(name).text(value).take());
  return lines;
}

Lines naive_faults_table(const SessionContents& all) {
  std::vector<std::pair<FaultKind, NaiveFault>> faults;
  for (const FaultKind kind : {FaultKind::Major, FaultKind::Minor})
    for (NaiveFault& of : naive_faults(all.reader, kind)) faults.emplace_back(kind, std::move(of));
  std::ranges::stable_sort(faults, {}, [](const auto& of) { return of.second.step.id; });
  Lines lines;
  for (const auto& [kind, of] : faults) {
    Line line;
    line.u64(of.step.id.v).text(to_text(of.step.phase)).u64(of.step.first_token);
    line.number_or_null(of.has_fault, of.fault.at.v).text(to_text(kind)).u64(of.count);
    line.number_or_null(of.op.has_value(), of.op.value_or(0));
    line.text(of.op ? op_name(*of.graph, of.graph->ops[*of.op]) : "NULL");
    line.layer(of.op ? of.graph->ops[*of.op].layer : kNoLayer);
    line.number_or_null(of.access.has_value(), of.access.value_or(0));
    const Tensor* owner =
        of.access ? &of.graph->tensor(of.graph->root(of.of_access.tensor)) : nullptr;
    line.text(owner ? owner->name : "NULL").layer(owner ? owner->layer : kNoLayer);
    line.text(owner ? to_text(owner->component) : "NULL").number_or_null(of.expert >= 0, of.expert);
    line.number_or_null(of.has_fault, static_cast<std::int64_t>(of.fault.address));
    line.number_or_null(!of.file.empty(), of.file.file);
    line.number_or_null(!of.file.empty(), static_cast<std::int64_t>(of.file.offset));
    lines.push_back(line.take());
  }
  return lines;
}

Lines naive_residency(const SessionContents& all) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, const Tensor*> weights;
  for (const auto& [id, graph] : all.graphs)
    for (const Tensor& tensor : graph.tensors)
      if (!tensor.file.empty() && tensor.view_of == kNoTensor)
        weights.try_emplace({tensor.file.file, tensor.file.offset}, &tensor);
  Lines lines;
  const auto read =
      all.reader.for_each_residency(StepId{0}, UINT32_MAX, [&](const StepResidency& of) {
        for (const auto& [place, tensor] : weights) {
          std::uint64_t bytes = 0;
          const std::uint64_t end = place.second + tensor->file.length;
          for (const FileRange& range : of.resident) {
            const std::uint64_t from = std::max(place.second, range.offset);
            const std::uint64_t to = std::min(end, range.offset + range.length);
            if (range.file == place.first && from < to) bytes += to - from;
          }
          Line line;
          line.u64(of.step.v).number(of.at.v).text(tensor->name).layer(tensor->layer);
          line.text(to_text(tensor->component)).u64(place.first).u64(place.second);
          line.u64(tensor->file.length);
          line.number_or_null(tensor->source == Source::Disk, static_cast<std::int64_t>(bytes));
          lines.push_back(line.take());
        }
        return true;
      });
  read.value();  // throws
  return lines;
}

// Finite values only.
struct NaiveSums {
  std::uint64_t n = 0, nan = 0, inf = 0;
  double min = 0, max = 0, sum = 0, squares = 0, deviations = 0;
};

NaiveSums naive_sums(const std::vector<float>& values) {
  std::vector<double> finite;
  NaiveSums sums;
  for (const float value : values) {
    sums.nan += std::isnan(value);
    sums.inf += std::isinf(value);
    if (std::isfinite(value)) finite.push_back(double{value});
  }
  sums.n = finite.size();
  if (finite.empty()) return sums;
  sums.min = *std::ranges::min_element(finite);
  sums.max = *std::ranges::max_element(finite);
  for (const double v : finite) sums.sum += v;
  for (const double v : finite) sums.squares += v * v;
  const double mean = sums.sum / static_cast<double>(finite.size());
  for (const double v : finite) sums.deviations += (v - mean) * (v - mean);
  return sums;
}

Lines naive_values(const SessionContents& all) {
  Lines lines;
  const auto read = all.reader.for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
    for (const OutputValues& output : of.outputs) {
      const GraphTemplate& graph = *all.graph_of(all.steps[of.step.v]);
      const Op& op = graph.ops[output.op.v];
      Line line;
      line.u64(of.step.v).u64(output.op.v).text(op_name(graph, op)).layer(op.layer);
      const std::string of_layer = op.layer == kNoLayer ? "" : std::format("-{}", op.layer.v);
      line.text(output.of == ValuesOf::Attention ? "attention" + of_layer
                : output.of == kLensValues       ? "lens" + of_layer
                                                 : graph.tensor(graph.node(op.last()).output).name);
      for (const std::uint64_t ne : output.ne) line.u64(ne);
      const NaiveSums sums = naive_sums(output.values);
      const auto n = static_cast<double>(sums.n);
      for (const double number : {sums.min, sums.max, sums.sum / n, std::sqrt(sums.deviations / n),
                                  std::sqrt(sums.squares)})
        sums.n > 0 ? line.real(number) : line.null();
      line.u64(sums.nan).u64(sums.inf);
      std::string elements;
      for (const float value : output.values) elements += std::format(",{}", value);
      line.text(std::format("[{}]", elements.empty() ? "" : elements.substr(1)));
      lines.push_back(line.take());
    }
    return true;
  });
  read.value();  // throws
  return lines;
}

Lines naive_splits(const SessionContents& all) {
  Lines lines;
  const auto read = all.reader.for_each_splits(StepId{0}, UINT32_MAX, [&](const StepSplits& of) {
    for (std::size_t i = 0; i < of.splits.size(); ++i) {
      const BackendSplit& split = of.splits[i];
      std::uint64_t bytes = 0, copied = 0, waited = 0;
      for (const BackendCopy& copy : split.copies) {
        bytes += copy.bytes;
        copied += static_cast<std::uint64_t>(wrapping_difference(copy.end, copy.begin));
        waited += static_cast<std::uint64_t>(copy.wait.v);
      }
      Line line;
      line.u64(of.step.v).text(to_text(all.steps[of.step.v].phase)).u64(i);
      line.text(of.backends[split.backend]);
      line.number_or_null(split.ops > 0, split.first.v).u64(split.ops);
      line.number(split.begin.v).number(split.end.v);
      line.number_or_null(split.done.has_value(), split.done.value_or(Ns{}).v);
      line.u64(split.copies.size()).u64(bytes).u64(copied).u64(waited);
      lines.push_back(line.take());
    }
    return true;
  });
  read.value();  // throws
  return lines;
}

Lines naive_split_copies(const SessionContents& all) {
  Lines lines;
  const auto read = all.reader.for_each_splits(StepId{0}, UINT32_MAX, [&](const StepSplits& of) {
    const GraphTemplate* graph = all.graph_of(all.steps[of.step.v]);
    for (std::size_t i = 0; i < of.splits.size(); ++i)
      for (std::size_t k = 0; k < of.splits[i].copies.size(); ++k) {
        const BackendCopy& copy = of.splits[i].copies[k];
        Line line;
        line.u64(of.step.v).text(to_text(all.steps[of.step.v].phase)).u64(i).u64(k);
        if (copy.tensor == kNoTensor) {
          line.null().null().null();
        } else {
          const Tensor& tensor = graph->tensor(copy.tensor);
          line.u64(copy.tensor.v).text(tensor.name).layer(tensor.layer);
        }
        copy.from == kNone ? line.null() : line.text(of.backends[copy.from]);
        line.text(of.backends[of.splits[i].backend]).u64(copy.bytes);
        line.number(copy.begin.v).number(copy.end.v).number(copy.wait.v).number(copy.complete);
        lines.push_back(line.take());
      }
    return true;
  });
  read.value();  // throws
  return lines;
}

constexpr std::array kTables = {
    NaiveTable{"access", naive_accesses},
    NaiveTable{"op", naive_ops},
    NaiveTable{"access_total", naive_access_totals},
    NaiveTable{"op_total", naive_op_totals},
    NaiveTable{"step", naive_steps},
    NaiveTable{"expert", naive_experts},
    NaiveTable{"tensor", naive_tensors},
    NaiveTable{"edge", naive_edges},
    NaiveTable{"template", naive_templates},
    NaiveTable{"token", naive_tokens},
    NaiveTable{"session", naive_session},
    NaiveTable{"model", naive_model},
    NaiveTable{"metadata", naive_metadata},
    NaiveTable{"fault", naive_faults_table},
    NaiveTable{"residency", naive_residency},
    NaiveTable{"value", naive_values},
    NaiveTable{"split", naive_splits},
    NaiveTable{"split_copy", naive_split_copies},
};

}  // namespace

std::span<const NaiveTable> naive_tables() { return kTables; }

}  // namespace tt::test
