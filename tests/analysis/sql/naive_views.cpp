#include "tests/analysis/sql/naive_views.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/experts/routing.h"
#include "analysis/tables/op_table.h"
#include "tests/analysis/sql/sql_line.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

constexpr double kMax = 0x1p62;

// SQL sum(): NULL without input.
struct Sum {
  std::uint64_t value = 0;
  double size = 0;  // sum of absolute values
  bool any = false;

  void add(std::int64_t v) {
    value += static_cast<std::uint64_t>(v);
    size += std::abs(static_cast<double>(v));
    any = true;
  }
  void add(Bytes v) { add(static_cast<std::int64_t>(v.v)); }
  bool fits() const { return size < kMax; }
  std::int64_t number() const { return static_cast<std::int64_t>(value); }
  void to(Line& line) const { line.number_or_null(any, number()); }
};

// Sums by key; the key is the row's text.
template <class Sums>
using Groups = std::map<std::string, Sums>;

std::string joined(const std::string& key, Line&& sums) { return key + "|" + sums.take(); }

struct AccessSums {
  Sum accesses, bytes, read, written, disk, prompt, generate;

  void add(const Step& step, const Tensor& tensor, const StepAccess& access) {
    accesses.add(std::int64_t{1});
    bytes.add(access.touched);
    (access.write ? written : read).add(access.touched);
    if (tensor.source == Source::Disk) disk.add(access.touched);
    if (step.phase == Phase::Prompt) prompt.add(access.touched);
    if (step.phase == Phase::Generate) generate.add(access.touched);
  }
};

struct WalkedAccess {
  const Step& step;
  const GraphTemplate& graph;
  const StepAccess& access;
  const Tensor& tensor() const { return graph.tensor(access.tensor); }
};

// `key` returns the row of an access, or nothing. `add_sums` adds the sums to the row.
template <class Key, class AddSums>
std::optional<Lines> rows_of_accesses(const SessionContents& all, Key key, AddSums add_sums) {
  Groups<AccessSums> groups;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      const WalkedAccess walked{.step = step, .graph = *graph, .access = access};
      const std::optional<std::string> of = key(walked);
      if (of) groups[*of].add(step, walked.tensor(), access);
    });
  }
  Lines lines;
  for (const auto& [of, sums] : groups) {
    if (!sums.bytes.fits()) return std::nullopt;
    Line line;
    sums.accesses.to(line);
    sums.bytes.to(line);
    add_sums(sums, line);
    lines.push_back(joined(of, std::move(line)));
  }
  return lines;
}

void no_sums(const AccessSums&, Line&) {}
void read_and_written(const AccessSums& sums, Line& line) {
  sums.read.to(line);
  sums.written.to(line);
}

std::optional<Lines> by_tensor(const SessionContents& all) {
  return rows_of_accesses(
      all,
      [](const WalkedAccess& w) {
        const Tensor& t = w.tensor();
        Line line;
        line.text(t.name).text(to_text(t.kind)).text(to_text(t.source)).layer(t.layer);
        return line.text(to_text(t.component)).text(to_text(t.role)).take();
      },
      [](const AccessSums& sums, Line& line) {
        sums.prompt.to(line);
        sums.generate.to(line);
      });
}

std::optional<Lines> by_layer(const SessionContents& all) {
  return rows_of_accesses(
      all, [](const WalkedAccess& w) { return Line().layer(w.tensor().layer).take(); },
      [](const AccessSums& sums, Line& line) {
        read_and_written(sums, line);
        sums.disk.to(line);
      });
}

std::optional<Lines> by_op(const SessionContents& all) {
  return rows_of_accesses(
      all,
      [](const WalkedAccess& w) {
        return Line().text(op_name(w.graph, w.graph.op(w.access.op))).take();
      },
      read_and_written);
}

std::optional<Lines> by_expert(const SessionContents& all) {
  return rows_of_accesses(
      all,
      [](const WalkedAccess& w) -> std::optional<std::string> {
        if (w.access.expert < 0) return std::nullopt;
        return Line().layer(w.tensor().layer).number(w.access.expert).take();
      },
      no_sums);
}

std::optional<Lines> by_source(const SessionContents& all) {
  return rows_of_accesses(
      all,
      [](const WalkedAccess& w) {
        const Source source = w.tensor().source;
        Line line;
        line.text(to_text(w.step.phase)).text(source == Source::Disk ? "DISK" : "BUFFER");
        return line.text(to_text(source)).take();
      },
      no_sums);
}

std::optional<Lines> op_time(const SessionContents& all) {
  struct Sums {
    Sum executions, ns, read, written;
  };
  Groups<Sums> groups;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    const bool whole = step.op_ends.empty() && !step.aborted;
    const auto of = [&](OpId op) -> Sums& {
      return groups[Line().text(op_name(*graph, graph->op(op))).take()];
    };
    for (OpId op{0}; op.v < (whole ? graph->ops.size() : step.op_ends.size()); ++op.v) {
      Sums& sums = of(op);
      sums.executions.add(std::int64_t{1});
      sums.read.any = sums.written.any = true;
      if (whole) continue;
      const Ns begin = op.v == 0 ? step.first_op : step.op_ends[op.v - 1];
      // Wraps; negative if the op ends before it begins.
      sums.ns.add(static_cast<std::int64_t>(static_cast<std::uint64_t>(step.op_ends[op.v].v) -
                                            static_cast<std::uint64_t>(begin.v)));
    }
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      (access.write ? of(access.op).written : of(access.op).read).add(access.touched);
    });
  }
  Lines lines;
  for (const auto& [name, sums] : groups) {
    if (!sums.ns.fits() || sums.read.size + sums.written.size >= kMax) return std::nullopt;
    Line line;
    for (const Sum* sum : {&sums.executions, &sums.ns, &sums.read, &sums.written}) sum->to(line);
    if (sums.ns.number() == 0) {
      line.null();
    } else {
      line.real(1e9 * static_cast<double>(sums.read.number() + sums.written.number()) /
                static_cast<double>(sums.ns.number()));
    }
    lines.push_back(joined(name, std::move(line)));
  }
  return lines;
}

std::optional<Lines> expert_use(const SessionContents& all) {
  struct Use {
    std::int64_t tokens = 0, first = 0, scored = 0;
    double score = 0;
  };
  Groups<Use> groups;
  for (const Step& step : all.steps) {
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    for (const RoutingRow& row : routing_rows(*graph, step)) {
      Use& use = groups[Line().layer(row.layer).number(row.expert).take()];
      ++use.tokens;
      use.first += row.rank == 0;
      if (std::isnan(row.score)) continue;
      ++use.scored;
      use.score += static_cast<double>(row.score);
    }
  }
  Lines lines;
  for (const auto& [of, use] : groups) {
    Line line;
    line.number(use.tokens).number(use.first);
    if (use.scored == 0) {
      line.null();
    } else {
      line.real(use.score / static_cast<double>(use.scored));
    }
    lines.push_back(joined(of, std::move(line)));
  }
  return lines;
}

std::int64_t duration_of(const Step& step) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(step.end.v) -
                                   static_cast<std::uint64_t>(step.begin.v));
}

std::optional<Lines> token_latency(const SessionContents& all) {
  Lines lines;
  const Step* before = nullptr;
  for (const Step& step : all.steps) {
    Line line;
    line.number(step.id.v).number(step.first_token).number(step.n_tokens);
    line.text(to_text(step.phase)).number(duration_of(step));
    if (before == nullptr) {
      line.null();
    } else {
      const double since = static_cast<double>(step.end.v) - static_cast<double>(before->end.v);
      if (std::abs(since) >= kMax) return std::nullopt;
      line.number(step.end.v - before->end.v);
    }
    const auto rate = [&](std::int64_t ns) {
      if (ns == 0) {
        line.null();
      } else {
        line.real(1e9 * step.n_tokens / static_cast<double>(ns));
      }
    };
    rate(before == nullptr ? duration_of(step) : step.end.v - before->end.v);
    rate(duration_of(step));
    before = &step;
    lines.push_back(line.take());
  }
  return lines;
}

std::optional<Lines> phase_totals(const SessionContents& all) {
  struct Sums {
    Sum steps, tokens, ns, accesses, read, written;
  };
  Groups<Sums> groups;
  for (const Step& step : all.steps) {
    Sums& sums = groups[to_text(step.phase)];
    sums.steps.add(std::int64_t{1});
    sums.tokens.add(std::int64_t{step.n_tokens});
    sums.ns.add(duration_of(step));
    sums.accesses.any = sums.read.any = sums.written.any = true;
    const GraphTemplate* graph = all.graph_of(step);
    if (graph == nullptr) continue;
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      sums.accesses.add(std::int64_t{1});
      (access.write ? sums.written : sums.read).add(access.touched);
    });
  }
  Lines lines;
  for (const auto& [phase, sums] : groups) {
    Line line;
    for (const Sum* sum :
         {&sums.steps, &sums.tokens, &sums.ns, &sums.accesses, &sums.read, &sums.written}) {
      if (!sum->fits()) return std::nullopt;
      sum->to(line);
    }
    lines.push_back(joined(phase, std::move(line)));
  }
  return lines;
}

constexpr std::array kViews = {
    NaiveView{"access_by_tensor", by_tensor},
    NaiveView{"access_by_layer", by_layer},
    NaiveView{"access_by_op", by_op},
    NaiveView{"access_by_expert", by_expert},
    NaiveView{"access_by_source", by_source},
    NaiveView{"hottest_tensors", by_tensor},
    NaiveView{"op_time", op_time},
    NaiveView{"expert_use", expert_use},
    NaiveView{"token_latency", token_latency},
    NaiveView{"phase_totals", phase_totals},
};

}  // namespace

std::span<const NaiveView> naive_views() { return kViews; }

}  // namespace tt::test
