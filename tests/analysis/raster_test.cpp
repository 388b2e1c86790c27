// Rasters and breakdowns against a walk over every access of every step.
#include "analysis/raster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "analysis/breakdown.h"
#include "analysis/op_facts.h"
#include "analysis/sequentiality.h"
#include "analysis/tensor_table.h"
#include "tests/analysis/plausible_session.h"
#include "tests/analysis/small_session.h"
#include "tests/format/temp_folder.h"
#include "tracer/format/sqlite_handle.h"

namespace tt::test {
namespace {

struct Opened {
  tt::testing::TempFolder folder;
  std::unique_ptr<SessionReader> reader;
  std::unique_ptr<SessionIndex> index;
};

std::unique_ptr<Opened> opened(const RandomSession& session) {
  auto out = std::make_unique<Opened>();
  const auto file = out->folder / "s.ttrace";
  EXPECT_TRUE(tt::testing::write_session(file, session).has_value());
  out->reader = std::make_unique<SessionReader>(SessionReader::open(file).value());
  auto index = SessionIndex::build(*out->reader);
  EXPECT_TRUE(index.has_value());
  out->index = std::make_unique<SessionIndex>(*std::move(index));
  return out;
}

// ---------------------------------------------------------------------------
// The naive way: what each access, or op, of each step adds, and where.

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
  if (axis.axis == Axis::Op)
    return index.names().ops()[key].layer == fact.graph->ops[fact.op].layer;
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
  return text.find(part) != std::string::npos;
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

const Access* main_access(const GraphTemplate& graph, const std::vector<Access>& accesses,
                          std::uint32_t op) {
  const Access* best = nullptr;
  std::pair<int, std::uint64_t> best_weight;
  for (const Access& a : accesses) {
    if (a.op.v != op) continue;
    const Tensor& t = graph.tensor(a.tensor);
    const int rank = t.kind == TensorKind::Weight && !a.write ? 3
                     : t.kind == TensorKind::Kv               ? 2
                                                              : (a.write ? 0 : 1);
    const std::pair weight(rank, a.slot == kNoSlot ? a.unit.v : size_of(t).v);
    if (best == nullptr || weight > best_weight) best = &a, best_weight = weight;
  }
  return best;
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

struct Naive {
  std::vector<double> cells;
  double total = 0;
};

Naive naive(const SessionReader& reader, const SessionIndex& index, const RasterQuery& query,
            const Raster& like) {
  Naive out;
  out.cells.resize(std::size_t{like.x.pixels} * like.y.pixels);
  const TraceFilter& filter = query.filter;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0 || (filter.phase && step.phase != *filter.phase)) return true;
    const auto graph = reader.graph(step.graph).value();
    const auto accesses = accesses_of(*graph);
    Allocation allocation = reader.allocation(step.allocation).value();
    const bool whole = step.op_ends.empty() && !step.aborted;
    const std::size_t ran = whole ? graph->ops.size() : step.op_ends.size();

    const auto add = [&](const Fact& fact, double amount) {
      double share = 1;
      // Along an axis that says when, what a filter says about it cuts its pixels.
      const auto cut = [&](Axis axis, std::int64_t& from, std::int64_t& to) {
        const auto by = [&](const auto& stretch) {
          if (!stretch) return;
          from = std::max(from, static_cast<std::int64_t>(stretch->from));
          to = std::max(from, std::min(to, static_cast<std::int64_t>(stretch->to)));
        };
        if (axis == Axis::Step) by(filter.steps);
        if (axis == Axis::Token) by(filter.tokens);
        if (axis == Axis::Time) by(filter.time);
      };
      for (const Axis axis : {Axis::Step, Axis::Token, Axis::Time}) {
        if (like.x.axis == axis || like.y.axis == axis) continue;
        std::int64_t from = INT64_MIN, to = INT64_MAX;
        cut(axis, from, to);
        if (from > INT64_MIN) share *= share_in(axis, step, fact.op, from, to);
      }
      const auto pixels = [&](const RasterAxis& axis) {
        if (!says_when(axis.axis)) return where(index, axis, fact);
        Shares shares;
        const auto n = axis.range.to - axis.range.from;
        for (std::uint32_t p = 0; p < axis.pixels; ++p) {
          std::int64_t from = axis.range.from + n * p / axis.pixels;
          std::int64_t to = axis.range.from + n * (p + 1) / axis.pixels;
          cut(axis.axis, from, to);
          const double of = from < to ? share_in(axis.axis, step, fact.op, from, to) : 0;
          if (of > 0) shares[p] = of;
        }
        return shares;
      };
      const Shares xs = pixels(like.x), ys = pixels(like.y);
      double within = 1;
      for (const RasterAxis* axis : {&like.x, &like.y}) {
        if (!says_when(axis->axis)) continue;
        within = 0;
        for (const auto& [p, of] : axis == &like.x ? xs : ys) within += of;
      }
      out.total += amount * share * within;
      for (const auto& [x, of_x] : xs)
        for (const auto& [y, of_y] : ys)
          out.cells[std::size_t{y} * like.x.pixels + x] += amount * share * of_x * of_y;
    };
    const auto fact_of = [&](const Access* access, const StepAccess* row, std::uint32_t op) {
      Fact fact{.graph = graph.get(), .step = &step, .op = op, .access = access, .file = {}};
      if (access == nullptr) return fact;
      fact.file = row != nullptr ? row->range : access->range;
      fact.address = allocation.addresses[access->tensor.v];
      fact.span = size_of(graph->tensor(access->tensor)).v;
      if (row == nullptr) return fact;
      fact.expert = row->expert;
      if (access->slot != kNoSlot && part_rule(*graph, *access).apart) {
        const std::uint64_t number =
            row->expert >= 0 ? static_cast<std::uint64_t>(row->expert)
                             : (row->range.offset - access->range.offset) / access->stride;
        fact.address += number * access->stride;
        fact.span = access->unit.v;
      }
      return fact;
    };

    std::map<const Access*, std::vector<StepAccess>> rows;
    for_each_access(*graph, accesses, step, [&](const StepAccess& row) {
      const Access& access = accesses[row.access];
      rows[&access].push_back(row);
      if (query.value >= Value::Executions || !op_passes(filter, *graph, row.op.v) ||
          !access_passes(filter, *graph, access))
        return;
      const bool reads = query.value == Value::BytesRead || query.value == Value::Reads;
      const bool writes = query.value == Value::BytesWritten || query.value == Value::Writes;
      if ((reads && row.write) || (writes && !row.write)) return;
      add(fact_of(&access, &row, row.op.v),
          query.value <= Value::BytesWritten ? static_cast<double>(row.touched.v) : 1);
    });
    if (query.value < Value::Executions) return true;
    const bool of_ops = is_of_ops(query.x.axis) && is_of_ops(query.y.axis);
    for (std::uint32_t op = 0; op < ran; ++op) {
      const Access* main = main_access(*graph, accesses, op);
      if (!op_passes(filter, *graph, op)) continue;
      if (filter.about_accesses() && (main == nullptr || !access_passes(filter, *graph, *main)))
        continue;
      const Ns begin = op == 0 ? step.first_op : step.op_ends.empty() ? Ns{} : step.op_ends[op - 1];
      const double amount = query.value == Value::Executions ? 1
                            : step.op_ends.empty()
                                ? 0
                                : static_cast<double>((step.op_ends[op] - begin).v);
      const auto& parts = rows[main];
      if (of_ops || main == nullptr) {
        add(fact_of(nullptr, nullptr, op), amount);
      } else if (parts.empty() || main->slot == kNoSlot || !part_rule(*graph, *main).apart) {
        add(fact_of(main, nullptr, op), amount);
      } else {
        for (const StepAccess& part : parts)
          add(fact_of(main, &part, op), amount / static_cast<double>(parts.size()));
      }
    }
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return out;
}

void expect_same(const SessionReader& reader, const SessionIndex& index, const RasterQuery& query) {
  SCOPED_TRACE(std::string(to_text(query.x.axis)) + " x " + to_text(query.y.axis) + ", " +
               to_text(query.value));
  const auto fast = raster(index, reader, query);
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

// Any question about any session. Where an op, or its time, is shared out among the parts
// of an access, per step: over more steps the share is that of all of them.
RasterQuery random_query(Dice& dice, const SessionIndex& index) {
  RasterQuery query;
  query.value = dice.word(Value::Time);
  query.x.axis = dice.word(Axis::All);
  do query.y.axis = dice.word(Axis::All);
  while (says_when(query.x.axis) && says_when(query.y.axis));
  const auto divides = [](Axis axis) { return is_bytes(axis) || axis == Axis::Expert; };
  if (query.value >= Value::Executions && (divides(query.x.axis) || divides(query.y.axis))) {
    (divides(query.x.axis) ? query.y : query.x).axis = Axis::Step;
    (divides(query.x.axis) ? query.y : query.x).pixels = 10000;
  }
  const auto& steps = index.steps();
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
    query.filter.time = {static_cast<std::int64_t>(dice.below(5000)),
                         static_cast<std::int64_t>(dice.below(20000))};
  if (dice.one_in(4)) query.filter.layers = {LayerId{0}, dice.one_in(2) ? kNoLayer : LayerId{1}};
  if (dice.one_in(6)) query.filter.component = Component::Attention;
  if (dice.one_in(6)) query.filter.op = dice.one_in(2) ? "mul_mat" : "cur";
  if (dice.one_in(6)) query.filter.tensor = dice.one_in(2) ? "BLK.0" : "cache";
  if (dice.one_in(8)) query.filter.source = Source::Disk;
  if (dice.one_in(8)) query.filter.kind = TensorKind::Weight;
  return query;
}

TEST(Raster, EveryPictureIsTheSumOfItsAccesses) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    Dice dice(seed + 1000);
    for (int i = 0; i < 25; ++i)
      expect_same(*session->reader, *session->index, random_query(dice, *session->index));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Raster, EveryTwoAxesOfADenseSession) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  const SessionReader reader = small.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  for (int x = 0; x <= static_cast<int>(Axis::All); ++x) {
    for (int y = 0; y <= static_cast<int>(Axis::All); ++y) {
      if (says_when(static_cast<Axis>(x)) && says_when(static_cast<Axis>(y))) continue;
      // Its steps lie at the same time.
      for (const Value value : {Value::Touched, Value::Accesses})
        expect_same(reader, *index,
                    {.x = {.axis = static_cast<Axis>(x), .pixels = 7},
                     .y = {.axis = static_cast<Axis>(y), .pixels = 5},
                     .value = value});
    }
  }
}

TEST(Raster, APromptIsSpreadEvenlyOverItsTokens) {
  const SmallSession small({small_step(0)});
  const SessionReader reader = small.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  const auto found = raster(*index, reader,
                            {.x = {.axis = Axis::Token, .pixels = 100},
                             .y = {.axis = Axis::Layer, .pixels = 100},
                             .value = Value::Time});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->x.pixels, 2U);
  EXPECT_EQ(found->y.rows, (std::vector<std::string>{"0", "1", "none"}));
  EXPECT_EQ(found->cells, (std::vector<double>{25, 25, 20, 20, 30, 30}));
  EXPECT_EQ(found->total, 150);
}

TEST(SessionIndex, GrowsWithItsSession) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    RandomSession whole = plausible_session(seed, 50);
    const tt::testing::TempFolder folder;
    auto writer = SessionWriter::create(folder / "s.ttrace", whole.info);
    ASSERT_TRUE(writer.has_value());
    RandomSession part = whole;
    part.steps.resize(21);
    ASSERT_TRUE(tt::testing::add_all(**writer, part).has_value());
    const auto reader = SessionReader::open(folder / "s.ttrace");
    ASSERT_TRUE(reader.has_value());
    auto index = SessionIndex::build(*reader);
    ASSERT_TRUE(index.has_value());
    EXPECT_EQ(index->steps().size(), 21U);
    for (std::size_t i = 21; i < whole.steps.size(); ++i)
      ASSERT_TRUE((*writer)->add_step(whole.steps[i]).has_value());
    ASSERT_TRUE((*writer)->commit().has_value());
    ASSERT_TRUE(index->extend(*reader).has_value());
    EXPECT_EQ(index->steps().size(), 50U);
    Dice dice(seed);
    for (int i = 0; i < 10; ++i) expect_same(*reader, *index, random_query(dice, *index));
  }
}

// Whatever a file holds: an answer, and the same number of accesses.
TEST(SessionIndex, TakesAnySession) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(tt::testing::random_session(seed));
    double accesses = 0;
    const auto read = session->reader->for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
      if (step.graph.v == 0) return true;
      const auto graph = session->reader->graph(step.graph).value();
      for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
        accesses += access.touched.v != 0 || access.expert >= 0;
      });
      return true;
    });
    ASSERT_TRUE(read.has_value());
    for (int x = 0; x <= static_cast<int>(Axis::All); ++x) {
      const auto found = raster(*session->index, *session->reader,
                                {.x = {.axis = static_cast<Axis>(x), .pixels = 40},
                                 .y = {.axis = Axis::Op, .pixels = 30},
                                 .value = Value::Accesses});
      ASSERT_TRUE(found.has_value());
    }
    const auto total = raster(*session->index, *session->reader,
                              {.x = {.axis = Axis::All, .pixels = 1},
                               .y = {.axis = Axis::All, .pixels = 1},
                               .value = Value::Accesses});
    ASSERT_TRUE(total.has_value());
    EXPECT_GE(total->total, accesses);
  }
}

TEST(SessionIndex, ADamagedStepIsLeftOutAndSaid) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  {
    auto db = Database::open(small.path, Database::Mode::ReadWrite);
    ASSERT_TRUE(db.has_value());
    ASSERT_TRUE(db->run("UPDATE tt_step SET crc = crc + 1 WHERE id = 1").has_value());
  }
  const SessionReader reader = small.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->damaged(), std::vector<StepId>{StepId{1}});
  const auto found = raster(*index, reader,
                            {.x = {.axis = Axis::Step, .pixels = 10},
                             .y = {.axis = Axis::All, .pixels = 1},
                             .value = Value::Time});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cells, (std::vector<double>{150, 0, 150}));
  EXPECT_EQ(found->damaged_steps, 1U);
}

TEST(SessionIndex, BuildingItCanBeCalledOff) {
  const SmallSession small({small_step(0), small_step(1), small_step(2)});
  const SessionReader reader = small.reader();
  int asked = 0;
  const auto index = SessionIndex::build(reader, [&] { return ++asked < 2; });
  ASSERT_FALSE(index.has_value());
  EXPECT_EQ(index.error().kind, TraceError::Kind::Cancelled);
}

TEST(SessionIndex, StepsKnowTheirTotals) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    const auto read = session->reader->for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
      const IndexedStep& known = session->index->steps()[step.id.v];
      AccessTotals totals;
      if (step.graph.v != 0) {
        const auto graph = session->reader->graph(step.graph).value();
        totals = totals_of(*graph, accesses_of(*graph), step);
      }
      EXPECT_EQ(known.totals.accesses, totals.accesses);
      EXPECT_EQ(known.totals.read, totals.read);
      EXPECT_EQ(known.totals.written, totals.written);
      return true;
    });
    ASSERT_TRUE(read.has_value());
    EXPECT_TRUE(session->index->damaged().empty());
  }
}

// Every row, value and phase against the picture of the same, which has its naive way above.
void expect_breakdown(const Opened& session, Axis by, const TraceFilter& filter) {
  SCOPED_TRACE(to_text(by));
  constexpr std::uint32_t kEvery = 1u << 16;
  const auto found = breakdown(*session.index, *session.reader, {.by = by, .filter = filter});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  std::map<std::string, const BreakdownRow*> rows;
  for (const BreakdownRow& row : found->rows) rows[row.name + "/" + std::to_string(row.key)] = &row;
  EXPECT_EQ(rows.size(), found->rows.size());
  const auto drawn = [&](Axis x, const TraceFilter& of, Value value) {
    auto picture = raster(*session.index, *session.reader,
                          {.x = {.axis = x, .pixels = kEvery},
                           .y = {.axis = Axis::Phase, .pixels = kEvery},
                           .value = value,
                           .filter = of});
    EXPECT_TRUE(picture.has_value());
    return *std::move(picture);
  };
  for (const Value value : {Value::BytesRead, Value::BytesWritten, Value::Reads, Value::Writes,
                            Value::Executions, Value::Time}) {
    SCOPED_TRACE(to_text(value));
    const Raster picture = drawn(by, filter, value);
    const double tolerance = 1e-9 * std::max(1.0, picture.total);
    double shown = 0;
    for (std::uint32_t x = 0; x < picture.x.pixels; ++x) {
      double all = 0, prompt = 0, generate = 0;
      for (std::uint32_t y = 0; y < picture.y.pixels; ++y) {
        const double cell = picture.cells[std::size_t{y} * picture.x.pixels + x];
        all += cell;
        if (picture.y.rows[y] == to_text(Phase::Prompt)) prompt += cell;
        if (picture.y.rows[y] == to_text(Phase::Generate)) generate += cell;
      }
      const bool named = !picture.x.rows.empty();
      const std::int64_t key = named ? picture.x.keys[x] : picture.x.range.from + x;
      const auto row =
          rows.find((named ? picture.x.rows[x] : std::to_string(key)) + "/" + std::to_string(key));
      if (row == rows.end()) {
        ASSERT_NEAR(all, 0, tolerance) << key;
        continue;
      }
      ASSERT_NEAR(row->second->all.of(value), all, tolerance) << key;
      ASSERT_NEAR(row->second->prompt.of(value), prompt, tolerance) << key;
      ASSERT_NEAR(row->second->generate.of(value), generate, tolerance) << key;
      shown += row->second->all.of(value);
    }
    EXPECT_NEAR(shown, picture.shown, tolerance);
    EXPECT_NEAR(found->total.all.of(value), drawn(Axis::All, filter, value).total, tolerance);
    TraceFilter mapped = filter;
    mapped.source = Source::Disk;
    const bool any = !filter.source || *filter.source == Source::Disk;
    EXPECT_NEAR(found->disk.of(value), any ? drawn(Axis::All, mapped, value).total : 0, tolerance);
  }
}

TEST(Breakdown, EveryRowIsThatOfThePicture) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    Dice dice(seed + 2000);
    for (int i = 0; i < 6; ++i) {
      Axis by = dice.word(Axis::All);
      while (by == Axis::Time || is_bytes(by)) by = dice.word(Axis::All);
      expect_breakdown(*session, by, random_query(dice, *session->index).filter);
    }
    expect_breakdown(*session, Axis::Token, {});
    if (::testing::Test::HasFailure()) return;
  }
}

// As only an invented file has it: no row of each, and no memory for them.
TEST(Breakdown, AStepOfTooManyTokensIsRefused) {
  Step step = small_step(0);
  step.n_tokens = 4'000'000'000;
  const SmallSession small({step});
  const SessionReader reader = small.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  EXPECT_FALSE(breakdown(*index, reader, {.by = Axis::Token}).has_value());
  EXPECT_EQ(breakdown(*index, reader, {.by = Axis::Step})->rows.size(), 1U);
}

TEST(Breakdown, RowsAddUpToTheTotalWhateverTheyAreGroupedBy) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    TraceSums total;
    for (const IndexedStep& step : session->index->steps()) {
      total.bytes_read += static_cast<double>(step.totals.read.v);
      total.bytes_written += static_cast<double>(step.totals.written.v);
      total.time_ns += static_cast<double>(step.op_ns);
    }
    for (const Axis by : {Axis::Step, Axis::Token, Axis::Layer, Axis::Component, Axis::OpKind,
                          Axis::Op, Axis::Phase, Axis::Tensor, Axis::Source, Axis::All}) {
      SCOPED_TRACE(to_text(by));
      const auto found = breakdown(*session->index, *session->reader, {.by = by});
      ASSERT_TRUE(found.has_value());
      TraceSums sum, prompt;
      for (const BreakdownRow& row : found->rows) {
        sum += row.all;
        prompt += row.prompt;
      }
      const double tolerance = 1e-9 * std::max(1.0, total.bytes());
      EXPECT_NEAR(sum.bytes_read, total.bytes_read, tolerance);
      EXPECT_NEAR(sum.bytes_written, total.bytes_written, tolerance);
      EXPECT_NEAR(sum.time_ns, total.time_ns, tolerance);
      EXPECT_NEAR(found->total.all.bytes(), total.bytes(), tolerance);
      EXPECT_NEAR(prompt.bytes(), found->total.prompt.bytes(), tolerance);
      EXPECT_NEAR(found->disk.bytes() + found->buffer.bytes(), total.bytes(), tolerance);
    }
  }
}

TEST(Breakdown, HotIsTheFirstTenthAndColdTheLastHalf) {
  const auto session = opened(plausible_session(3));
  const auto found = hot_cold(*session->index, *session->reader, {.value = Value::Touched});
  ASSERT_TRUE(found.has_value());
  const std::size_t n = found->rows.size();
  ASSERT_GT(n, 10U);
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) {
      EXPECT_LE(found->rows[i].row.all.bytes(), found->rows[i - 1].row.all.bytes());
    }
    EXPECT_EQ(found->rows[i].heat, i < (n + 9) / 10 ? Heat::Hot
                                   : i >= n - n / 2 ? Heat::Cold
                                                    : Heat::Warm);
  }
  for (const auto& of : found->classes) rows += of.rows;
  EXPECT_EQ(rows, n);
}

// Every read of a file, one after the other, without any of the code above.
TEST(Sequentiality, IsThatOfTheReadsOneAfterTheOther) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = opened(plausible_session(seed));
    const std::uint64_t gap = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 100 : kUsualGap;
    TraceFilter filter;
    if (seed % 4 == 1) filter.phase = Phase::Generate;
    if (seed % 5 == 1) filter.layers = {LayerId{0}};
    ReadOrder total;
    std::map<std::int32_t, ReadOrder> layers;
    std::vector<Sequentiality::OfStep> steps;
    std::optional<FileRange> last;
    const auto read = session->reader->for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
      if (step.graph.v == 0 || (filter.phase && step.phase != *filter.phase)) return true;
      const auto graph = session->reader->graph(step.graph).value();
      Sequentiality::OfStep row{step.id, step.first_token, step.n_tokens, {}};
      for_each_access(*graph, accesses_of(*graph), step, [&](const StepAccess& access) {
        if (access.write || access.range.empty() || !op_passes(filter, *graph, access.op.v)) return;
        const std::uint64_t end = last ? last->offset + last->length : 0;
        const bool follows = last && last->file == access.range.file &&
                             access.range.offset >= end && access.range.offset <= end + gap;
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
    ASSERT_TRUE(read.has_value());
    const auto found = sequentiality(*session->index, filter, gap, {.from = 0, .limit = 1000});
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->total, total);
    EXPECT_EQ(found->steps.rows, steps);
    EXPECT_EQ(found->steps.total, steps.size());
    ASSERT_EQ(found->layers.size(), layers.size());
    for (const auto& [layer, order] : found->layers) EXPECT_EQ(order, layers[layer.v]) << layer.v;
  }
}

}  // namespace
}  // namespace tt::test
