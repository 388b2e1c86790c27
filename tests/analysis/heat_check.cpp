#include "tests/analysis/heat_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/op_facts.h"
#include "analysis/tensor_table.h"
#include "tests/analysis/naive_sums.h"
#include "tracer/format/access.h"

namespace tt::testing {
namespace {

// What each access, or op, of each step adds, and where.

struct Fact {  // one access, or an op by its main access
  const GraphTemplate* graph;
  const Step* step;
  std::uint32_t op;
  const Access* access = nullptr;  // null: the op has none
  FileRange file;
  std::uint64_t address = 0, span = 0;
  std::int32_t expert = -1;
};

std::string layer_name(LayerId layer) {
  return layer == kNoLayer ? "none" : std::to_string(layer.v);
}

// The row of an axis of names; empty: on none.
std::string name_on(Axis axis, const Fact& fact) {
  const GraphTemplate& graph = *fact.graph;
  const Op& op = graph.ops[fact.op];
  switch (axis) {
    case Axis::Layer:
      return layer_name(op.layer);
    case Axis::Component:
      return to_text(op_part(graph, op).component);
    case Axis::OpKind:
      return op_name(graph, op);
    case Axis::Op:
      return graph.tensor(graph.node(op.last()).output).name;
    case Axis::Phase:
      return to_text(fact.step->phase);
    case Axis::Tensor:
      return fact.access ? graph.tensor(graph.root(fact.access->tensor)).name : "";
    case Axis::Source:
      return fact.access ? to_text(graph.tensor(fact.access->tensor).source) : "";
    case Axis::Expert:
      return fact.expert < 0 ? "" : std::to_string(fact.expert);
    default:
      return "all";
  }
}

// Shares of pixels of an axis that a fact has.
using Shares = std::map<std::uint32_t, double>;

Shares spread(const RasterAxis& axis, std::int64_t begin, std::int64_t end) {
  Shares shares;
  const auto n = axis.range.to - axis.range.from;
  for (std::uint32_t p = 0; p < axis.pixels; ++p) {
    const std::int64_t from = axis.range.from + n * p / axis.pixels;
    const std::int64_t to = axis.range.from + n * (p + 1) / axis.pixels;
    const std::int64_t part = std::min(end, to) - std::max(begin, from);
    if (part > 0) shares[p] = static_cast<double>(part) / static_cast<double>(end - begin);
  }
  return shares;
}

// Whether a row of that name is the fact's: another tensor may have the same name.
bool is_row(const SessionIndex& index, const RasterAxis& axis, std::size_t row, const Fact& fact) {
  if (axis.rows[row] != name_on(axis.axis, fact)) return false;
  const auto key = static_cast<std::size_t>(axis.keys[row]);
  if (axis.axis == Axis::Op) {
    const SessionOp& of = index.names().ops()[key];
    const Op& op = fact.graph->ops[fact.op];
    return of.layer == op.layer && index.names().kinds()[of.kind] == op_name(*fact.graph, op);
  }
  if (axis.axis != Axis::Tensor) return true;
  return index.names().tensors()[key].file ==
         fact.graph->tensor(fact.graph->root(fact.access->tensor)).file;
}

Shares where(const SessionIndex& index, const RasterAxis& axis, const Fact& fact) {
  if (axis.axis == Axis::File) {
    if (fact.file.empty()) return {};
    for (const AxisSection& section : axis.sections) {
      const auto at = static_cast<std::uint32_t>(&section - axis.sections.data());
      if (at == fact.file.file) {
        const auto from = section.range.from + static_cast<std::int64_t>(fact.file.offset);
        return spread(axis, from, from + static_cast<std::int64_t>(fact.file.length));
      }
    }
    return {};
  }
  if (axis.axis == Axis::Buffer) {
    if (fact.address == 0 || fact.graph->tensor(fact.access->tensor).source == Source::Disk)
      return {};
    for (const AxisSection& section : axis.sections) {
      const auto size = static_cast<std::uint64_t>(section.range.to - section.range.from);
      if (fact.address < section.origin || fact.address >= section.origin + size) continue;
      const auto from =
          section.range.from + static_cast<std::int64_t>(fact.address - section.origin);
      return spread(axis, from, from + static_cast<std::int64_t>(fact.span));
    }
    ADD_FAILURE() << "an address in no buffer";
    return {};
  }
  if (name_on(axis.axis, fact).empty()) return {};
  for (std::size_t i = 0; i < axis.rows.size(); ++i) {
    if (is_row(index, axis, i, fact)) {
      const auto row = axis.range.from + static_cast<std::int64_t>(i);
      return spread(axis, row, row + 1);
    }
  }
  return {};
}

bool contains(std::string text, std::string part) {
  for (auto* s : {&text, &part})
    for (char& c : *s) c = static_cast<char>(std::tolower(c));
  return text.contains(part);
}

bool op_passes(const TraceFilter& filter, const GraphTemplate& graph, std::uint32_t i) {
  const Op& op = graph.ops[i];
  if (!filter.layers.empty() && std::ranges::find(filter.layers, op.layer) == filter.layers.end())
    return false;
  if (filter.component && op_part(graph, op).component != *filter.component) return false;
  return contains(op_name(graph, op), filter.op) ||
         contains(graph.tensor(graph.node(op.last()).output).name, filter.op);
}

bool access_passes(const TraceFilter& filter, const GraphTemplate& graph, const Access& access) {
  const Tensor& root = graph.tensor(graph.root(access.tensor));
  return contains(root.name, filter.tensor) && (!filter.kind || root.kind == *filter.kind) &&
         (!filter.source || graph.tensor(access.tensor).source == *filter.source);
}

double overlap(double begin, double end, double from, double to) {
  return std::max(0.0, std::min(end, to) - std::max(begin, from)) / (end - begin);
}

// How much of an op of a step lies in [from, to) of an axis that says when.
double share_in(Axis axis, const Step& step, std::uint32_t op, std::int64_t from, std::int64_t to) {
  const auto f = static_cast<double>(from), t = static_cast<double>(to);
  if (axis == Axis::Step) return step.id.v >= from && step.id.v < to ? 1 : 0;
  if (axis == Axis::Token)
    return overlap(step.first_token, step.first_token + std::max(1U, step.n_tokens), f, t);
  const Ns end = std::max(step.end, Ns{step.begin.v + 1});
  if (step.begin.v >= from && end.v <= to) return 1;
  if (step.op_ends.empty())
    return overlap(static_cast<double>(step.begin.v), static_cast<double>(end.v), f, t);
  const std::int64_t b = op == 0 ? step.first_op.v : step.op_ends[op - 1].v, e = step.op_ends[op].v;
  if (b == e) return b >= from && b < to ? 1 : 0;
  return overlap(static_cast<double>(b), static_cast<double>(e), f, t);
}

bool divides(Axis axis) { return is_bytes(axis) || axis == Axis::Expert; }

// Whether what ops did is shared out among parts, and stretches of whole steps are
// summed up: the shares are then those of all steps of a stretch.
bool shares_over_steps(const RasterQuery& query) {
  const auto partly = [](Axis axis) { return axis == Axis::Time || axis == Axis::Token; };
  return query.value >= Value::Executions && (divides(query.x.axis) || divides(query.y.axis)) &&
         !partly(query.x.axis) && !partly(query.y.axis) && !query.filter.tokens &&
         !query.filter.time;
}

struct Naive {
  std::vector<double> cells;
  double total = 0;
};

// Everything that a step did, into the cells of a picture.
class NaivePicture {
 public:
  NaivePicture(const SessionIndex& index, const RasterQuery& query, const Raster& like)
      : index_(index), query_(query), like_(like), filter_(query.filter) {
    out_.cells.resize(std::size_t{like.x.pixels} * like.y.pixels);
  }

  void add_step(const SessionReader& reader, const Step& step) {
    if (step.graph.v == 0 || (filter_.phase && step.phase != *filter_.phase)) return;
    auto of = std::make_shared<OfStep>();
    of->step = step;
    of->graph = reader.graph(step.graph).value();
    of->accesses = accesses_of(*of->graph);
    of->allocation = reader.allocation(step.allocation).value();
    for_each_access(*of->graph, of->accesses, step, [&](const StepAccess& row) {
      of->rows[&of->accesses[row.access]].push_back(row);
    });
    if (query_.value < Value::Executions) {
      add_accesses(*of);
    } else {
      add_ops(of);
    }
  }

  Naive take() {
    for (const auto& [key, stretch] : stretches_) {
      for (const auto& [op, sum] : stretch.ops) {
        const Access* main = main_access(*stretch.first->graph, stretch.first->accesses, op);
        add_shared(*stretch.first, op, main, sum.amount, sum.parts);
      }
    }
    return std::move(out_);
  }

 private:
  struct OfStep {
    Step step;
    std::shared_ptr<const GraphTemplate> graph;
    std::vector<Access> accesses;
    Allocation allocation;
    std::map<const Access*, std::vector<StepAccess>> rows;
  };
  // Parts of an access, and how often each was touched.
  using Parts = std::map<std::uint64_t, std::pair<StepAccess, double>>;
  // Steps of one graph that are summed up.
  struct Stretch {
    std::shared_ptr<OfStep> first;
    struct Sum {
      double amount = 0;
      Parts parts;
    };
    std::map<std::uint32_t, Sum> ops;
  };
  // What is the same in all of them; and their pixel, where steps are an axis.
  using StretchKey =
      std::tuple<TemplateId, AllocationId, Phase, std::size_t, std::optional<std::uint32_t>>;

  // Along an axis that says when, what a filter says about it cuts its pixels.
  void cut(Axis axis, std::int64_t& from, std::int64_t& to) const {
    const auto by = [&](const auto& stretch) {
      if (!stretch) return;
      from = std::max(from, static_cast<std::int64_t>(stretch->from));
      to = std::max(from, std::min(to, static_cast<std::int64_t>(stretch->to)));
    };
    if (axis == Axis::Step) by(filter_.steps);
    if (axis == Axis::Token) by(filter_.tokens);
    if (axis == Axis::Time) by(filter_.time);
  }

  Shares pixels(const RasterAxis& axis, const Fact& fact) const {
    if (!says_when(axis.axis)) return where(index_, axis, fact);
    Shares shares;
    const auto n = axis.range.to - axis.range.from;
    for (std::uint32_t p = 0; p < axis.pixels; ++p) {
      std::int64_t from = axis.range.from + n * p / axis.pixels;
      std::int64_t to = axis.range.from + n * (p + 1) / axis.pixels;
      cut(axis.axis, from, to);
      const double of = from < to ? share_in(axis.axis, *fact.step, fact.op, from, to) : 0;
      if (of > 0) shares[p] = of;
    }
    return shares;
  }

  void add(const Fact& fact, double amount) {
    double share = 1;
    for (const Axis axis : {Axis::Step, Axis::Token, Axis::Time}) {
      if (like_.x.axis == axis || like_.y.axis == axis) continue;
      std::int64_t from = INT64_MIN, to = INT64_MAX;
      cut(axis, from, to);
      if (from > INT64_MIN) share *= share_in(axis, *fact.step, fact.op, from, to);
    }
    const Shares xs = pixels(like_.x, fact), ys = pixels(like_.y, fact);
    double within = 1;
    for (const RasterAxis* axis : {&like_.x, &like_.y}) {
      if (!says_when(axis->axis)) continue;
      within = 0;
      for (const auto& [p, of] : axis == &like_.x ? xs : ys) within += of;
    }
    out_.total += amount * share * within;
    for (const auto& [x, of_x] : xs)
      for (const auto& [y, of_y] : ys)
        out_.cells[std::size_t{y} * like_.x.pixels + x] += amount * share * of_x * of_y;
  }

  static Fact fact_of(const OfStep& of, const Access* access, const StepAccess* row,
                      std::uint32_t op) {
    Fact fact{.graph = of.graph.get(), .step = &of.step, .op = op, .access = access, .file = {}};
    if (access == nullptr) return fact;
    fact.file = row != nullptr ? row->range : access->range;
    fact.address = of.allocation.addresses[access->tensor.v];
    fact.span = size_of(of.graph->tensor(access->tensor)).v;
    if (row == nullptr) return fact;
    fact.expert = row->expert;
    if (access->slot != kNoSlot && part_rule(*of.graph, *access).apart) {
      fact.address += number_of(*access, *row) * access->stride;
      fact.span = access->unit.v;
    }
    return fact;
  }
  static std::uint64_t number_of(const Access& access, const StepAccess& row) {
    return row.expert >= 0 ? static_cast<std::uint64_t>(row.expert)
                           : (row.range.offset - access.range.offset) / access.stride;
  }

  void add_accesses(const OfStep& of) {
    const bool reads = query_.value == Value::BytesRead || query_.value == Value::Reads;
    const bool writes = query_.value == Value::BytesWritten || query_.value == Value::Writes;
    for (const auto& [access, rows] : of.rows) {
      if (!op_passes(filter_, *of.graph, access->op.v) ||
          !access_passes(filter_, *of.graph, *access) || (reads && access->write) ||
          (writes && !access->write))
        continue;
      for (const StepAccess& row : rows) {
        add(fact_of(of, access, &row, row.op.v),
            query_.value <= Value::BytesWritten ? static_cast<double>(row.touched.v) : 1);
      }
    }
  }

  void add_ops(const std::shared_ptr<OfStep>& of) {
    const Step& step = of->step;
    const bool whole = step.op_ends.empty() && !step.aborted;
    const std::size_t ran = whole ? of->graph->ops.size() : step.op_ends.size();
    for (std::uint32_t op = 0; op < ran; ++op) {
      const Access* main = main_access(*of->graph, of->accesses, op);
      if (!op_passes(filter_, *of->graph, op)) continue;
      if (filter_.about_accesses() &&
          (main == nullptr || !access_passes(filter_, *of->graph, *main)))
        continue;
      const Ns begin = op == 0 ? step.first_op : step.op_ends.empty() ? Ns{} : step.op_ends[op - 1];
      const double amount = query_.value == Value::Executions ? 1
                            : step.op_ends.empty()
                                ? 0
                                : static_cast<double>((step.op_ends[op] - begin).v);
      Parts parts;
      if (main != nullptr && main->slot != kNoSlot && part_rule(*of->graph, *main).apart)
        for (const StepAccess& row : of->rows[main]) parts[number_of(*main, row)] = {row, 1};
      if (!shares_over_steps(query_)) {
        add_shared(*of, op, main, amount, parts);
        continue;
      }
      if (filter_.steps && !filter_.steps->holds(step.id.v)) continue;
      Stretch& stretch = stretches_[stretch_of(*of, ran)];
      if (stretch.first == nullptr) stretch.first = of;
      Stretch::Sum& sum = stretch.ops[op];
      sum.amount += amount;
      for (const auto& [number, part] : parts)
        sum.parts.try_emplace(number, part.first, 0).first->second.second += 1;
    }
  }

  StretchKey stretch_of(const OfStep& of, std::size_t ran) const {
    std::optional<std::uint32_t> pixel;
    for (const RasterAxis* axis : {&like_.x, &like_.y}) {
      if (axis->axis != Axis::Step) continue;
      pixel = kNone;  // out of range: on none
      for (const auto& [p, share] : pixels(*axis, fact_of(of, nullptr, nullptr, 0))) pixel = p;
    }
    return {of.step.graph, of.step.allocation, of.step.phase, ran, pixel};
  }

  // What an op did goes to its parts as often as they were touched; without any, to the
  // whole that it may have touched.
  void add_shared(const OfStep& of, std::uint32_t op, const Access* main, double amount,
                  const Parts& parts) {
    const bool of_ops = is_of_ops(query_.x.axis) && is_of_ops(query_.y.axis);
    if (of_ops || main == nullptr) return add(fact_of(of, nullptr, nullptr, op), amount);
    if (parts.empty()) return add(fact_of(of, main, nullptr, op), amount);
    double all = 0;
    for (const auto& [number, part] : parts) all += part.second;
    for (const auto& [number, part] : parts)
      add(fact_of(of, main, &part.first, op), amount * part.second / all);
  }

  const SessionIndex& index_;
  const RasterQuery& query_;
  const Raster& like_;
  const TraceFilter& filter_;
  Naive out_;
  std::map<StretchKey, Stretch> stretches_;
};

Naive naive(const SessionReader& reader, const SessionIndex& index, const RasterQuery& query,
            const Raster& like) {
  NaivePicture picture(index, query, like);
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    picture.add_step(reader, step);
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return picture.take();
}

}  // namespace

void expect_picture(const SessionReader& reader, const SessionIndex& index,
                    const RasterQuery& query) {
  SCOPED_TRACE(std::string(to_text(query.x.axis)) + " x " + to_text(query.y.axis) + ", " +
               to_text(query.value));
  const auto fast = raster(index, query);
  ASSERT_TRUE(fast.has_value()) << fast.error().message;
  ASSERT_LE(fast->x.pixels, query.x.pixels);
  ASSERT_LE(fast->y.pixels, query.y.pixels);
  const Naive slow = naive(reader, index, query, *fast);
  const double tolerance = 1e-9 * std::max(1.0, slow.total);
  EXPECT_NEAR(fast->total, slow.total, tolerance);
  ASSERT_EQ(fast->cells.size(), slow.cells.size());
  double shown = 0;
  for (std::size_t i = 0; i < slow.cells.size(); ++i) {
    ASSERT_NEAR(fast->cells[i], slow.cells[i], tolerance)
        << "cell " << i % fast->x.pixels << ", " << i / fast->x.pixels;
    shown += slow.cells[i];
  }
  EXPECT_NEAR(fast->shown, shown, tolerance);
}

RasterQuery random_picture(Dice& dice, const SessionIndex& index) {
  RasterQuery query;
  query.value = dice.word(Value::Time);
  query.x.axis = dice.word(Axis::All);
  do query.y.axis = dice.word(Axis::All);
  while (says_when(query.x.axis) && says_when(query.y.axis));
  // What ops did, shared out among parts: of single steps, or over stretches of whole ones.
  const bool shared =
      query.value >= Value::Executions && (divides(query.x.axis) || divides(query.y.axis));
  AxisQuery& other = divides(query.x.axis) ? query.y : query.x;
  const bool over_steps = shared && dice.one_in(2);
  if (shared && !over_steps) {
    other.axis = Axis::Step;
    other.pixels = 10000;
  }
  if (over_steps && (other.axis == Axis::Token || other.axis == Axis::Time))
    other.axis = Axis::Step;
  const auto& steps = index.steps();
  const auto last = 1000 + static_cast<std::uint64_t>(steps.back().end.v);
  for (AxisQuery* axis : {&query.x, &query.y}) {
    if (axis->pixels == 0) axis->pixels = 1 + static_cast<std::uint32_t>(dice.size(60));
    if (axis->pixels == 10000 || !dice.one_in(3)) continue;
    const std::int64_t most = axis->axis == Axis::Time ? steps.back().end.v
                              : is_bytes(axis->axis)   ? 20000
                                                       : 20;
    axis->range = {static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(most))),
                   static_cast<std::int64_t>(dice.below(static_cast<std::uint64_t>(most) * 2))};
  }
  if (dice.one_in(4)) query.filter.phase = dice.one_in(2) ? Phase::Prompt : Phase::Generate;
  if (dice.one_in(4)) query.filter.tokens = {dice.below(40), dice.below(120)};
  if (dice.one_in(5)) query.filter.steps = {dice.below(20), dice.below(80)};
  if (dice.one_in(5))
    query.filter.time = {static_cast<std::int64_t>(dice.below(last / 4)),
                         static_cast<std::int64_t>(dice.below(last))};
  if (dice.one_in(4)) query.filter.layers = {LayerId{0}, dice.one_in(2) ? kNoLayer : LayerId{1}};
  if (dice.one_in(6)) query.filter.component = Component::Attention;
  if (dice.one_in(6)) query.filter.op = dice.one_in(2) ? "mul_mat" : "cur";
  if (dice.one_in(6)) query.filter.tensor = dice.one_in(2) ? "BLK.0" : "cache";
  if (dice.one_in(8)) query.filter.source = Source::Disk;
  if (dice.one_in(8)) query.filter.kind = TensorKind::Weight;
  if (over_steps) query.filter.tokens = std::nullopt, query.filter.time = std::nullopt;
  return query;
}

// Of each row what a picture with that row alone has of it.
void expect_breakdown(const SessionReader& reader, const SessionIndex& index, Axis by,
                      const TraceFilter& filter) {
  SCOPED_TRACE(to_text(by));
  const auto found = breakdown(index, {.by = by, .filter = filter});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  struct Column {
    Value value;
    double TraceSums::* sum;
  };
  constexpr Column kColumns[] = {
      {Value::BytesRead, &TraceSums::bytes_read},  {Value::BytesWritten, &TraceSums::bytes_written},
      {Value::Reads, &TraceSums::reads},           {Value::Writes, &TraceSums::writes},
      {Value::Executions, &TraceSums::executions}, {Value::Time, &TraceSums::time_ns}};
  for (const auto& [value, sum] : kColumns) {
    // Of a stretch that begins or ends within steps these are shared out by themselves.
    if (by == Axis::Expert && value >= Value::Executions && (filter.tokens || filter.time))
      continue;
    for (const std::optional<Phase> phase :
         {std::optional<Phase>(), std::optional(Phase::Prompt), std::optional(Phase::Generate)}) {
      SCOPED_TRACE(std::string(to_text(value)) + (phase ? to_text(*phase) : ""));
      RasterQuery query{.x = {.axis = Axis::All, .pixels = 1},
                        .y = {.axis = by, .pixels = 1'000'000},
                        .value = value,
                        .filter = filter};
      if (phase) {
        if (filter.phase && filter.phase != phase) continue;
        query.filter.phase = phase;
      }
      const auto like = raster(index, query);
      ASSERT_TRUE(like.has_value());
      const Naive slow = naive(reader, index, query, *like);
      std::map<std::int64_t, double> left;  // by key
      for (std::size_t i = 0; i < slow.cells.size(); ++i)
        left[like->y.keys.empty() ? like->y.range.from + static_cast<std::int64_t>(i)
                                  : like->y.keys[i]] += slow.cells[i];
      const double tolerance = 1e-9 * std::max(1.0, slow.total);
      const auto of = [&](const BreakdownRow& row) {
        return (!phase ? row.all : *phase == Phase::Prompt ? row.prompt : row.generate).*sum;
      };
      for (const BreakdownRow& row : found->rows) {
        EXPECT_NEAR(of(row), left[row.key], tolerance) << row.name;
        left.erase(row.key);
      }
      for (const auto& [key, amount] : left) EXPECT_EQ(amount, 0) << "no row for " << key;
      EXPECT_NEAR(of(found->total), slow.total, tolerance);
    }
  }
}

void expect_hot_and_cold(const SessionIndex& index, const HotQuery& query) {
  const auto found = hot_cold(index, query);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  const auto whole = breakdown(index, {.by = query.by, .filter = query.filter});
  ASSERT_TRUE(whole.has_value());
  ASSERT_EQ(found->rows.size(), whole->rows.size());
  std::vector<double> amounts;
  for (const BreakdownRow& row : whole->rows) amounts.push_back(row.all.of(query.value));
  std::ranges::sort(amounts, std::greater());
  const std::size_t n = amounts.size();
  const auto hot = static_cast<std::size_t>(std::ceil(query.hot_share * static_cast<double>(n)));
  const auto cold = static_cast<std::size_t>(query.cold_share * static_cast<double>(n));
  std::map<Heat, std::pair<std::uint64_t, std::uint64_t>> classes;  // rows, bytes of tensors
  for (std::size_t i = 0; i < n; ++i) {
    const HotCold::Row& row = found->rows[i];
    EXPECT_EQ(row.row.all.of(query.value), amounts[i]) << row.row.name;
    EXPECT_EQ(row.heat, i < hot ? Heat::Hot : i >= n - cold ? Heat::Cold : Heat::Warm);
    if (query.by == Axis::Tensor) {
      EXPECT_EQ(row.size, index.names().tensors()[static_cast<std::size_t>(row.row.key)].size);
    }
    ++classes[row.heat].first;
    classes[row.heat].second += row.size.v;
  }
  for (const Heat heat : {Heat::Hot, Heat::Warm, Heat::Cold}) {
    const HotCold::Class& of = found->classes[static_cast<std::size_t>(heat)];
    EXPECT_EQ(of.rows, classes[heat].first);
    EXPECT_EQ(of.size.v, classes[heat].second);
  }
}

// Every read of a file, one after the other.
std::uint64_t expect_read_order(const SessionReader& reader, const SessionIndex& index,
                                const TraceFilter& filter, std::uint64_t gap) {
  ReadOrder total;
  std::map<std::int32_t, ReadOrder> layers;
  std::vector<Sequentiality::OfStep> steps;
  std::optional<FileRange> last;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0 || (filter.phase && step.phase != *filter.phase)) return true;
    const auto graph = reader.graph(step.graph).value();
    Sequentiality::OfStep row{step.id, step.first_token, step.n_tokens, {}};
    for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
      if (access.write || access.range.empty() || !op_passes(filter, *graph, access.op.v)) return;
      const std::uint64_t end = last ? last->offset + last->length : 0;
      const bool follows = last && last->file == access.range.file && access.range.offset >= end &&
                           access.range.offset <= end + gap;
      for (ReadOrder* order : {&total, &layers[graph->op(access.op).layer.v], &row.order}) {
        ++order->reads;
        order->bytes.v += access.range.length;
        order->sequential += follows;
        if (follows) order->sequential_bytes.v += access.range.length;
      }
      last = access.range;
    });
    if (row.order.reads > 0) steps.push_back(row);
    return true;
  });
  EXPECT_TRUE(read.has_value());
  const auto found = sequentiality(index, filter, gap, {.from = 0, .limit = 1000});
  EXPECT_TRUE(found.has_value());
  if (!found) return 0;
  EXPECT_EQ(found->total, total);
  EXPECT_EQ(found->steps.rows, steps);
  EXPECT_EQ(found->steps.total, steps.size());
  EXPECT_EQ(found->layers.size(), layers.size());
  for (const auto& [layer, order] : found->layers) EXPECT_EQ(order, layers[layer.v]) << layer.v;
  return total.reads;
}

}  // namespace tt::testing
