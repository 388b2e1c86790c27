#include "analysis/experts/experts.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/experts/router_choices.h"
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
    for (const RoutingRow& row : choice.rows) {
      if (row.expert >= choice.experts) continue;
      ++use_.choices;
      ExpertCount& count = counts_[row.expert];
      ++count.choices;
      count.first += row.rank == 0;
      if (std::isnan(row.score)) continue;
      count.score += row.score;
      ++count.scored;
    }
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
    return out;
  }

 private:
  RouterUse use_;
  std::map<std::uint32_t, ExpertCount> counts_;
  std::uint32_t before_ = kNone;     // the previous token
  std::vector<std::uint32_t> last_;  // its experts
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

double RouterUse::entropy() const {
  double bits = 0;
  for (const ExpertCount& count : used) {
    const double share = ratio(count.choices, choices);
    bits -= share * std::log2(share);
  }
  return std::max(bits, 0.0);
}

double RouterUse::gini() const {
  if (choices == 0 || experts == 0) return 0;
  // Sorted ascending, unused experts first: sum of (2 * place - n - 1) * choices / (n * sum).
  std::vector<std::uint64_t> sorted;
  sorted.reserve(used.size());
  for (const ExpertCount& count : used) sorted.push_back(count.choices);
  std::ranges::sort(sorted);
  const double n = experts;
  double sum = 0;
  double place = n - static_cast<double>(sorted.size());
  for (const std::uint64_t count : sorted) {
    place += 1;
    sum += (2 * place - n - 1) * static_cast<double>(count);
  }
  return sum / (n * static_cast<double>(choices));
}

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

}  // namespace tt
