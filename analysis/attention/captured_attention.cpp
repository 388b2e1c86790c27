#include "analysis/attention/captured_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/common/format_units.h"
#include "analysis/common/no_such_part.h"
#include "analysis/common/rebuilt.h"
#include "analysis/common/session_layers.h"
#include "analysis/common/walk_steps.h"
#include "analysis/fields/page_fields.h"

namespace tt {

namespace {

constexpr std::uint32_t kNoToken = UINT32_MAX;

// The weights of one head for one token, by key.
struct Row {
  LayerId layer;
  std::uint32_t head = 0, token = 0;
  std::span<const float> weights;
  std::span<const std::uint32_t> tokens;  // of the keys; kNoToken: a cell that has none
};

// The tokens whose keys are in the cells of the caches. A token takes the cell of another one when
// it has left the window, so this changes from step to step.
class CellTokens {
 public:
  void write(const DerivedGraph& derived, const Step& step) {
    const GraphTemplate& graph = *derived.graph;
    for (const Access& access : derived.accesses) {
      if (!access.write || access.slot == kNoSlot) continue;
      const Tensor& cache = graph.tensor(graph.root(access.tensor));
      if (cache.kind != TensorKind::Kv || !cache.name.starts_with("cache_k_l")) continue;
      if (step.slots.size() <= access.slot.v ||
          step.slots[access.slot.v].ints.size() != step.n_tokens) {
        lost_ = true;  // which cells the step wrote
        return;
      }
      auto& tokens = tokens_[cache.layer];
      std::uint32_t token = step.first_token;
      for (const std::int64_t cell : step.slots[access.slot.v].ints) tokens[cell] = token++;
    }
  }
  // Of the first `count` cells.
  std::vector<std::uint32_t> of(LayerId layer, std::uint64_t count) const {
    std::vector<std::uint32_t> list(count, kNoToken);
    const auto found = tokens_.find(layer);
    if (lost_ || found == tokens_.end()) return list;
    for (const auto& [cell, token] : found->second)
      if (cell >= 0 && static_cast<std::uint64_t>(cell) < count)
        list[static_cast<std::size_t>(cell)] = token;
    return list;
  }

 private:
  std::map<LayerId, std::unordered_map<std::int64_t, std::uint32_t>> tokens_;
  bool lost_ = false;
};

// The layer of the cache whose keys an attention op reads. nullopt: it has others, those of an
// encoder. The keys are the first source of the product with the queries; ops in between scale the
// product, add to it or convert the keys, and have what they convert as their first source, too.
std::optional<LayerId> cache_of(const GraphTemplate& graph, const Op& op) {
  const Node& last = graph.node(op.last());
  const std::size_t keys = last.op == "FLASH_ATTN_EXT" ? 1 : 0;
  if (last.src.size() <= keys || last.src[keys] == kNoTensor) return std::nullopt;
  TensorId root = graph.root(last.src[keys]);
  for (std::uint32_t node = op.last().v; graph.tensor(root).kind != TensorKind::Kv; --node) {
    if (node == 0) return std::nullopt;
    const Node& before = graph.node(NodeId{node - 1});
    if (graph.root(before.output) != root) continue;
    if (before.src.empty() || before.src.front() == kNoTensor) return std::nullopt;
    root = graph.root(before.src.front());
  }
  return graph.tensor(root).layer;
}

// The tokens of a query; nullopt: all.
using WantedTokens = std::optional<TokenRange>;
bool evaluates(const Step& step, const WantedTokens& wanted) {
  return !wanted || (step.first_token < wanted->to &&
                     std::uint64_t{step.first_token} + step.n_tokens > wanted->from);
}

// Calls `visit(row)` for each head and token of each captured op, in order. Steps that evaluate no
// token of `wanted` are left out.
template <class Visit>
std::expected<void, TraceError> walk_attention(const SessionReader& reader,
                                               const WantedTokens& wanted,
                                               const ContinueCheck& keep_going, Visit visit) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  if (auto known = needs_recorded_graphs(*info, "which cells of the KV cache a step wrote"); !known)
    return std::unexpected(known.error());
  CellTokens cells;
  DerivedGraphCache graphs(reader);
  const auto visit_op = [&](const GraphTemplate& graph, const Step& step,
                            const OutputValues& values) {
    const auto [keys, queries, heads, streams] = values.ne;
    if (values.of != ValuesOf::Attention || streams != 1 || queries != step.n_tokens) return;
    const LayerId layer = graph.op(values.op).layer;
    const auto cache = cache_of(graph, graph.op(values.op));
    if (!cache) return;
    const std::vector<std::uint32_t> tokens = cells.of(*cache, keys);
    if (std::ranges::count(tokens, kNoToken) == std::ssize(tokens)) return;
    std::span<const float> rest = values.values;
    for (std::uint32_t head = 0; head < heads; ++head)
      for (std::uint32_t query = 0; query < queries; ++query, rest = rest.subspan(keys))
        visit(Row{.layer = layer,
                  .head = head,
                  .token = step.first_token + query,
                  .weights = rest.first(keys),
                  .tokens = tokens});
  };
  return walk_steps(reader, kAllRows, keep_going,
                    [&](const Step& step) -> std::expected<void, TraceError> {
                      const auto derived = graphs.of(step.graph);
                      if (!derived) return std::unexpected(derived.error());
                      if (*derived == nullptr) return {};
                      cells.write(**derived, step);
                      if (!evaluates(step, wanted)) return {};
                      return reader.for_each_values(step.id, 1, [&](const StepValues& of) {
                        for (const OutputValues& values : of.outputs)
                          visit_op(*(*derived)->graph, step, values);
                        return true;
                      });
                    });
}

// Calls `add(list[token], weight)` for the keys that are one of the session's tokens. The list
// grows as needed.
template <class Number, class Add>
void for_each_key(const Row& row, std::size_t tokens, std::vector<Number>& list, Add add) {
  for (std::size_t key = 0; key < row.weights.size(); ++key) {
    const std::uint32_t token = row.tokens[key];
    if (token >= tokens) continue;
    if (token >= list.size()) list.resize(token + std::size_t{1});
    add(list[token], row.weights[key]);
  }
}

// The sums of the columns of HeadAttention.
struct Sums {
  std::uint64_t tokens = 0, repeated = 0;
  double entropy = 0, distance = 0, first = 0, previous = 0, self = 0, elsewhere = 0, induction = 0;
};

void add(Sums& sums, const Row& row, std::span<const Token> tokens) {
  if (row.token == 0 || row.token >= tokens.size()) return;
  ++sums.tokens;
  const std::int32_t id = tokens[row.token].id;
  double all = 0, after_same = 0;
  bool repeated = false;
  for (std::size_t key = 0; key < row.weights.size(); ++key) {
    const std::uint32_t of = row.tokens[key];
    if (of >= tokens.size()) continue;
    const double weight = double{row.weights[key]};
    if (of > 0 && of <= row.token && tokens[of - 1].id == id) {
      repeated = true;
      after_same += weight;
    }
    if (weight <= 0) continue;
    all += weight;
    sums.entropy -= weight * std::log2(weight);
    sums.distance += weight * (static_cast<double>(row.token) - static_cast<double>(of));
    if (of == 0) sums.first += weight;
    if (of + 1 == row.token) sums.previous += weight;
    if (of == row.token) sums.self += weight;
  }
  sums.elsewhere += std::max(0.0, 1 - all);
  if (!repeated) return;
  ++sums.repeated;
  sums.induction += after_same;
}

// Whether the session has the layer, head and token that the query names.
std::expected<void, TraceError> check(const SessionReader& reader, const TokenAttentionQuery& query,
                                      std::size_t tokens) {
  if (query.layer) {
    const LayerId layer{static_cast<std::int32_t>(*query.layer)};
    if (auto there = validate_layers(reader, LayerSet::one(layer)); !there) return there;
  }
  if (query.token && *query.token >= tokens)
    return std::unexpected(no_such_part("session", "token", *query.token, tokens));
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  if (query.head && info->n_heads > 0 && *query.head >= info->n_heads)
    return std::unexpected(no_such_part("model", "head", *query.head, info->n_heads));
  return {};
}

}  // namespace

std::expected<Page<TokenAttention>, TraceError> token_attention(const SessionReader& reader,
                                                                const TokenAttentionQuery& query,
                                                                const ContinueCheck& keep_going) {
  Page<TokenAttention> page;
  const auto tokens = reader.tokens(0, UINT32_MAX);
  if (!tokens) return std::unexpected(tokens.error());
  if (auto there = check(reader, query, tokens->size()); !there)
    return std::unexpected(there.error());
  const auto is = [](const std::optional<std::uint32_t>& asked, std::int64_t value) {
    return !asked || std::int64_t{*asked} == value;
  };
  WantedTokens wanted;
  if (query.token) wanted = TokenRange{.from = *query.token, .to = *query.token + 1};
  const auto walked = walk_attention(reader, wanted, keep_going, [&](const Row& row) {
    if (!is(query.layer, row.layer.v) || !is(query.head, row.head) || !is(query.token, row.token))
      return;
    if (!query.page.contains(page.total++)) return;
    TokenAttention& of = page.rows.emplace_back(
        TokenAttention{.layer = row.layer, .head = row.head, .token = row.token, .weights = {}});
    for_each_key(row, tokens->size(), of.weights, [](float& weight, float more) { weight = more; });
  });
  if (!walked) return std::unexpected(walked.error());
  return page;
}

std::expected<Page<MeanAttention>, TraceError> mean_attention(const SessionReader& reader,
                                                              const MeanAttentionQuery& query,
                                                              const ContinueCheck& keep_going) {
  const auto tokens = reader.tokens(0, UINT32_MAX);
  if (!tokens) return std::unexpected(tokens.error());
  TokenAttentionQuery named{.layer = query.layer, .head = query.head, .token = {}, .page = {}};
  if (query.tokens && query.tokens->from > 0) named.token = query.tokens->from;
  if (auto there = check(reader, named, tokens->size()); !there)
    return std::unexpected(there.error());
  struct Mean {
    std::uint64_t heads = 0;
    std::vector<double> sums;
  };
  std::vector<std::pair<std::uint32_t, Mean>> means;           // of the page
  std::map<std::uint32_t, std::optional<std::size_t>> places;  // in `means`; nullopt: not there
  const auto walked = walk_attention(reader, query.tokens, keep_going, [&](const Row& row) {
    if ((query.layer && std::int64_t{*query.layer} != row.layer.v) ||
        (query.head && *query.head != row.head) ||
        (query.tokens && (row.token < query.tokens->from || row.token >= query.tokens->to)))
      return;
    const auto [at, is_new] = places.try_emplace(row.token);
    if (is_new && query.page.contains(places.size() - 1)) {
      at->second = means.size();
      means.emplace_back(row.token, Mean{});
    }
    if (!at->second) return;
    Mean& mean = means[*at->second].second;
    ++mean.heads;
    for_each_key(row, tokens->size(), mean.sums,
                 [](double& sum, float weight) { sum += double{weight}; });
  });
  if (!walked) return std::unexpected(walked.error());
  Page<MeanAttention> page{.total = places.size(), .rows = {}};
  for (const auto& [token, mean] : means) {
    MeanAttention& of =
        page.rows.emplace_back(MeanAttention{.token = token, .heads = mean.heads, .weights = {}});
    for (const double sum : mean.sums)
      of.weights.push_back(static_cast<float>(sum / static_cast<double>(mean.heads)));
  }
  return page;
}

namespace {

// What the head with the largest value does.
struct AttentionMeasure {
  const char *name, *does;
  std::optional<double> (*value)(const HeadAttention&);
  std::string (*text)(double);
};
std::string weight_text(double weight) { return format_percent(weight, 1); }
constexpr std::array kAttentionMeasures = std::to_array<AttentionMeasure>({
    {"previous", "attends most to the previous token",
     [](const HeadAttention& of) { return std::optional(of.previous); }, weight_text},
    {"first", "attends most to the first token",
     [](const HeadAttention& of) { return std::optional(of.first); }, weight_text},
    {"induction", "attends most to what followed the same token before",
     [](const HeadAttention& of) { return of.induction; }, weight_text},
    {"entropy", "spreads its attention most",
     [](const HeadAttention& of) { return std::optional(of.entropy); },
     [](double bits) { return std::format("{:.3g} bits", bits); }},
    {"distance", "looks farthest back",
     [](const HeadAttention& of) { return std::optional(of.distance); },
     [](double tokens) { return std::format("{:.3g} tokens", tokens); }},
});

std::vector<LargestHead> largest_heads(const std::vector<HeadAttention>& heads) {
  std::vector<LargestHead> largest;
  for (const AttentionMeasure& measure : kAttentionMeasures) {
    const auto most = std::ranges::max_element(heads, {}, measure.value);
    if (most == heads.end() || !measure.value(*most)) continue;
    largest.push_back({.measure = measure.name,
                       .layer = most->layer,
                       .head = most->head,
                       .text = std::format("Layer {} head {} {}: {}", most->layer.v, most->head,
                                           measure.does, measure.text(*measure.value(*most)))});
  }
  return largest;
}

}  // namespace

std::expected<AttentionTable, TraceError> attention_table(const SessionReader& reader,
                                                          const ContinueCheck& keep_going) {
  const auto tokens = reader.tokens(0, UINT32_MAX);
  if (!tokens) return std::unexpected(tokens.error());
  std::map<std::pair<LayerId, std::uint32_t>, Sums> heads;
  const auto walked = walk_attention(reader, {}, keep_going, [&](const Row& row) {
    add(heads[{row.layer, row.head}], row, *tokens);
  });
  if (!walked) return std::unexpected(walked.error());
  AttentionTable table;
  for (const auto& [of, sums] : heads) {
    if (sums.tokens == 0) continue;
    const auto n = static_cast<double>(sums.tokens);
    HeadAttention& head = table.heads.emplace_back(HeadAttention{.layer = of.first,
                                                                 .head = of.second,
                                                                 .tokens = sums.tokens,
                                                                 .entropy = sums.entropy / n,
                                                                 .distance = sums.distance / n,
                                                                 .first = sums.first / n,
                                                                 .previous = sums.previous / n,
                                                                 .self = sums.self / n,
                                                                 .elsewhere = sums.elsewhere / n,
                                                                 .induction = {}});
    if (sums.repeated > 0) head.induction = sums.induction / static_cast<double>(sums.repeated);
  }
  table.largest = largest_heads(table.heads);
  return table;
}

static Fields<TokenAttention> fields_of(const TokenAttention*) {
  return Fields<TokenAttention>("TokenAttention")
      .add("layer", "", &TokenAttention::layer)
      .add("head", "", &TokenAttention::head)
      .add("token", "that looks at others", &TokenAttention::token)
      .add("weights",
           "of tokens 0, 1, ... in this order. 0: outside the sliding window, or not seen",
           &TokenAttention::weights);
}

Fields<Page<TokenAttention>> fields_of(const Page<TokenAttention>*) {
  return page_fields<TokenAttention>("TokenAttentions");
}

static Fields<MeanAttention> fields_of(const MeanAttention*) {
  return Fields<MeanAttention>("MeanAttention")
      .add("token", "that looks at others", &MeanAttention::token)
      .add("heads", "captured heads of the layers asked for, over which the weights are means",
           &MeanAttention::heads)
      .add("weights",
           "of tokens 0, 1, ... in this order. 0: outside the sliding window, or not seen",
           &MeanAttention::weights);
}

Fields<Page<MeanAttention>> fields_of(const Page<MeanAttention>*) {
  return page_fields<MeanAttention>("MeanAttentions");
}

static Fields<HeadAttention> fields_of(const HeadAttention*) {
  return Fields<HeadAttention>("HeadAttention")
      .add("layer", "", &HeadAttention::layer)
      .add("head", "", &HeadAttention::head)
      .add("tokens",
           "captured tokens, over which the other fields are means. Without token 0, which has "
           "only itself to look at",
           &HeadAttention::tokens)
      .add("entropy", "of the weights, in bits: 0 if a token looks at one other only",
           &HeadAttention::entropy)
      .add("distance", "number of tokens between a token and those that it looks at",
           &HeadAttention::distance)
      .add("first", "weight of token 0", &HeadAttention::first)
      .add("previous", "weight of the token before", &HeadAttention::previous)
      .add("self", "weight of the token itself", &HeadAttention::self)
      .add("elsewhere", "weight of attention sinks, which belong to no token",
           &HeadAttention::elsewhere)
      .add("induction",
           "weight of the tokens that followed the same token before. null: no token has been "
           "there before",
           &HeadAttention::induction);
}

static Fields<LargestHead> fields_of(const LargestHead*) {
  return Fields<LargestHead>("LargestHead")
      .add("measure", "a field of `heads`", &LargestHead::measure)
      .add("layer", "", &LargestHead::layer)
      .add("head", "", &LargestHead::head)
      .add("text", "what the head does, as a sentence", &LargestHead::text);
}

Fields<AttentionTable> fields_of(const AttentionTable*) {
  return Fields<AttentionTable>("AttentionTable")
      .add("heads", "by layer and head", &AttentionTable::heads)
      .add("largest",
           "of each measure, the head with the largest value; without measures that no head has",
           &AttentionTable::largest);
}

}  // namespace tt
