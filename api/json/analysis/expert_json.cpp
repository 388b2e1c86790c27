#include "api/json/analysis/expert_json.h"

#include <string>

namespace tt {

namespace {

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Json mean_json(double sum, std::uint64_t count) {
  return count == 0 ? Json() : Json(sum / static_cast<double>(count));
}

Json count_json(const RouterUse& use, const ExpertCount& count) {
  return {{"expert", count.expert},
          {"choices", count.choices},
          {"share", share_of(count.choices, use.choices)},
          {"first", count.first},
          {"mean_score", mean_json(count.score, count.scored)}};
}

Json hits_json(const CacheHits& hits) {
  Json layers, pool;
  for (std::size_t i = 0; i < kCachePolicies; ++i) {
    const char* policy = to_text(static_cast<CachePolicy>(i));
    layers[policy] = hits.layers[i];
    pool[policy] = hits.pool[i];
  }
  return {{"layers", std::move(layers)}, {"pool", std::move(pool)}};
}

Json experts_for_json(const RouterUse& use) {
  Json json;
  for (const std::uint32_t percent : kUsePercents)
    json[std::to_string(percent)] = use.experts_for(percent);
  return json;
}

Json router_json(const RouterUse& use) {
  Json used = Json::array();
  for (const ExpertCount& count : use.used) used.push_back(count_json(use, count));
  return {{"layer", use.layer == kNoLayer ? Json() : Json(use.layer.v)},
          {"router", use.router},
          {"experts", use.experts},
          {"per_token", use.per_token},
          {"tokens", use.tokens},
          {"choices", use.choices},
          {"entropy_bits", use.entropy()},
          {"gini", use.gini()},
          {"coverage", use.coverage()},
          {"experts_for_percent", experts_for_json(use)},
          {"followed", use.followed},
          {"turnover", use.followed == 0 ? Json() : Json(use.turnover())},
          {"used", std::move(used)}};
}

}  // namespace

Json to_json(const std::vector<RouterUse>& routers) {
  Json rows = Json::array();
  for (const RouterUse& use : routers) rows.push_back(router_json(use));
  Json all = Json::object();
  for (const std::uint32_t percent : kUsePercents) {
    if (routers.empty()) break;
    const ExpertsFor of = experts_for(routers, percent);
    all[std::to_string(percent)] = {{"least", of.least}, {"median", of.median}, {"most", of.most}};
  }
  return {{"routers", std::move(rows)}, {"experts_for_percent", std::move(all)}};
}

Json to_json(const RouterDetail& detail) {
  Json out = router_json(detail.use);
  for (std::size_t i = 0; i < detail.tokens.size(); ++i) {
    Json tokens = Json::array();
    for (const ExpertToken& token : detail.tokens[i]) {
      tokens.push_back({{"id", token.id},
                        {"text", token.text},
                        {"choices", token.choices},
                        {"times", token.times},
                        {"lift", token.lift},
                        {"lift_low", token.low},
                        {"lift_high", token.high}});
    }
    out["used"][i]["tokens"] = std::move(tokens);
  }
  Json pairs = Json::array();
  for (const ExpertPair& pair : detail.pairs) {
    pairs.push_back(
        {{"a", pair.a}, {"b", pair.b}, {"together", pair.together}, {"lift", pair.lift}});
  }
  out["pairs"] = std::move(pairs);
  return out;
}

Json to_json(const Page<TokenExperts>& tokens) {
  return page_json("tokens", tokens, [](const TokenExperts& row) {
    Json experts = Json::array();
    for (const TokenExpert& expert : row.experts) {
      experts.push_back(
          {{"expert", expert.expert}, {"routers", expert.routers}, {"score", expert.score}});
    }
    return Json{{"token", row.token.index},
                {"id", row.token.id},
                {"text", row.token.text},
                {"experts", std::move(experts)}};
  });
}

Json to_json(const ExpertPinning& pinning) {
  Json curve = Json::array();
  for (const PinPoint& point : pinning.curve) {
    curve.push_back({{"capacity_bytes", point.capacity.v},
                     {"slices", point.slices},
                     {"slots_per_layer", pinning.slots_per_layer(point.capacity)},
                     {"lru_saved", point.lru.v},
                     {"pinned_saved", point.pinned.v},
                     {"best_saved", point.best.v},
                     {"tried_lru_saved", point.tried_lru.v},
                     {"tried_pinned_saved", point.tried_pinned.v}});
  }
  Json slots = Json::array();
  for (const SlotSize& slot : pinning.slots) {
    slots.push_back({{"layer", slot.layer == kNoLayer ? Json() : Json(slot.layer.v)},
                     {"slot_bytes", slot.bytes.v}});
  }
  Json gain;
  if (const PinPoint* best = pinning.best_gain()) {
    gain = {{"capacity_bytes", best->capacity.v},
            {"share", share_of(best->tried_pinned.v - best->tried_lru.v, pinning.tried.v)}};
  }
  return {{"weight_bytes_read", pinning.weights_read.v},
          {"expert_bytes_read", pinning.read.v},
          {"expert_bytes_distinct", pinning.distinct.v},
          {"expert_bytes_tried", pinning.tried.v},
          {"reads", pinning.reads},
          {"slices", pinning.slices},
          {"slots", std::move(slots)},
          {"gain", std::move(gain)},
          {"curve", std::move(curve)}};
}

Json to_json(const ExpertCaches& caches) {
  Json rows = Json::array();
  for (const CacheRow& row : caches.rows) {
    rows.push_back({{"slots", row.slots},
                    {"recorded", hits_json(row.recorded)},
                    {"control", hits_json(row.control)}});
  }
  return {{"routers", caches.routers},
          {"experts", caches.experts},
          {"tokens", caches.tokens},
          {"counted_tokens", caches.counted_tokens},
          {"requests", caches.requests},
          {"counted", caches.counted},
          {"counted_control", caches.counted_control},
          {"rows", std::move(rows)}};
}

}  // namespace tt
