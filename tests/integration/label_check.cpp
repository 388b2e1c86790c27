#include "tests/integration/label_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <regex>
#include <string>
#include <vector>

#include "analysis/common/op_info.h"
#include "tracer/format/names/names.h"

namespace tt::test {
namespace {

using enum Component;

struct Pattern {
  const char* name;  // a regular expression for the complete text
  std::vector<Component> allowed;
};

// By the first weight that an op reads, without its layer.
const std::vector<Pattern> kByWeight = {
    {"(attn_(q|k)|q|k|indexer)[._].*norm.*|attn_q_a_norm.*|attn_kv_a_norm.*|attn_.*compressor_norm."
     "*|indexer.*norm.*",
     {Attention, Norm}},
    {".*norm.*|time_mix_ln.*", {Norm}},
    {"(ffn_gate_inp|exp_probs|ffn_.*exps|ffn_.*shexp|ffn_latent|ffn_routed).*", {Moe}},
    {"ffn_.*", {Ffn}},
    {"attn_.*", {Attention, Ssm}},
    {"ssm_.*|shortconv.*|time_mix.*", {Ssm}},
    {"channel_mix.*", {Ffn}},
    {"token_embd.*", {Embedding, Output}},
    {"position_embd.*|token_types.*", {Embedding}},
    {"output\\..*|cls.*", {Output}},
};

// Ops that read no weight, by their type.
const std::vector<Pattern> kByType = {
    {"FLASH_ATTN_EXT", {Attention}},
    {"SSM_SCAN|SSM_CONV|RWKV_WKV.*|GATED_LINEAR_ATTN|GATED_DELTA_NET", {Ssm}},
    {"MUL_MAT_ID", {Moe}},
};

// Other ops, by the name of their output without its layer.
const std::vector<Pattern> kByOutput = {
    {"(Q|K|V|QKV)cur.*|kq.*", {Attention}},
    {"ffn_moe_.*", {Moe}},
    {"ffn_(swiglu|silu|gelu|geglu|relu|act).*", {Ffn}},
    {"(l_out|ffn_inp)", {Other}},
    {"(norm|attn_norm|ffn_norm|norm_w)", {Norm}},
};

const Pattern* find(const std::vector<Pattern>& patterns, const std::string& text) {
  const auto found = std::ranges::find_if(patterns, [&](const Pattern& pattern) {
    return std::regex_match(text, std::regex(pattern.name));
  });
  return found == patterns.end() ? nullptr : &*found;
}

const Pattern* pattern_of(const GraphTemplate& graph, const Op& op) {
  const Tensor& output = graph.tensor(graph.node(op.last()).output);
  if (output.kind == TensorKind::Kv) return nullptr;
  for (const TensorId source : op_sources(graph, op)) {
    const Tensor& weight = graph.tensor(graph.root(source));
    if (weight.kind == TensorKind::Weight)
      return find(kByWeight, std::string(name_without_layer(weight.name)));
  }
  const Pattern* by_type = find(kByType, op_name(graph, op));
  return by_type != nullptr ? by_type
                            : find(kByOutput, std::string(name_without_layer(output.name)));
}

}  // namespace

int expect_labels(const GraphTemplate& graph, bool has_experts) {
  int described = 0;
  for (const Op& op : graph.ops) {
    const Tensor& output = graph.tensor(graph.node(op.last()).output);
    const Component component = op_role_of(graph, op).component;
    const std::string name = std::format("{} {}", op_name(graph, op), output.name);
    EXPECT_TRUE(has_experts || component != Moe) << name;
    const Pattern* pattern = pattern_of(graph, op);
    if (pattern == nullptr) continue;
    ++described;
    EXPECT_TRUE(std::ranges::contains(pattern->allowed, component))
        << name << " is " << to_text(component) << ", pattern " << pattern->name;
  }
  for (const Tensor& tensor : graph.tensors)
    EXPECT_TRUE(has_experts || tensor.component != Moe) << tensor.name;
  return described;
}

}  // namespace tt::test
