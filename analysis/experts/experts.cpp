#include "analysis/experts/experts.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <functional>
#include <limits>
#include <map>
#include <ranges>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/experts/router_choices.h"
#include "analysis/fields/page_fields.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

// The valid expert numbers of a choice, ascending and distinct.
std::vector<std::uint32_t> distinct_experts(const RouterChoice& choice) {
  std::vector<std::uint32_t> experts;
  for (const RoutingRow& row : choice.rows)
    if (row.expert < choice.experts) experts.push_back(row.expert);
  std::ranges::sort(experts);
  const auto repeated = std::ranges::unique(experts);
  experts.erase(repeated.begin(), repeated.end());
  return experts;
}

// Counts the choices of one router.
class RouterCounter {
 public:
  void add(const RouterChoice& choice) {
    use_.layer = choice.router.first;
    use_.router = choice.router.second;
    use_.experts = std::max(use_.experts, choice.experts);
    use_.per_token = std::max(use_.per_token, static_cast<std::uint32_t>(choice.rows.size()));
    ++use_.tokens;
    chosen_.clear();
    for (const RoutingRow& row : choice.rows) {
      if (row.expert >= choice.experts) continue;
      chosen_.push_back(row.expert);
      ++use_.choices;
      ExpertCount& count = counts_[row.expert];
      ++count.choices;
      count.first += row.rank == 0;
      if (std::isnan(row.score)) continue;
      count.score += row.score;
      ++count.scored;
    }
    blocks_.add(chosen_);
    std::vector<std::uint32_t> experts = distinct_experts(choice);
    if (choice.token != kNone && before_ != kNone && choice.token == before_ + 1) {
      use_.followed += experts.size();
      use_.turned += static_cast<std::uint64_t>(std::ranges::count_if(
          experts, [&](std::uint32_t e) { return !std::ranges::binary_search(last_, e); }));
    }
    before_ = choice.token;
    last_ = std::move(experts);
  }

  RouterUse use() const {
    RouterUse out = use_;
    for (const auto& [expert, count] : counts_) {
      out.used.push_back(count);
      out.used.back().expert = expert;
    }
    out.intervals = blocks_.intervals(use_.experts);
    return out;
  }

 private:
  RouterUse use_;
  std::map<std::uint32_t, ExpertCount> counts_;
  LoadBlocks blocks_;
  std::vector<std::uint32_t> chosen_;  // of the current token
  std::uint32_t before_ = kNone;       // the previous token
  std::vector<std::uint32_t> last_;    // its experts
};

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Pairs of one router's experts.
class PairCounter {
 public:
  void add(const RouterChoice& choice) {
    const std::vector<std::uint32_t> experts = distinct_experts(choice);
    if (experts.size() > kMaxTogether) return;
    for (std::size_t i = 0; i < experts.size(); ++i)
      for (std::size_t k = i + 1; k < experts.size(); ++k)
        ++together_[(std::uint64_t{experts[i]} << 32) | experts[k]];
  }

  std::vector<ExpertPair> pairs(const RouterUse& use, std::size_t limit) const {
    const auto choices = [&](std::uint32_t expert) {
      const auto at = std::ranges::lower_bound(use.used, expert, {}, &ExpertCount::expert);
      return static_cast<double>(at->choices);
    };
    std::vector<ExpertPair> out;
    for (const auto& [key, together] : together_) {
      const auto a = static_cast<std::uint32_t>(key >> 32), b = static_cast<std::uint32_t>(key);
      out.push_back({.a = a,
                     .b = b,
                     .together = together,
                     .lift = static_cast<double>(together) * static_cast<double>(use.tokens) /
                             (choices(a) * choices(b))});
    }
    std::ranges::sort(out, [](const ExpertPair& x, const ExpertPair& y) {
      return std::tuple(y.together, x.a, x.b) < std::tuple(x.together, y.a, y.b);
    });
    if (out.size() > limit) out.resize(limit);
    return out;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> together_;
};

// The interval that contains a probability with a confidence of 95 % after `hits` of `times`
// trials.
std::pair<double, double> wilson_interval(std::uint64_t hits, std::uint64_t times) {
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(times);
  const double p = static_cast<double>(hits) / n;
  const double middle = p + z * z / (2 * n);
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  return {std::max(0.0, (middle - half) / scale), std::min(1.0, (middle + half) / scale)};
}

// Tokens of the vocabulary that one router's experts were chosen for.
class TokenCounter {
 public:
  explicit TokenCounter(const std::vector<Token>& tokens) : tokens_(tokens) {}

  void add(const RouterChoice& choice) {
    if (choice.token >= tokens_.size()) return;
    const Token& token = tokens_[choice.token];
    texts_.try_emplace(token.id, token.text);
    ++times_[token.id];
    ++total_;
    for (const std::uint32_t expert : distinct_experts(choice)) {
      ++experts_[expert].total;
      ++experts_[expert].choices[token.id];
    }
  }

  std::vector<ExpertToken> tokens_of(std::uint32_t expert, std::size_t limit) const {
    const auto found = experts_.find(expert);
    if (found == experts_.end()) return {};
    const double share = ratio(found->second.total, total_);
    std::vector<ExpertToken> out;
    for (const auto& [id, choices] : found->second.choices) {
      const std::uint64_t times = times_.at(id);
      if (times < kLeastTokenTimes) continue;
      const double lift = ratio(choices, times) / share;
      if (lift <= 1) continue;
      const auto [low, high] = wilson_interval(choices, times);
      out.push_back({.id = id,
                     .text = texts_.at(id),
                     .choices = choices,
                     .times = times,
                     .lift = lift,
                     .low = low / share,
                     .high = high / share});
    }
    std::ranges::sort(out, [](const ExpertToken& a, const ExpertToken& b) {
      const auto score = [](const ExpertToken& t) {
        return static_cast<double>(t.choices) * std::log2(t.lift);
      };
      return std::pair(-score(a), a.id) < std::pair(-score(b), b.id);
    });
    if (out.size() > limit) out.resize(limit);
    return out;
  }

 private:
  struct OfExpert {
    std::uint64_t total = 0;
    std::map<std::int32_t, std::uint64_t> choices;  // by token id
  };
  const std::vector<Token>& tokens_;
  std::uint64_t total_ = 0;
  std::map<std::int32_t, std::uint64_t> times_;
  std::map<std::int32_t, std::string> texts_;
  std::map<std::uint32_t, OfExpert> experts_;
};

TraceError no_such_router(LayerId layer, std::uint32_t router, const SessionReader& reader,
                          const ContinueCheck& keep_going) {
  const auto routers = expert_use(reader, std::nullopt, keep_going);
  if (!routers) return routers.error();
  const std::string layers =
      join(*routers | std::views::filter([](const RouterUse& use) { return use.router == 0; }),
           [](const RouterUse& use) { return use.layer.v; });
  return {
      TraceError::Kind::NotFound,
      std::format("Layer {} has no router {} with recorded choices. {}", layer.v, router,
                  layers.empty() ? "No layer of this session has one: its model has no experts, "
                                   "or they were not recorded."
                                 : "Layers with recorded choices: " + layers + ".")};
}

}  // namespace

static std::vector<std::uint64_t> counts_of(const RouterUse& use) {
  return {std::from_range, use.used | std::views::transform(&ExpertCount::choices)};
}

double RouterUse::entropy() const { return load_entropy(counts_of(*this)); }
double RouterUse::gini() const { return load_gini(counts_of(*this), experts); }

std::uint32_t RouterUse::experts_for(std::uint32_t percent) const {
  std::vector<std::uint64_t> most;
  for (const ExpertCount& count : used) most.push_back(count.choices);
  std::ranges::sort(most, std::greater<>());
  std::uint32_t count = 0;
  std::uint64_t sum = 0;
  for (const std::uint64_t one : most) {
    if (100 * sum >= percent * choices) break;
    sum += one;
    ++count;
  }
  return count;
}

ExpertsFor experts_for(std::span<const RouterUse> routers, std::uint32_t percent) {
  std::vector<std::uint32_t> counts;
  for (const RouterUse& use : routers) counts.push_back(use.experts_for(percent));
  std::ranges::sort(counts);
  const std::size_t half = counts.size() / 2;
  return {.least = counts.front(),
          .most = counts.back(),
          .median = (counts[half] + counts[(counts.size() - 1) / 2]) / 2.0};
}

double RouterUse::coverage() const { return ratio(used.size(), experts); }
double RouterUse::turnover() const { return ratio(turned, followed); }

std::string RouterUse::most_used(std::size_t count) const {
  std::vector<ExpertCount> counts = used;
  std::ranges::stable_sort(counts, std::greater<>(), &ExpertCount::choices);
  return join(counts | std::views::take(count), [&](const ExpertCount& one) {
    return std::format("{} ({:.0f} %)", one.expert, 100 * ratio(one.choices, choices));
  });
}

std::expected<std::vector<RouterUse>, TraceError> expert_use(const SessionReader& reader,
                                                             std::optional<Phase> phase,
                                                             const ContinueCheck& keep_going) {
  std::map<RouterId, RouterCounter> counters;
  const auto walked = for_each_choice(reader, phase, keep_going, [&](const RouterChoice& choice) {
    counters[choice.router].add(choice);
  });
  if (!walked) return std::unexpected(walked.error());
  std::vector<RouterUse> out;
  out.reserve(counters.size());
  for (const auto& [router, counter] : counters) out.push_back(counter.use());
  return out;
}

std::expected<RouterDetail, TraceError> router_detail(const SessionReader& reader, LayerId layer,
                                                      std::uint32_t router,
                                                      std::optional<Phase> phase,
                                                      DetailLimits limits,
                                                      const ContinueCheck& keep_going) {
  const auto session = reader.tokens(0, std::numeric_limits<std::uint32_t>::max());
  if (!session) return std::unexpected(session.error());
  RouterCounter counter;
  PairCounter pairs;
  TokenCounter tokens(*session);
  const auto walked = for_each_choice(reader, phase, keep_going, [&](const RouterChoice& choice) {
    if (choice.router != RouterId{layer, router}) return;
    counter.add(choice);
    pairs.add(choice);
    tokens.add(choice);
  });
  if (!walked) return std::unexpected(walked.error());
  RouterDetail out{.use = counter.use(), .pairs = {}, .tokens = {}};
  if (out.use.tokens == 0)
    return std::unexpected(no_such_router(layer, router, reader, keep_going));
  out.pairs = pairs.pairs(out.use, limits.pairs);
  for (const ExpertCount& count : out.use.used)
    out.tokens.push_back(tokens.tokens_of(count.expert, limits.tokens));
  return out;
}

std::expected<Page<TokenExperts>, TraceError> token_experts(const SessionReader& reader,
                                                            std::optional<LayerId> layer,
                                                            PageRange range,
                                                            const ContinueCheck& keep_going) {
  const auto total = reader.token_count();
  if (!total) return std::unexpected(total.error());
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  auto tokens = reader.tokens(static_cast<std::uint32_t>(std::min(range.from, kMax)),
                              static_cast<std::uint32_t>(std::min(range.limit, kMax)));
  if (!tokens) return std::unexpected(tokens.error());
  std::vector<std::map<std::uint32_t, TokenExpert>> experts(tokens->size());
  const auto walked =
      for_each_choice(reader, std::nullopt, keep_going, [&](const RouterChoice& choice) {
        if (!range.contains(choice.token) || (layer && choice.router.first != *layer)) return;
        const std::uint64_t at = choice.token - range.from;
        if (at >= experts.size()) return;
        for (const RoutingRow& row : choice.rows) {
          if (row.expert >= choice.experts) continue;
          TokenExpert& expert = experts[at][row.expert];
          expert.expert = row.expert;
          ++expert.routers;
          if (!std::isnan(row.score)) expert.score += row.score;
        }
      });
  if (!walked) return std::unexpected(walked.error());
  Page<TokenExperts> page{.total = *total, .rows = {}};
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    TokenExperts row{.token = std::move((*tokens)[i]), .experts = {}};
    for (const auto& [number, expert] : experts[i]) row.experts.push_back(expert);
    page.rows.push_back(std::move(row));
  }
  return page;
}

namespace {

// One expert of a router.
struct ExpertRow {
  const RouterUse* router;
  const ExpertCount* count;
  const std::vector<ExpertToken>* tokens = nullptr;  // only in the detail of a router
};

Fields<ExpertRow> fields_of(const ExpertRow*) {
  return Fields<ExpertRow>("ExpertCount")
      .add("expert", "", [](const ExpertRow& row) { return row.count->expert; })
      .add("choices", "number of tokens that the expert was chosen for",
           [](const ExpertRow& row) { return row.count->choices; })
      .add("share", "share of the choices of its router",
           [](const ExpertRow& row) {
             return row.router->choices == 0 ? 0.0
                                             : static_cast<double>(row.count->choices) /
                                                   static_cast<double>(row.router->choices);
           })
      .add("first", "number of times that the expert was the first choice",
           [](const ExpertRow& row) { return row.count->first; })
      .add("mean_score", "mean routing weight",
           [](const ExpertRow& row) -> std::optional<double> {
             if (row.count->scored == 0) return std::nullopt;
             return row.count->score / static_cast<double>(row.count->scored);
           },
           {.null = "not recorded"})
      .add_optional(
          "tokens",
          "only in the detail of a layer: tokens that the expert is chosen for more often than "
          "average, most significant first",
          [](const ExpertRow& row) {
            return row.tokens == nullptr ? std::nullopt : std::optional(*row.tokens);
          });
}

std::vector<ExpertRow> expert_rows(const RouterUse& use) {
  std::vector<ExpertRow> rows;
  for (const ExpertCount& count : use.used) rows.push_back({.router = &use, .count = &count});
  return rows;
}

std::vector<ExpertRow> detailed_rows(const RouterDetail& detail) {
  std::vector<ExpertRow> rows = expert_rows(detail.use);
  for (std::size_t i = 0; i < detail.tokens.size(); ++i) rows[i].tokens = &detail.tokens[i];
  return rows;
}

std::map<std::string, std::uint32_t> experts_by_percent(const RouterUse& use) {
  std::map<std::string, std::uint32_t> by_percent;
  for (const std::uint32_t percent : kUsePercents)
    by_percent.emplace(std::to_string(percent), use.experts_for(percent));
  return by_percent;
}

// The fields of a router that is a part of `Of`.
template <class Of, class Use, class Rows>
Fields<Of> router_fields(const char* schema, Use use, Rows rows) {
  const auto of = [use](auto get) {
    return [=](const Of& whole) { return std::invoke(get, std::invoke(use, whole)); };
  };
  return Fields<Of>(schema)
      .add("layer", "", of(&RouterUse::layer))
      .add("router", "index of the router in its layer, from 0; few layers have two",
           of(&RouterUse::router))
      .add("experts", "number of experts to choose from", of(&RouterUse::experts))
      .add("per_token", "number of experts chosen per token", of(&RouterUse::per_token))
      .add("tokens", "number of routed tokens", of(&RouterUse::tokens))
      .add("choices", "number of choices: one for each expert chosen for a token",
           of(&RouterUse::choices))
      .add("entropy_bits",
           "entropy of the distribution of choices, in bits; 0: always the same expert, "
           "log2(experts): uniform",
           of(&RouterUse::entropy))
      .add("gini", "Gini coefficient of the choices per expert; 0: uniform", of(&RouterUse::gini))
      .add(
          "intervals",
          "intervals that contain the entropy and the Gini coefficient of text of this kind with a "
          "confidence of 95 % (docs/experts.md)",
          of(&RouterUse::intervals), {.null = "fewer than 5 tokens"})
      .add("coverage", "share of the experts that were chosen at least once",
           of(&RouterUse::coverage))
      .add("experts_for_percent",
           "how many of the most used experts have at least 90, 95 and 99 % of the choices",
           of(experts_by_percent), {.names = {"90", "95", "99"}})
      .add("followed",
           "number of choices for tokens whose preceding token in the session was also routed by "
           "this router",
           of(&RouterUse::followed))
      .add("turnover",
           "share of the choices counted in `followed` whose expert was not chosen for the "
           "preceding token",
           of([](const RouterUse& router) -> std::optional<double> {
             if (router.followed == 0) return std::nullopt;
             return router.turnover();
           }),
           {.null = "`followed` is 0"})
      .add("used", "experts chosen at least once, sorted by number", rows);
}

}  // namespace

static Fields<LoadInterval> fields_of(const LoadInterval*) {
  return Fields<LoadInterval>("LoadInterval")
      .add("low", "", &LoadInterval::low)
      .add("high", "", &LoadInterval::high);
}

static Fields<LoadIntervals> fields_of(const LoadIntervals*) {
  return Fields<LoadIntervals>("LoadIntervals")
      .add("entropy_bits", "", &LoadIntervals::entropy)
      .add("gini", "", &LoadIntervals::gini);
}

static Fields<ExpertsFor> fields_of(const ExpertsFor*) {
  return Fields<ExpertsFor>()
      .add("least", "", &ExpertsFor::least)
      .add("median", "", &ExpertsFor::median)
      .add("most", "", &ExpertsFor::most);
}

static Fields<ExpertToken> fields_of(const ExpertToken*) {
  return Fields<ExpertToken>()
      .add("id", "", &ExpertToken::id)
      .add("text", "", &ExpertToken::text)
      .add("choices", "number of times that the expert was chosen for this token",
           &ExpertToken::choices)
      .add("times", "number of times that this token was routed", &ExpertToken::times)
      .add("lift",
           "how often the expert is chosen for this token (choices / times), divided by how "
           "often it is chosen for any token. Above 1: the expert prefers this token. Only "
           "tokens that were routed at least 5 times are listed",
           &ExpertToken::lift)
      .add("lift_low",
           "lower limit of the interval that contains the lift with a confidence of 95 %",
           &ExpertToken::low)
      .add("lift_high", "upper limit of this interval", &ExpertToken::high);
}

static Fields<RouterUse> fields_of(const RouterUse*) {
  return router_fields<RouterUse>("Router", std::identity(), expert_rows);
}

static Fields<ExpertPair> fields_of(const ExpertPair*) {
  return Fields<ExpertPair>()
      .add("a", "", &ExpertPair::a)
      .add("b", "", &ExpertPair::b)
      .add("together", "number of tokens", &ExpertPair::together)
      .add("lift", "observed frequency divided by the frequency expected for independent choices",
           &ExpertPair::lift);
}

static Fields<TokenExpert> fields_of(const TokenExpert*) {
  return Fields<TokenExpert>()
      .add("expert", "", &TokenExpert::expert)
      .add("routers", "number of routers that chose it", &TokenExpert::routers)
      .add("score", "sum of the routing weights", &TokenExpert::score);
}

static Fields<TokenExperts> fields_of(const TokenExperts*) {
  return Fields<TokenExperts>("TokenExperts")
      .add("token", "index of the token in the session",
           [](const TokenExperts& row) { return row.token.index; })
      .add("id", "", [](const TokenExperts& row) { return row.token.id; })
      .add("text", "", [](const TokenExperts& row) { return row.token.text; })
      .add("experts", "", &TokenExperts::experts);
}

Fields<std::vector<RouterUse>> fields_of(const std::vector<RouterUse>*) {
  using Routers = std::vector<RouterUse>;
  return Fields<Routers>("Routers")
      .add("routers", "one row per router, sorted by layer; empty for a model without experts",
           [](const Routers& routers) { return std::span(routers); })
      .add("experts_for_percent",
           "over the routers: how many of the most used experts have at least 90, 95 and 99 % "
           "of the choices; empty without routers",
           [](const Routers& routers) {
             std::map<std::string, ExpertsFor> all;
             for (const std::uint32_t percent : kUsePercents)
               if (!routers.empty())
                 all.emplace(std::to_string(percent), experts_for(routers, percent));
             return all;
           });
}

Fields<RouterDetail> fields_of(const RouterDetail*) {
  return router_fields<RouterDetail>("RouterDetail", &RouterDetail::use, detailed_rows)
      .add("pairs", "pairs of experts chosen for the same token, most frequent first",
           &RouterDetail::pairs);
}

Fields<Page<TokenExperts>> fields_of(const Page<TokenExperts>*) {
  return page_fields<TokenExperts>("ExpertTokens", "tokens");
}

std::string no_expert_choices(const SessionInfo& info) {
  return info.n_experts > 0
             ? "These steps have no expert choices. Choices are recorded at the levels detailed "
               "and verbose."
             : "This session has no expert choices: the model has no experts. Use a mixture of "
               "experts.";
}

}  // namespace tt
