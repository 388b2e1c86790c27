#include "tests/analysis/accesses/access_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/accesses/access_table.h"
#include "analysis/accesses/matching_steps.h"
#include "analysis/common/op_info.h"
#include "tests/support/sessions/random_session.h"

namespace tt::test {
namespace {

// Properties shared by all rows of one access of a template.
struct Named {
  Tensor tensor;
  std::string kind, output;                          // of the op
  std::string lower_name, lower_kind, lower_output;  // as filters compare them
};

struct Row {
  AccessId place;
  Phase phase;
  StepAccess access;
  std::uint64_t address = 0;
  Ns begin;  // of the op
  std::optional<Ns> duration;
  std::shared_ptr<const Named> of;
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return text;
}

std::shared_ptr<const Named> tensor_and_op_names(const GraphTemplate& graph,
                                                 const StepAccess& access) {
  const Op& op = graph.ops[access.op.v];
  const auto of = std::make_shared<Named>();
  of->tensor = graph.tensor(access.tensor);
  of->kind = op_name(graph, op);
  of->output = graph.tensor(graph.node(op.last()).output).name;
  of->lower_name = lower(of->tensor.name);
  of->lower_kind = lower(of->kind);
  of->lower_output = lower(of->output);
  return of;
}

std::vector<Row> all_rows(const SessionReader& reader) {
  std::vector<Row> rows;
  std::map<std::pair<TemplateId, std::uint32_t>, std::shared_ptr<const Named>> known;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0) return true;
    const auto graph = reader.graph(step.graph).value();
    const auto accesses = accesses_of(*graph);
    const auto addresses = step.allocation.v == 0
                               ? std::vector<std::uint64_t>(graph->tensors.size())
                               : reader.allocation(step.allocation).value().addresses;
    std::map<std::uint32_t, std::uint32_t> parts;
    for_each_access(*graph, accesses, step, [&](const StepAccess& access) {
      std::uint64_t address =
          access.tensor.v < addresses.size() ? addresses[access.tensor.v] : std::uint64_t{0};
      if (address != 0 && access.expert >= 0) {
        address += static_cast<std::uint64_t>(access.expert) * accesses[access.access].stride;
      }
      const bool timed = access.op.v < step.op_ends.size();
      auto& of = known[{step.graph, access.access}];
      if (of == nullptr) of = tensor_and_op_names(*graph, access);
      rows.push_back(
          {.place = {.step = step.id, .access = access.access, .part = parts[access.access]++},
           .phase = step.phase,
           .access = access,
           .address = address,
           .begin = !timed             ? step.begin
                    : access.op.v == 0 ? step.first_op
                                       : step.op_ends[access.op.v - 1],
           .duration = std::nullopt,
           .of = of});
      if (timed) rows.back().duration = step.op_ends[access.op.v] - rows.back().begin;
    });
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return rows;
}

bool passes(const Row& row, const AccessQuery& query) {
  const TensorFilter& t = query.filter.tensor;
  const Named& of = *row.of;
  const std::string op = lower(query.filter.op_name);
  const auto fits = [](const auto& wanted, const auto& value) {
    return !wanted || *wanted == value;
  };
  return row.place.step >= query.first_step &&
         (!query.last_step || row.place.step <= *query.last_step) && fits(query.phase, row.phase) &&
         fits(query.filter.op, row.access.op) && fits(query.filter.write, row.access.write) &&
         fits(query.filter.expert, row.access.expert) && fits(t.kind, of.tensor.kind) &&
         fits(t.source, of.tensor.source) && t.layers.has(of.tensor.layer) &&
         fits(t.component, of.tensor.component) && of.lower_name.contains(lower(t.name)) &&
         (of.lower_kind.contains(op) || of.lower_output.contains(op));
}

// `rows` must be in time order.
void sort(std::vector<Row>& rows, Order<AccessSort> order) {
  if (order.by == AccessSort::ByTime) {
    if (order.descending) std::ranges::reverse(rows);
    return;
  }
  const auto by = [&](auto key) {
    std::ranges::stable_sort(rows, [&](const Row& a, const Row& b) {
      return order.descending ? key(b) < key(a) : key(a) < key(b);
    });
  };
  if (order.by == AccessSort::ByBytes) by([](const Row& r) { return r.access.touched.v; });
  if (order.by == AccessSort::ByTensor)
    by([](const Row& r) -> const std::string& { return r.of->tensor.name; });
  if (order.by == AccessSort::ByOffset) {
    by([](const Row& r) { return std::pair(r.access.range.file, r.access.range.offset); });
    std::ranges::stable_partition(rows, [](const Row& r) { return !r.access.range.empty(); });
    // Rows without a file range come last, in time order.
    const auto without_range =
        std::ranges::find_if(rows, [](const Row& r) { return r.access.range.empty(); });
    std::ranges::sort(without_range, rows.end(), {}, &Row::place);
  }
}

void expect_same(const AccessRow& row, const Row& expected) {
  EXPECT_EQ(row.place, expected.place);
  EXPECT_EQ(row.access.access, expected.access.access);
  EXPECT_EQ(row.access.op, expected.access.op);
  EXPECT_EQ(row.access.tensor, expected.access.tensor);
  EXPECT_EQ(row.access.write, expected.access.write);
  EXPECT_EQ(row.access.touched, expected.access.touched);
  EXPECT_EQ(row.access.range, expected.access.range);
  EXPECT_EQ(row.access.expert, expected.access.expert);
  EXPECT_EQ(row.access.rank, expected.access.rank);
  EXPECT_TRUE(row.access.score == expected.access.score || std::isnan(expected.access.score));
  EXPECT_EQ(row.address, expected.address);
  const Tensor& tensor = expected.of->tensor;
  EXPECT_EQ(row.tensor().name, tensor.name);
  EXPECT_EQ(row.tensor(), tensor);
  EXPECT_EQ(row.step->id, expected.place.step);
  EXPECT_EQ(row.step->phase, expected.phase);
  EXPECT_EQ(row.begin, expected.begin);
  EXPECT_EQ(row.duration, expected.duration);
}

constexpr Order<AccessSort> kOrders[] = {
    {AccessSort::ByTime, false},   {AccessSort::ByTime, true},    {AccessSort::ByBytes, false},
    {AccessSort::ByBytes, true},   {AccessSort::ByOffset, false}, {AccessSort::ByOffset, true},
    {AccessSort::ByTensor, false}, {AccessSort::ByTensor, true}};

// A query that matches the row `model`.
AccessQuery random_query(Dice& dice, const Row& model, std::uint32_t steps) {
  AccessQuery query;
  const Tensor& tensor = model.of->tensor;
  if (dice.one_in(4)) query.filter.tensor.kind = tensor.kind;
  if (dice.one_in(4)) query.filter.tensor.source = tensor.source;
  if (dice.one_in(4)) query.filter.tensor.layers = LayerSet::one(tensor.layer);
  if (dice.one_in(4)) query.filter.tensor.component = tensor.component;
  if (dice.one_in(4) && !tensor.name.empty()) {
    const std::size_t at = dice.below(tensor.name.size());
    query.filter.tensor.name = tensor.name.substr(at, 1 + dice.size(6));
    for (char& c : query.filter.tensor.name)
      c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  }
  if (dice.one_in(4)) query.filter.write = model.access.write;
  if (dice.one_in(5)) query.filter.op_name = dice.one_in(2) ? model.of->kind : model.of->output;
  if (dice.one_in(6)) query.filter.op = model.access.op;
  if (dice.one_in(4) && model.access.expert >= 0) query.filter.expert = model.access.expert;
  if (dice.one_in(4)) query.phase = model.phase;
  if (dice.one_in(3)) query.first_step = StepId{static_cast<std::uint32_t>(dice.below(steps))};
  if (dice.one_in(3)) query.last_step = StepId{static_cast<std::uint32_t>(dice.below(steps + 2))};
  return query;
}

// Reads all pages, with the index if not null.
std::uint64_t walk(const SessionReader& reader, const AccessQuery& query,
                   const std::vector<Row>& expected, std::size_t limit, const SessionIndex* index) {
  std::size_t at = 0;
  std::optional<AccessId> after;
  do {
    const auto page = access_page(reader, query, after, limit, never_cancel, [&] { return index; });
    if (!page) {
      ADD_FAILURE() << page.error().message;
      return at;
    }
    EXPECT_EQ(page->rows.size(), std::min(limit, expected.size() - at));
    for (const AccessRow& row : page->rows) {
      if (at == expected.size()) return at;
      expect_same(row, expected[at++]);
      if (::testing::Test::HasFailure()) return at;
    }
    EXPECT_EQ(page->next.has_value(), at < expected.size());
    after = page->next;
  } while (after && !::testing::Test::HasFailure());
  EXPECT_EQ(at, expected.size());
  return at;
}

// Reads a few rows after a random row: most steps are not needed for a page that is full early.
std::uint64_t expect_page_after(const SessionReader& reader, const AccessQuery& query,
                                const std::vector<Row>& expected, Dice& dice,
                                const SessionIndex& index) {
  if (expected.empty()) return 0;
  std::size_t at = dice.below(expected.size());
  const std::size_t limit = 1 + dice.size(20);
  const auto page =
      access_page(reader, query, expected[at++].place, limit, never_cancel, [&] { return &index; });
  if (!page) {
    ADD_FAILURE() << page.error().message;
    return 0;
  }
  EXPECT_EQ(page->rows.size(), std::min(limit, expected.size() - at));
  EXPECT_EQ(page->next.has_value(), expected.size() - at > limit);
  for (const AccessRow& row : page->rows) {
    if (at == expected.size()) break;
    expect_same(row, expected[at++]);
  }
  return page->rows.size();
}

// MatchingSteps must contain exactly the steps with matching rows.
void expect_steps(const SessionIndex& index, const AccessQuery& query,
                  const std::vector<Row>& passing) {
  const MatchingSteps matching(index, query.filter, query.phase);
  std::set<std::uint32_t> steps;
  for (const Row& row : passing) steps.insert(row.place.step.v);
  for (std::uint32_t i = 0; i <= index.steps().size(); ++i) {
    const auto behind = steps.lower_bound(i);
    EXPECT_EQ(matching.at_or_after(i), behind == steps.end() ? index.steps().size() : *behind);
    EXPECT_EQ(matching.before(i),
              behind == steps.begin() ? std::nullopt : std::optional(*std::prev(behind)));
  }
}

}  // namespace

std::uint64_t expect_accesses(const SessionReader& reader, std::uint64_t seed, int query_count) {
  Dice dice(seed);
  const auto index = SessionIndex::build(reader);
  if (!index) {
    ADD_FAILURE() << index.error().message;
    return 0;
  }
  const std::vector<Row> all = all_rows(reader);
  const std::uint32_t steps = reader.step_count().value();
  std::uint64_t compared = 0;
  for (int i = 0; i < query_count && !all.empty(); ++i) {
    AccessQuery query = random_query(dice, all[dice.below(all.size())], steps);
    AccessQuery anywhere = query;
    anywhere.first_step = StepId{0};
    anywhere.last_step.reset();
    std::vector<Row> passing;
    std::ranges::copy_if(all, std::back_inserter(passing),
                         [&](const Row& row) { return passes(row, anywhere); });
    expect_steps(*index, anywhere, passing);
    passing.clear();
    std::ranges::copy_if(all, std::back_inserter(passing),
                         [&](const Row& row) { return passes(row, query); });
    // Few pages, because each page walks the session.
    const std::size_t limit = 1 + passing.size() / (1 + dice.size(5)) + dice.size(2);
    for (const Order<AccessSort> order : kOrders) {
      SCOPED_TRACE(::testing::Message() << "query " << i << " by " << static_cast<int>(order.by)
                                        << (order.descending ? " down" : " up"));
      query.order = order;
      std::vector<Row> expected = passing;
      sort(expected, order);
      compared += walk(reader, query, expected, limit, dice.one_in(2) ? &*index : nullptr);
      for (int k = 0; k < 2; ++k)
        compared += expect_page_after(reader, query, expected, dice, *index);

      // The same query on one step, by row offset.
      const StepId step{static_cast<std::uint32_t>(dice.below(steps))};
      const PageRange range{.from = dice.size(8), .limit = dice.size(40)};
      AccessQuery of_step{.first_step = step, .last_step = step, .filter = query.filter};
      std::vector<Row> rows;
      std::ranges::copy_if(all, std::back_inserter(rows),
                           [&](const Row& row) { return passes(row, of_step); });
      sort(rows, order);
      const auto page = access_table(reader, step, query.filter, order, range);
      if (!page) {
        ADD_FAILURE() << page.error().message;
        return compared;
      }
      EXPECT_EQ(page->total, rows.size());
      std::size_t at = std::min<std::size_t>(range.from, rows.size());
      EXPECT_EQ(page->rows.size(), std::min<std::size_t>(range.limit, rows.size() - at));
      for (const AccessRow& row : page->rows) expect_same(row, rows[at++]);
      if (::testing::Test::HasFailure()) return compared;
    }
  }
  return compared;
}

}  // namespace tt::test
