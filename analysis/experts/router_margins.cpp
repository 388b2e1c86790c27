#include "analysis/experts/router_margins.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>

#include "analysis/common/median.h"
#include "analysis/common/no_such_part.h"
#include "analysis/common/session_layers.h"
#include "analysis/experts/router_choices.h"
#include "analysis/experts/routing.h"
#include "analysis/fields/page_fields.h"
#include "analysis/values/walk_values.h"
#include "tracer/format/model/captured_kinds.h"

namespace tt {

namespace {

// ExpertRows of one number per expert.
struct ExpertRows {
  const OutputValues* values = nullptr;
  std::uint64_t size() const { return values == nullptr ? 0 : values->ne[1]; }
  // Of the token that is `back` tokens before the last one: a rule may capture the last rows only.
  std::span<const float> from_end(std::uint64_t back) const {
    if (back >= size()) return {};
    const std::size_t width = values->ne[0];
    return std::span(values->values).subspan((size() - 1 - back) * width, width);
  }
};

bool is_rows(const OutputValues& values) {
  return values.ne[0] > 0 && values.ne[2] == 1 && values.ne[3] == 1;
}

// The op of a router that sorts the scores.
struct ScoreSort {
  OpId op;
  TensorId scores;
};

// `chosen`: the tensor of the slot, which is the result of the sort or a view of it.
std::optional<ScoreSort> sort_of(const GraphTemplate& graph, TensorId chosen) {
  for (std::uint32_t op = 0; op < graph.ops.size(); ++op) {
    const Node& node = graph.node(graph.ops[op].last());
    if (node.output != graph.root(chosen) || graph.ops[op].nodes != 1) continue;
    if (node.src.empty() || node.src.front() == kNoTensor) return std::nullopt;
    return ScoreSort{.op = OpId{op}, .scores = node.src.front()};
  }
  return std::nullopt;
}

// The scores are a source of the sort, or the output of the op before it.
ExpertRows scores_in(const GraphTemplate& graph, const StepValues& of, const ScoreSort& sort) {
  for (const OutputValues& values : of.outputs) {
    const bool is_source = values.op == sort.op && values.of == values_of_source(0);
    const bool is_output = values.of == ValuesOf::Output &&
                           graph.node(graph.op(values.op).last()).output == sort.scores;
    if ((is_source || is_output) && is_rows(values)) return {&values};
  }
  return {};
}

// The last ones before the sort. Their names are llama.cpp's.
ExpertRows probabilities_in(const GraphTemplate& graph, const StepValues& of, const ScoreSort& sort,
                            LayerId layer) {
  ExpertRows found;
  for (const OutputValues& values : of.outputs) {
    const std::string& name = graph.tensor(graph.node(graph.op(values.op).last()).output).name;
    if (values.of == ValuesOf::Output && values.op < sort.op &&
        graph.op(values.op).layer == layer && name.starts_with("ffn_moe_probs-") && is_rows(values))
      found = {&values};
  }
  return found;
}

// What one router did with one token.
struct Routed {
  RouterId router;
  std::uint32_t token = 0;
  StepId step;
  std::string_view scores_name;
  std::span<const float> scores;
  std::span<const float> probabilities;  // empty: unknown
  std::span<const std::int64_t> chosen;  // by rank; all are experts with a score
};

// Routers whose values are no probabilities, but logits, give them the same name.
std::span<const float> if_probabilities(std::span<const float> values, std::size_t experts) {
  const bool are = values.size() == experts && std::ranges::all_of(values, [](float value) {
                     return value >= 0 && value <= 1;
                   });
  return are ? values : std::span<const float>();
}

// Calls `visit(routed)` for the tokens of each captured router of a step.
template <class Visit>
void visit_routers(const GraphTemplate& graph, const Step& step, const StepValues& of,
                   Visit visit) {
  if (step.slots.size() != graph.slots.size()) return;
  std::map<LayerId, std::uint32_t> routers;
  for (std::size_t i = 0; i < graph.slots.size(); ++i) {
    const Slot& slot = graph.slots[i];
    if (slot.kind != SlotKind::Experts) continue;
    const RouterId router{slot.layer, routers[slot.layer]++};
    const auto sort = sort_of(graph, slot.tensor);
    if (!sort) continue;
    const ExpertRows scores = scores_in(graph, of, *sort);
    const ExpertRows probabilities = probabilities_in(graph, of, *sort, slot.layer);
    const auto ranks =
        static_cast<std::size_t>(std::max<std::int64_t>(1, graph.tensor(slot.tensor).ne[0]));
    const std::span<const std::int64_t> choices = step.slots[i].ints;
    const std::vector<std::uint32_t> tokens = slot_tokens(graph, step, choices.size() / ranks);
    if (scores.size() > tokens.size()) continue;
    for (std::size_t entry = tokens.size() - scores.size(); entry < tokens.size(); ++entry) {
      const std::size_t back = tokens.size() - 1 - entry;
      const auto row = scores.from_end(back);
      const auto chosen = choices.subspan(entry * ranks, ranks);
      const bool known = tokens[entry] != kNone && std::ranges::all_of(chosen, [&](auto expert) {
                           return expert >= 0 && std::cmp_less(expert, row.size()) &&
                                  std::isfinite(row[static_cast<std::size_t>(expert)]);
                         });
      if (known)
        visit(Routed{.router = router,
                     .token = step.first_token + tokens[entry],
                     .step = step.id,
                     .scores_name = graph.tensor(sort->scores).name,
                     .scores = row,
                     .probabilities = if_probabilities(probabilities.from_end(back), row.size()),
                     .chosen = chosen});
    }
  }
}

template <class Visit>
std::expected<void, TraceError> walk_routers(const SessionReader& reader,
                                             const ContinueCheck& keep_going, Visit visit) {
  return walk_values(reader, keep_going,
                     [&](const GraphTemplate& graph, const Step& step, const StepValues& of) {
                       visit_routers(graph, step, of, visit);
                     });
}

// Those that could have been chosen, the largest score first; at most `count`. Experts of groups
// that were left out have no finite score.
std::vector<std::uint32_t> best_not_chosen(const Routed& routed, std::size_t count) {
  std::vector<std::uint32_t> others;
  for (std::uint32_t expert = 0; expert < routed.scores.size(); ++expert)
    if (std::isfinite(routed.scores[expert]) &&
        !std::ranges::contains(routed.chosen, std::int64_t{expert}))
      others.push_back(expert);
  const auto end = others.begin() + static_cast<std::ptrdiff_t>(std::min(count, others.size()));
  std::ranges::partial_sort(others, end, {}, [&](std::uint32_t expert) {
    return std::pair(-routed.scores[expert], expert);
  });
  others.erase(end, others.end());
  return others;
}

std::optional<double> margin_of(const Routed& routed, std::span<const std::uint32_t> others) {
  if (others.empty() || routed.chosen.empty()) return std::nullopt;
  const auto score = [&](std::int64_t expert) {
    return double{routed.scores[static_cast<std::size_t>(expert)]};
  };
  return std::ranges::min(routed.chosen | std::views::transform(score)) - score(others.front());
}

// Of the probabilities divided by their sum: those of a sigmoid add up to something else.
std::optional<double> probability_entropy(std::span<const float> probabilities) {
  double sum = 0, entropy = 0;
  for (const float p : probabilities) sum += double{p};
  if (!(sum > 0)) return std::nullopt;
  for (const float p : probabilities)
    if (p > 0) entropy -= double{p} / sum * std::log2(double{p} / sum);
  return entropy;
}

ScoredExpert scored(const Routed& routed, std::uint32_t expert) {
  ScoredExpert of{.expert = expert, .score = double{routed.scores[expert]}, .probability = {}};
  if (!routed.probabilities.empty()) of.probability = double{routed.probabilities[expert]};
  return of;
}

// Whether the session has the layer and the token that the query names.
std::expected<void, TraceError> check_margin_query(const SessionReader& reader,
                                                   const TokenMarginQuery& query) {
  if (query.layer)
    if (auto there = validate_layers(reader, LayerSet::one(*query.layer)); !there) return there;
  const auto tokens = reader.token_count();
  if (!tokens) return std::unexpected(tokens.error());
  if (query.token && *query.token >= *tokens)
    return std::unexpected(no_such_part("session", "token", *query.token, *tokens));
  return {};
}

std::optional<double> median_margin(std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return median_of_sorted(values);
}

struct MarginSums {
  std::string scores;
  std::uint32_t experts = 0;
  std::uint64_t tokens = 0, near = 0, with_entropy = 0;
  double entropy = 0;
  std::vector<double> margins;
};

}  // namespace

std::expected<Page<TokenMargin>, TraceError> token_margins(const SessionReader& reader,
                                                           const TokenMarginQuery& query,
                                                           const ContinueCheck& keep_going) {
  if (auto there = check_margin_query(reader, query); !there) return std::unexpected(there.error());
  Page<TokenMargin> page;
  const auto walked = walk_routers(reader, keep_going, [&](const Routed& routed) {
    if ((query.layer && *query.layer != routed.router.first) ||
        (query.token && *query.token != routed.token) || !query.page.contains(page.total++))
      return;
    const auto others = best_not_chosen(routed, kNextExperts);
    TokenMargin& row =
        page.rows.emplace_back(TokenMargin{.layer = routed.router.first,
                                           .router = routed.router.second,
                                           .token = routed.token,
                                           .step = routed.step,
                                           .margin = margin_of(routed, others),
                                           .entropy = probability_entropy(routed.probabilities),
                                           .chosen = {}});
    for (const std::int64_t expert : routed.chosen)
      row.chosen.push_back(scored(routed, static_cast<std::uint32_t>(expert)));
    for (const std::uint32_t expert : others) row.next.push_back(scored(routed, expert));
  });
  if (!walked) return std::unexpected(walked.error());
  return page;
}

std::expected<RouterMarginTable, TraceError> router_margins(const SessionReader& reader,
                                                            double below,
                                                            const ContinueCheck& keep_going) {
  std::map<RouterId, MarginSums> routers;
  const auto walked = walk_routers(reader, keep_going, [&](const Routed& routed) {
    MarginSums& sums = routers[routed.router];
    if (sums.tokens++ == 0) {
      sums.scores = routed.scores_name;
      sums.experts = static_cast<std::uint32_t>(routed.scores.size());
    }
    if (const auto margin = margin_of(routed, best_not_chosen(routed, 1))) {
      sums.margins.push_back(*margin);
      sums.near += *margin < below ? 1U : 0U;
    }
    if (const auto entropy = probability_entropy(routed.probabilities)) {
      sums.entropy += *entropy;
      ++sums.with_entropy;
    }
  });
  if (!walked) return std::unexpected(walked.error());
  RouterMarginTable table{.below = below, .routers = {}};
  for (auto& [router, sums] : routers) {
    const auto ratio = [](double part, std::uint64_t of) {
      return of == 0 ? std::nullopt : std::optional(part / static_cast<double>(of));
    };
    table.routers.push_back({.layer = router.first,
                             .router = router.second,
                             .scores = sums.scores,
                             .experts = sums.experts,
                             .tokens = sums.tokens,
                             .margin = median_margin(sums.margins),
                             .near = ratio(static_cast<double>(sums.near), sums.margins.size()),
                             .entropy = ratio(sums.entropy, sums.with_entropy)});
  }
  return table;
}

namespace {
constexpr const char* kNoProbabilities = "not captured, or the router computes none";
constexpr const char* kNoOther = "all experts were chosen";
constexpr const char* kRouterMeaning = "index of the router in the layer";
}  // namespace

static Fields<ScoredExpert> fields_of(const ScoredExpert*) {
  return Fields<ScoredExpert>("ScoredExpert")
      .add("expert", "", &ScoredExpert::expert)
      .add("score", "the router chooses the experts with the largest scores", &ScoredExpert::score)
      .add("probability", "that the router computed (ffn_moe_probs)", &ScoredExpert::probability,
           {.null = kNoProbabilities});
}

static Fields<TokenMargin> fields_of(const TokenMargin*) {
  return Fields<TokenMargin>("TokenMargin")
      .add("layer", "", &TokenMargin::layer)
      .add("router", kRouterMeaning, &TokenMargin::router)
      .add("token", "index in the session", &TokenMargin::token)
      .add("step", "", &TokenMargin::step)
      .add("margin", "score of the last chosen expert minus that of the first one not chosen",
           &TokenMargin::margin, {.null = kNoOther})
      .add("entropy", "of the probabilities, divided by their sum, in bits", &TokenMargin::entropy,
           {.null = kNoProbabilities})
      .add("chosen", "the experts that were chosen, by rank", &TokenMargin::chosen)
      .add("next",
           "the best experts that were not chosen, at most 4, the largest score first. Without "
           "those of groups that the router left out",
           &TokenMargin::next);
}

Fields<Page<TokenMargin>> fields_of(const Page<TokenMargin>*) {
  return page_fields<TokenMargin>("TokenMargins");
}

static Fields<RouterMargins> fields_of(const RouterMargins*) {
  return Fields<RouterMargins>("RouterMargins")
      .add("layer", "", &RouterMargins::layer)
      .add("router", kRouterMeaning, &RouterMargins::router)
      .add("scores",
           "name of the tensor with the scores: ffn_moe_probs, probabilities; "
           "ffn_moe_probs_biased, with a bias that only the choice uses; else logits, or what "
           "the architecture chooses by",
           &RouterMargins::scores)
      .add("experts", "", &RouterMargins::experts)
      .add("tokens", "captured tokens, over which the other fields are", &RouterMargins::tokens)
      .add("margin",
           "median of the margins: score of the last chosen expert minus that of the first one "
           "not chosen",
           &RouterMargins::margin, {.null = kNoOther})
      .add("near", "share of the tokens with a margin below the parameter `below`",
           &RouterMargins::near, {.null = kNoOther})
      .add("entropy", "mean of the entropy of the probabilities of a token, in bits",
           &RouterMargins::entropy, {.null = kNoProbabilities});
}

Fields<RouterMarginTable> fields_of(const RouterMarginTable*) {
  return Fields<RouterMarginTable>("RouterMarginTable")
      .add("below", "a margin below this is near: the parameter `below`, divided by 100",
           &RouterMarginTable::below)
      .add("routers", "by layer", &RouterMarginTable::routers);
}

}  // namespace tt
