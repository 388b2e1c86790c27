#include "analysis/report/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "analysis/common/op_info.h"
#include "analysis/tables/template_list.h"

namespace tt {

namespace {

constexpr std::array kAxes = {Axis::Phase, Axis::Component, Axis::Layer, Axis::OpKind,
                              Axis::Tensor};

// --- sums ---------------------------------------------------------------------

double difference(const ComparedRow& row, double TraceSums::* what) {
  const TraceSums none;
  return std::abs(row.left.value_or(none).*what - row.right.value_or(none).*what);
}

// Joins rows by name; rows with equal names are paired in order.
ComparedBy compare_by(Axis by, const Breakdown& left, const Breakdown& right) {
  ComparedBy joined{.by = by, .rows = {}};
  std::map<std::pair<std::string, int>, std::size_t> places;
  std::map<std::string, int> seen;
  for (const BreakdownRow& row : left.rows) {
    places[{row.name, seen[row.name]++}] = joined.rows.size();
    joined.rows.push_back({.name = row.name, .left = row.all, .right = std::nullopt});
  }
  seen.clear();
  for (const BreakdownRow& row : right.rows) {
    const auto place = places.find({row.name, seen[row.name]++});
    if (place != places.end()) {
      joined.rows[place->second].right = row.all;
    } else {
      joined.rows.push_back({.name = row.name, .left = std::nullopt, .right = row.all});
    }
  }
  std::ranges::stable_sort(joined.rows, [](const ComparedRow& a, const ComparedRow& b) {
    const auto key = [](const ComparedRow& row) {
      return std::pair(
          difference(row, &TraceSums::time_ns),
          difference(row, &TraceSums::bytes_read) + difference(row, &TraceSums::bytes_written));
    };
    return key(a) > key(b);
  });
  return joined;
}

// --- tokens -------------------------------------------------------------------

// Per token, its share of the duration of its step; none if no step evaluated it.
std::vector<std::optional<Ns>> times_of(const SessionIndex& index, std::uint32_t tokens) {
  std::vector<std::optional<Ns>> times(tokens);
  for (const IndexedStep& step : index.steps()) {
    for (std::uint32_t i = 0; i < step.n_tokens && step.first_token + i < tokens; ++i)
      times[step.first_token + i] = Ns{(step.end - step.begin).v / step.n_tokens};
  }
  return times;
}

std::expected<TokenAlignment, TraceError> align(const ComparedSession& left,
                                                const ComparedSession& right, PageRange range) {
  const auto left_tokens = left.reader.tokens(0, kNone);
  if (!left_tokens) return std::unexpected(left_tokens.error());
  const auto right_tokens = right.reader.tokens(0, kNone);
  if (!right_tokens) return std::unexpected(right_tokens.error());
  TokenAlignment aligned{.left = static_cast<std::uint32_t>(left_tokens->size()),
                         .right = static_cast<std::uint32_t>(right_tokens->size()),
                         .common = 0,
                         .rows = {}};
  const auto same = [](const Token& a, const Token& b) { return a.id == b.id && a.text == b.text; };
  const auto differ = std::ranges::mismatch(*left_tokens, *right_tokens, same);
  aligned.common = static_cast<std::uint32_t>(differ.in1 - left_tokens->begin());
  const auto left_times = times_of(left.index, aligned.left);
  const auto right_times = times_of(right.index, aligned.right);
  const std::uint32_t all = std::max(aligned.left, aligned.right);
  aligned.rows.total = all;
  for (std::uint64_t i = range.from; i < all && range.contains(i); ++i) {
    ComparedToken row{.index = static_cast<std::uint32_t>(i),
                      .left = {},
                      .right = {},
                      .left_ns = {},
                      .right_ns = {}};
    if (i < aligned.left) {
      row.left = (*left_tokens)[i];
      row.left_ns = left_times[i];
    }
    if (i < aligned.right) {
      row.right = (*right_tokens)[i];
      row.right_ns = right_times[i];
    }
    aligned.rows.rows.push_back(std::move(row));
  }
  return aligned;
}

// --- templates ----------------------------------------------------------------

struct Shape {
  TemplateRow row;
  std::string ops;  // kind and output name of every op
};

std::expected<std::vector<Shape>, TraceError> shapes_of(const SessionReader& reader,
                                                        const ContinueCheck& keep_going) {
  const auto rows = template_list(reader, keep_going);
  if (!rows) return std::unexpected(rows.error());
  std::vector<Shape> shapes;
  for (const TemplateRow& row : *rows) {
    const auto graph = reader.graph(row.id);
    if (!graph) return std::unexpected(graph.error());
    Shape shape{.row = row, .ops = {}};
    for (const Op& op : (*graph)->ops) {
      const Tensor& output = (*graph)->tensor((*graph)->node(op.last()).output);
      shape.ops += op_name(**graph, op) + '\t' + output.name + '\n';
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

// Each template has at most one partner: one with the same fingerprint, else the first
// unpaired one with the same ops.
std::vector<ComparedTemplate> pair_up(const std::vector<Shape>& left,
                                      const std::vector<Shape>& right) {
  std::vector<std::size_t> partner(left.size(), right.size());
  std::vector<bool> taken(right.size());
  const auto pair_where = [&](const auto& alike) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      for (std::size_t j = 0; j < right.size() && partner[i] == right.size(); ++j) {
        if (taken[j] || !alike(left[i], right[j])) continue;
        partner[i] = j;
        taken[j] = true;
      }
    }
  };
  pair_where([](const Shape& a, const Shape& b) { return a.row.fingerprint == b.row.fingerprint; });
  pair_where([](const Shape& a, const Shape& b) { return a.ops == b.ops; });

  std::vector<ComparedTemplate> pairs;
  const auto add = [&](const Shape* a, const Shape* b) {
    ComparedTemplate pair;
    if (a != nullptr) {
      pair.left = a->row.id;
      pair.left_steps = a->row.steps;
      pair.left_ops = a->row.ops;
    }
    if (b != nullptr) {
      pair.right = b->row.id;
      pair.right_steps = b->row.steps;
      pair.right_ops = b->row.ops;
    }
    pair.match = b == nullptr                               ? TemplateMatch::OnlyLeft
                 : a == nullptr                             ? TemplateMatch::OnlyRight
                 : a->row.fingerprint == b->row.fingerprint ? TemplateMatch::Identical
                                                            : TemplateMatch::SameOps;
    pairs.push_back(pair);
  };
  for (std::size_t i = 0; i < left.size(); ++i)
    add(&left[i], partner[i] < right.size() ? &right[partner[i]] : nullptr);
  for (std::size_t j = 0; j < right.size(); ++j)
    if (!taken[j]) add(nullptr, &right[j]);
  return pairs;
}

std::map<std::string, std::string> settings_of(const SessionInfo& info) {
  std::map<std::string, std::string> settings = {
      {"record.level", to_text(info.level)},
      {"record.timing", info.exact_timing ? "exact" : "fast"}};
  if (!info.model_files.empty()) settings["model.file"] = info.model_files.front().path;
  for (const auto& [name, value] : info.facts)
    if (!name.starts_with("result.") && !name.starts_with("trace.")) settings[name] = value;
  return settings;
}

std::vector<ComparedFact> differing_facts(const SessionInfo& left, const SessionInfo& right) {
  std::map<std::string, ComparedFact> facts;
  for (auto& [name, value] : settings_of(left)) facts[name].left = value;
  for (auto& [name, value] : settings_of(right)) facts[name].right = value;
  std::vector<ComparedFact> differing;
  for (auto& [name, fact] : facts) {
    if (fact.left == fact.right) continue;
    fact.name = name;
    differing.push_back(std::move(fact));
  }
  return differing;
}

}  // namespace

const char* to_text(TemplateMatch match) {
  constexpr std::array kWords = {"identical", "same_ops", "only_left", "only_right"};
  return kWords[std::to_underlying(match)];
}

std::expected<Comparison, TraceError> compare(const ComparedSession& left,
                                              const ComparedSession& right, PageRange tokens,
                                              const ContinueCheck& keep_going) {
  Comparison comparison;
  comparison.facts = differing_facts(left.index.info(), right.index.info());
  auto aligned = align(left, right, tokens);
  if (!aligned) return std::unexpected(aligned.error());
  comparison.tokens = *std::move(aligned);
  const auto left_shapes = shapes_of(left.reader, keep_going);
  if (!left_shapes) return std::unexpected(left_shapes.error());
  const auto right_shapes = shapes_of(right.reader, keep_going);
  if (!right_shapes) return std::unexpected(right_shapes.error());
  comparison.templates = pair_up(*left_shapes, *right_shapes);
  for (const Axis by : kAxes) {
    const BreakdownQuery query{.by = by};
    const auto left_sums = breakdown(left.index, query, keep_going);
    if (!left_sums) return std::unexpected(left_sums.error());
    const auto right_sums = breakdown(right.index, query, keep_going);
    if (!right_sums) return std::unexpected(right_sums.error());
    comparison.left = left_sums->total.all;
    comparison.right = right_sums->total.all;
    comparison.by.push_back(compare_by(by, *left_sums, *right_sums));
  }
  return comparison;
}

}  // namespace tt
