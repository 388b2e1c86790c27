#include "analysis/experts/expert_cache.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "analysis/common/cancel.h"
#include "analysis/common/split_mix.h"
#include "analysis/experts/router_choices.h"
#include "analysis/fields/fields.h"

namespace tt {

namespace {

constexpr std::size_t kNoRequest = std::numeric_limits<std::size_t>::max();

// The requests that one cache gets, as indices of the experts that occur (by router, then number).
struct Requests {
  std::vector<std::uint32_t> experts;
  std::size_t half = 0;  // the first request of the second half
  std::size_t distinct = 0;
};

// Per request, the next one of the same expert.
std::vector<std::size_t> next_requests(const Requests& requests) {
  std::vector<std::size_t> next(requests.experts.size()), at(requests.distinct, kNoRequest);
  for (std::size_t i = requests.experts.size(); i-- > 0;)
    next[i] = std::exchange(at[requests.experts[i]], i);
  return next;
}

// A cache that evicts the expert with the smallest key.
class Cache {
 public:
  Cache(std::size_t slots, std::size_t distinct) : slots_(slots), keys_(distinct) {}

  using Key = std::pair<std::uint64_t, std::uint64_t>;
  // Returns whether the expert was in the cache; it is afterwards, with this key.
  bool request(std::uint32_t expert, Key key) {
    auto& held = keys_[expert];
    const bool hit = held.has_value();
    if (hit) {
      order_.erase({*held, expert});
    } else if (order_.size() == slots_) {
      keys_[order_.begin()->second].reset();
      order_.erase(order_.begin());
    }
    held = key;
    order_.emplace(key, expert);
    return hit;
  }

 private:
  const std::size_t slots_;
  std::vector<std::optional<Key>> keys_;  // of the experts in the cache
  std::set<std::pair<Key, std::uint32_t>> order_;
};

// Stable: of experts with equal counts, the first ones.
std::vector<bool> most_requested(const Requests& requests, std::size_t slots) {
  std::vector<std::uint64_t> counts(requests.distinct);
  for (std::size_t i = 0; i < requests.half; ++i) ++counts[requests.experts[i]];
  std::vector<std::uint32_t> order;
  for (std::uint32_t expert = 0; expert < requests.distinct; ++expert)
    if (counts[expert] > 0) order.push_back(expert);
  std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t e) { return counts[e]; });
  std::vector<bool> held(requests.distinct);
  for (std::size_t i = 0; i < std::min(slots, order.size()); ++i) held[order[i]] = true;
  return held;
}

// Belady's optimum of the second half. It begins with the experts that are requested first, and of
// those in the cache and the requested one it drops the one whose next request is farthest away.
std::expected<std::uint64_t, TraceError> most_hits(const Requests& requests, std::size_t slots,
                                                   CancelCheck& cancel) {
  const std::vector<std::size_t> next = next_requests(requests);
  std::set<std::size_t> held;  // the next request of each expert in the cache
  const auto hold = [&](std::size_t request) {
    held.insert(request);
    if (held.size() > slots) held.erase(std::prev(held.end()));
  };
  std::vector<bool> seen(requests.distinct);
  for (std::size_t i = requests.half; i < requests.experts.size(); ++i) {
    if (!seen[requests.experts[i]]) hold(i);
    seen[requests.experts[i]] = true;
  }
  std::uint64_t hits = 0;
  for (std::size_t i = requests.half; i < requests.experts.size(); ++i) {
    if (!cancel.may_continue()) return std::unexpected(cancelled_error());
    hits += held.erase(i);
    if (next[i] != kNoRequest) hold(next[i]);
  }
  return hits;
}

std::expected<std::uint64_t, TraceError> hits_of(const Requests& requests, CachePolicy policy,
                                                 std::size_t slots, CancelCheck& cancel) {
  if (policy == CachePolicy::Belady) return most_hits(requests, slots, cancel);
  std::uint64_t hits = 0;
  if (policy == CachePolicy::Pinned) {
    const std::vector<bool> held = most_requested(requests, slots);
    for (std::size_t i = requests.half; i < requests.experts.size(); ++i) {
      if (!cancel.may_continue()) return std::unexpected(cancelled_error());
      hits += held[requests.experts[i]];
    }
    return hits;
  }
  std::vector<std::uint64_t> counts(requests.distinct);
  Cache cache(slots, requests.distinct);
  for (std::size_t i = 0; i < requests.experts.size(); ++i) {
    if (!cancel.may_continue()) return std::unexpected(cancelled_error());
    const std::uint32_t expert = requests.experts[i];
    const Cache::Key key =
        policy == CachePolicy::Lfu ? Cache::Key{++counts[expert], i} : Cache::Key{i, 0};
    hits += cache.request(expert, key) && i >= requests.half;
  }
  return hits;
}

// What the caches of all layouts get: per router, and in one pool.
struct AllRequests {
  std::vector<Requests> layers;
  Requests pool;
};

AllRequests requests_of(const ExpertChoices& choices) {
  AllRequests out;
  std::vector<std::map<std::uint32_t, std::uint32_t>> numbers(choices.routers.size());
  for (const auto& token : choices.tokens)
    for (const ExpertChoices::Choice& choice : token) numbers[choice.router][choice.expert] = 0;
  std::uint32_t all = 0;
  std::vector<std::uint32_t> first;
  for (auto& of_router : numbers) {
    first.push_back(all);
    for (auto& [expert, number] : of_router) number = all++;
  }
  out.layers.resize(choices.routers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) out.layers[i].distinct = numbers[i].size();
  out.pool.distinct = all;
  for (std::size_t i = 0; i < choices.tokens.size(); ++i) {
    if (i == choices.tokens.size() / 2) {
      for (Requests& of : out.layers) of.half = of.experts.size();
      out.pool.half = out.pool.experts.size();
    }
    for (const ExpertChoices::Choice& choice : choices.tokens[i]) {
      const std::uint32_t number = numbers[choice.router].at(choice.expert);
      out.layers[choice.router].experts.push_back(number - first[choice.router]);
      out.pool.experts.push_back(number);
    }
  }
  return out;
}

std::expected<CacheHits, TraceError> all_hits(const AllRequests& requests, std::size_t slots,
                                              CancelCheck& cancel) {
  CacheHits out;
  for (std::size_t i = 0; i < kCachePolicies; ++i) {
    const auto policy = static_cast<CachePolicy>(i);
    for (const Requests& of : requests.layers) {
      const auto hits = hits_of(of, policy, slots, cancel);
      if (!hits) return std::unexpected(hits.error());
      out.layers[i] += *hits;
    }
    const auto hits = hits_of(requests.pool, policy, slots * requests.layers.size(), cancel);
    if (!hits) return std::unexpected(hits.error());
    out.pool[i] = *hits;
  }
  return out;
}

std::vector<std::uint32_t> default_slots(std::uint32_t experts) {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t n = 1; n < experts && n <= kMaxExpertSlots; n *= 2) slots.push_back(n);
  return slots;
}

}  // namespace

const char* to_text(CachePolicy policy) {
  static constexpr std::array kNames = {"lru", "lfu", "pinned", "belady"};
  return kNames[std::to_underlying(policy)];
}

std::expected<ExpertChoices, TraceError> expert_choices(const SessionReader& reader,
                                                        std::optional<Phase> phase,
                                                        const ContinueCheck& keep_going) {
  struct Found {
    std::uint64_t place = 0;  // of the token: its first evaluation
    RouterId router;
    std::uint32_t expert = 0;
  };
  std::vector<Found> found;
  std::map<RouterId, std::uint32_t> routers;  // number of experts, then index
  std::map<std::uint32_t, std::uint64_t> places;
  const auto walked = for_each_choice(reader, phase, keep_going, [&](const RouterChoice& choice) {
    if (choice.token == kNone) return;
    const std::uint64_t place = places.try_emplace(choice.token, places.size()).first->second;
    std::uint32_t& experts = routers[choice.router];
    experts = std::max(experts, choice.experts);
    for (const RoutingRow& row : choice.rows) {
      if (row.expert < choice.experts)
        found.push_back({.place = place, .router = choice.router, .expert = row.expert});
    }
  });
  if (!walked) return std::unexpected(walked.error());
  ExpertChoices out;
  for (auto& [id, experts] : routers) {
    out.routers.push_back({.layer = id.first, .router = id.second, .experts = experts});
    experts = static_cast<std::uint32_t>(out.routers.size() - 1);
  }
  std::ranges::stable_sort(found, [](const Found& a, const Found& b) {
    return std::pair(a.place, a.router) < std::pair(b.place, b.router);
  });
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i == 0 || found[i].place != found[i - 1].place) out.tokens.emplace_back();
    const ExpertChoices::Choice choice{.router = routers.at(found[i].router),
                                       .expert = found[i].expert};
    if (!std::ranges::contains(out.tokens.back(), choice)) out.tokens.back().push_back(choice);
  }
  return out;
}

ExpertChoices shuffled(const ExpertChoices& choices) {
  ExpertChoices out = choices;
  SplitMix random(1);
  for (std::size_t i = out.tokens.size(); i-- > 1;)
    std::swap(out.tokens[i], out.tokens[random.next() % (i + 1)]);
  return out;
}

std::expected<ExpertCaches, TraceError> expert_caches(const ExpertChoices& choices,
                                                      std::span<const std::uint32_t> slots,
                                                      const ContinueCheck& keep_going) {
  ExpertCaches out;
  out.routers = static_cast<std::uint32_t>(choices.routers.size());
  for (const auto& router : choices.routers) out.experts = std::max(out.experts, router.experts);
  out.tokens = choices.tokens.size();
  out.counted_tokens = out.tokens - out.tokens / 2;
  if (choices.tokens.empty()) return out;
  const AllRequests recorded = requests_of(choices), control = requests_of(shuffled(choices));
  out.requests = recorded.pool.experts.size();
  out.counted = out.requests - recorded.pool.half;
  out.counted_control = out.requests - control.pool.half;
  const std::vector<std::uint32_t> usual = default_slots(out.experts);
  if (slots.empty()) slots = usual;
  CancelCheck cancel(keep_going);
  for (const std::uint32_t n : slots) {
    const auto of_recorded = all_hits(recorded, n, cancel);
    if (!of_recorded) return std::unexpected(of_recorded.error());
    const auto of_control = all_hits(control, n, cancel);
    if (!of_control) return std::unexpected(of_control.error());
    out.rows.push_back({.slots = n, .recorded = *of_recorded, .control = *of_control});
  }
  return out;
}

std::expected<ExpertCaches, TraceError> expert_caches(const SessionReader& reader,
                                                      std::optional<Phase> phase,
                                                      std::span<const std::uint32_t> slots,
                                                      const ContinueCheck& keep_going) {
  const auto choices = expert_choices(reader, phase, keep_going);
  if (!choices) return std::unexpected(choices.error());
  return expert_caches(*choices, slots, keep_going);
}

namespace {

std::map<CachePolicy, std::uint64_t> by_policy(
    const std::array<std::uint64_t, kCachePolicies>& hits) {
  std::map<CachePolicy, std::uint64_t> map;
  for (std::size_t i = 0; i < kCachePolicies; ++i)
    map.emplace(static_cast<CachePolicy>(i), hits[i]);
  return map;
}

}  // namespace

static Fields<CacheHits> fields_of(const CacheHits*) {
  const fields::Notes notes{.names = fields::list_of(columns::words_to("", CachePolicy::Belady))};
  return Fields<CacheHits>("CacheLayouts")
      .add(
          "layers",
          "requests served, by policy, with this number of slots in each layer. pinned: the "
          "experts requested most in the first half; belady: the most that any cache of this "
          "size can serve",
          [](const CacheHits& hits) { return by_policy(hits.layers); }, notes)
      .add(
          "pool", "with as many slots as all layers together in one pool",
          [](const CacheHits& hits) { return by_policy(hits.pool); }, notes);
}

static Fields<CacheRow> fields_of(const CacheRow*) {
  return Fields<CacheRow>()
      .add("slots", "slots per router", &CacheRow::slots)
      .add("recorded", "", &CacheRow::recorded)
      .add("control", "with the tokens in random order", &CacheRow::control);
}

Fields<ExpertCaches> fields_of(const ExpertCaches*) {
  return Fields<ExpertCaches>("ExpertCaches")
      .add("routers", "number of routers; 0: the session has no choices", &ExpertCaches::routers)
      .add("experts", "number of experts of a router; the most of all routers",
           &ExpertCaches::experts)
      .add("tokens", "", &ExpertCaches::tokens)
      .add("counted_tokens", "tokens of the second half", &ExpertCaches::counted_tokens)
      .add("requests", "experts chosen, summed over tokens and routers", &ExpertCaches::requests)
      .add("counted", "requests of the second half", &ExpertCaches::counted)
      .add("counted_control", "the same with the tokens in random order",
           &ExpertCaches::counted_control)
      .add("rows", "requests of the second half of the tokens that a cache served",
           &ExpertCaches::rows);
}

}  // namespace tt
