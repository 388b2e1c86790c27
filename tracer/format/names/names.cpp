// Maps tensor names to component and role with one table of rules. The first matching
// rule wins. Rules and reasons: docs/names.md.
#include "tracer/format/names/names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "tracer/format/names/adapter.h"
#include "tracer/text/parse_number.h"

namespace tt {
namespace {

constexpr std::string_view kDigits = "0123456789";

// The scheduler's copies for another backend are called "CPU#name#0".
std::string_view without_copy_marks(std::string_view name) {
  const auto first = name.find('#');
  const auto last = name.rfind('#');
  if (first == std::string_view::npos || first == last) return name;
  return name.substr(first + 1, last - first - 1);
}

// "Qcur-5 (view) (permuted)" -> "Qcur-5". A copy into an unnamed tensor is named
// " (copy of state-5 (view))"; the name of the copied tensor is used then.
std::string_view base_name(std::string_view name) {
  name = without_copy_marks(name);
  constexpr std::string_view kCopyOf = " (copy of ";
  if (name.starts_with(kCopyOf)) name.remove_prefix(kCopyOf.size());
  name = name.substr(0, name.find(" ("));
  while (name.ends_with(')') && std::ranges::count(name, '(') < std::ranges::count(name, ')')) {
    name.remove_suffix(1);
  }
  return name;
}

std::optional<std::int32_t> number(std::string_view text) {
  const auto value = parse_number<std::int32_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

// A name without its layer: "blk.5.attn_q.weight" -> "attn_q.weight", 5.
struct Name {
  std::string_view stem;
  LayerId layer = kNoLayer;
};

Name parse(std::string_view text) {
  const std::string_view base = base_name(text);
  std::string_view rest = base;
  for (const std::string_view owner : {"enc.", "dec.", "model.layers.{}."}) {
    if (rest.starts_with(owner)) rest.remove_prefix(owner.size());
  }
  if (rest.starts_with("blk.")) {
    rest.remove_prefix(4);
    const auto dot = rest.find('.');
    if (const auto layer = number(rest.substr(0, dot)); layer && dot != std::string_view::npos) {
      return {rest.substr(dot + 1), LayerId{*layer}};
    }
    return {base, kNoLayer};
  }
  // Trailing digits are a layer after "-", and after "_l" in names of caches and states.
  // In leaf_N and node_N they number tensors.
  const std::string_view before = rest.substr(0, rest.find_last_not_of(kDigits) + 1);
  const auto layer = number(rest.substr(before.size()));
  if (!layer) return {rest, kNoLayer};
  if (before.ends_with('-')) return {before.substr(0, before.size() - 1), LayerId{*layer}};
  if (before.ends_with("_l") && (before.starts_with("cache_") || before.contains("_state_"))) {
    return {before.substr(0, before.size() - 2), LayerId{*layer}};
  }
  return {rest, kNoLayer};
}

enum class Match : std::uint8_t { Exact, Prefix, Contains };

struct Rule {
  Match match;
  std::string_view text;
  Component component;
  Role role;
};

using enum Match;
using C = Component;
using R = Role;

constexpr auto kRules = std::to_array<Rule>({
    // Caches come first: "cache_k" is not a K projection.
    {Prefix, "cache_k", C::KvCache, R::K},
    {Prefix, "cache_v", C::KvCache, R::V},
    {Prefix, "cache_idx", C::KvCache, R::K},
    {Prefix, "cache_", C::KvCache, R::State},

    // Routing. "ffn_moe_weights_norm" normalises scores; it is not a norm layer.
    {Prefix, "ffn_gate_inp", C::Moe, R::Router},
    {Prefix, "exp_probs", C::Moe, R::Router},
    {Prefix, "ffn_gate_tid2eid", C::Moe, R::Router},
    {Prefix, "ffn_moe_logits", C::Moe, R::Router},
    {Prefix, "ffn_moe_probs", C::Moe, R::Router},
    {Prefix, "ffn_moe_argsort", C::Moe, R::Router},
    {Prefix, "ffn_moe_topk", C::Moe, R::Router},
    {Prefix, "ffn_moe_group", C::Moe, R::Router},
    {Prefix, "ffn_moe_weights", C::Moe, R::Scores},
    {Prefix, "ffn_moe_gate", C::Moe, R::Gate},
    {Prefix, "ffn_moe_up", C::Moe, R::Up},
    {Prefix, "ffn_moe_down", C::Moe, R::Down},
    {Prefix, "ffn_moe", C::Moe, R::None},

    // Q and K after their norms are still Q and K.
    {Prefix, "Qcur", C::Attention, R::Q},
    {Prefix, "Kcur", C::Attention, R::K},
    {Prefix, "Vcur", C::Attention, R::V},
    {Prefix, "QKVcur", C::Attention, R::Qkv},

    // Norms of all components.
    {Contains, "norm", C::Norm, R::Norm},
    {Prefix, "time_mix_ln", C::Norm, R::Norm},

    // The residual stream between attention and feed-forward.
    {Prefix, "ffn_inp", C::Other, R::Residual},

    // Hyper-connections widen the residual stream around attention and feed-forward.
    {Prefix, "hc_", C::Other, R::Residual},

    // Embedding and output.
    {Prefix, "token_embd", C::Embedding, R::None},
    {Prefix, "per_layer", C::Embedding, R::None},
    {Prefix, "position_embd", C::Embedding, R::None},
    {Prefix, "token_types", C::Embedding, R::None},
    {Prefix, "embd", C::Embedding, R::None},
    {Prefix, "inp_embd", C::Embedding, R::None},
    {Prefix, "inpL", C::Embedding, R::None},
    {Prefix, "pos_embd", C::Embedding, R::None},
    {Prefix, "ple_conv", C::Embedding, R::Conv},
    {Prefix, "ple_", C::Embedding, R::None},
    {Contains, "embed_tokens", C::Embedding, R::None},
    {Contains, "input_embed", C::Embedding, R::None},
    {Prefix, "inp_gate", C::Embedding, R::Gate},
    {Prefix, "proj.", C::Embedding, R::None},
    {Prefix, "nextn.shared_head_head", C::Output, R::Logits},
    {Prefix, "nextn.", C::Embedding, R::None},
    {Prefix, "result_output", C::Output, R::Logits},
    {Prefix, "result_", C::Output, R::None},
    {Prefix, "output_hc", C::Output, R::Residual},
    {Prefix, "output_res", C::Output, R::Residual},
    {Exact, "output", C::Output, R::Logits},
    {Prefix, "output.", C::Output, R::Logits},
    {Prefix, "cls", C::Output, R::Logits},
    {Prefix, "dense_", C::Output, R::None},
    {Prefix, "lm_head", C::Output, R::Logits},
    {Prefix, "final_output", C::Output, R::None},

    // Experts: routed, shared and chunked. A combined gate and up matrix counts as up.
    {Prefix, "ffn_gate_up_exps", C::Moe, R::Up},
    {Prefix, "ffn_gate_exps", C::Moe, R::Gate},
    {Prefix, "ffn_up_exps", C::Moe, R::Up},
    {Prefix, "ffn_down_exps", C::Moe, R::Down},
    {Prefix, "ffn_gate_shexp", C::Moe, R::Gate},
    {Prefix, "ffn_up_shexp", C::Moe, R::Up},
    {Prefix, "ffn_down_shexp", C::Moe, R::Down},
    {Prefix, "ffn_gate_chexps", C::Moe, R::Gate},
    {Prefix, "ffn_up_chexps", C::Moe, R::Up},
    {Prefix, "ffn_down_chexps", C::Moe, R::Down},
    {Prefix, "ffn_shexp", C::Moe, R::None},
    {Prefix, "ffn_shared", C::Moe, R::None},
    {Prefix, "shared_expert", C::Moe, R::Gate},
    {Prefix, "ffn_latent_up", C::Moe, R::Up},
    {Prefix, "ffn_latent_down", C::Moe, R::Down},
    {Prefix, "ffn_routed_up", C::Moe, R::Up},
    {Prefix, "ffn_routed_down", C::Moe, R::Down},

    // Feed-forward.
    {Prefix, "ffn_res", C::Ffn, R::Residual},
    {Prefix, "ffn_gate", C::Ffn, R::Gate},
    {Prefix, "ffn_up", C::Ffn, R::Up},
    {Prefix, "ffn_down", C::Ffn, R::Down},
    {Prefix, "ffn_out", C::Ffn, R::Down},
    {Prefix, "ffn", C::Ffn, R::None},
    {Prefix, "vis_gate", C::Ffn, R::Gate},
    {Prefix, "vis_up", C::Ffn, R::Up},
    {Prefix, "vis_down", C::Ffn, R::Down},
    {Prefix, "channel_mix_key", C::Ffn, R::Up},
    {Prefix, "channel_mix_value", C::Ffn, R::Down},
    {Prefix, "channel_mix_receptance", C::Ffn, R::Gate},
    {Prefix, "channel_mix", C::Ffn, R::None},

    // Convolutions and states of recurrent layers.
    {Contains, "conv.in_proj", C::Ssm, R::Up},
    {Contains, "conv.out_proj", C::Ssm, R::O},
    {Prefix, "shortconv", C::Ssm, R::Conv},
    {Contains, ".conv.", C::Ssm, R::Conv},
    {Prefix, "ssm_conv", C::Ssm, R::Conv},
    {Prefix, "ssm_out", C::Ssm, R::O},
    {Prefix, "ssm_g", C::Ssm, R::Gate},
    {Prefix, "ssm_", C::Ssm, R::None},
    {Contains, "conv_state", C::Ssm, R::State},
    {Contains, "conv1d_state", C::Ssm, R::State},
    {Contains, "ssm_state", C::Ssm, R::State},
    {Contains, "conv1d", C::Ssm, R::Conv},
    {Contains, "_conv", C::Ssm, R::Conv},
    {Prefix, "conv_", C::Ssm, R::Conv},
    {Prefix, "mamba", C::Ssm, R::None},
    {Prefix, "kda_g", C::Ssm, R::Gate},
    {Prefix, "kda", C::Ssm, R::None},
    {Prefix, "linear_attn_out", C::Ssm, R::O},
    {Prefix, "linear_attn_qkv", C::Ssm, R::Qkv},
    {Prefix, "linear_attn", C::Ssm, R::None},
    {Exact, "new_state", C::Ssm, R::State},
    {Prefix, "state_predelta", C::Ssm, R::State},
    {Prefix, "time_mix_key", C::Ssm, R::K},
    {Prefix, "time_mix_value", C::Ssm, R::V},
    {Prefix, "time_mix_receptance", C::Ssm, R::Q},
    {Prefix, "time_mix_gate", C::Ssm, R::Gate},
    {Prefix, "time_mix_output", C::Ssm, R::O},
    {Prefix, "time_mix", C::Ssm, R::None},
    {Prefix, "wkv", C::Ssm, R::State},
    {Exact, "alpha", C::Ssm, R::None},
    {Prefix, "beta", C::Ssm, R::None},
    {Prefix, "a_softplus", C::Ssm, R::None},

    // Attention over compressed or selected cells, with its own states and masks.
    {Prefix, "csa_state", C::Attention, R::State},
    {Prefix, "hca_state", C::Attention, R::State},
    {Prefix, "lid_state", C::Attention, R::State},
    {Prefix, "csa_", C::Attention, R::None},
    {Prefix, "hca_", C::Attention, R::None},
    {Prefix, "lid_", C::Attention, R::None},
    {Prefix, "msa_", C::Attention, R::None},

    // Attention.
    {Contains, "attn_qkv", C::Attention, R::Qkv},
    {Contains, "attn_kv", C::Attention, R::Qkv},
    {Prefix, "wqkv", C::Attention, R::Qkv},
    {Prefix, "qkv", C::Attention, R::Qkv},
    {Contains, "attn_q", C::Attention, R::Q},
    {Contains, "attn_k.", C::Attention, R::K},
    {Exact, "attn_k", C::Attention, R::K},
    {Contains, "attn_k_b", C::Attention, R::K},
    {Contains, "attn_v_gate", C::Attention, R::Gate},
    {Contains, "attn_v", C::Attention, R::V},
    {Contains, "attn_output", C::Attention, R::O},
    {Contains, "attn_out", C::Attention, R::O},
    {Contains, "attn_o", C::Attention, R::O},
    {Contains, "attn_wo", C::Attention, R::O},
    {Contains, "attn_gate", C::Attention, R::Gate},
    {Contains, "attn_rel_b", C::Attention, R::Bias},
    {Prefix, "attn_residual", C::Attention, R::Residual},
    {Prefix, "attn_res", C::Attention, R::Residual},
    {Prefix, "indexer_q", C::Attention, R::Q},
    {Prefix, "indexer.q", C::Attention, R::Q},
    {Prefix, "indexer_k", C::Attention, R::K},
    {Prefix, "indexer.k", C::Attention, R::K},
    {Prefix, "indexer_score", C::Attention, R::Scores},
    {Prefix, "indexer", C::Attention, R::None},
    {Prefix, "kqv", C::Attention, R::None},
    {Prefix, "kq", C::Attention, R::Scores},
    {Prefix, "kv_", C::Attention, R::Qkv},
    {Exact, "kv", C::Attention, R::Qkv},
    {Contains, "attn", C::Attention, R::None},
    {Prefix, "rope_f", C::Attention, R::None},
    {Prefix, "mla_", C::Attention, R::None},
    {Prefix, "sa_out", C::Attention, R::O},
    {Exact, "q", C::Attention, R::Q},
    {Prefix, "q_", C::Attention, R::Q},
    {Prefix, "qr", C::Attention, R::Q},
    {Prefix, "k_", C::Attention, R::K},
    {Prefix, "v_", C::Attention, R::V},

    // The residual stream between components.
    {Prefix, "l_out", C::Other, R::Residual},
    {Prefix, "l_last", C::Other, R::Residual},
    {Prefix, "layer_out", C::Other, R::Residual},
    {Prefix, "inpSA", C::Other, R::Residual},
    {Prefix, "residual", C::Other, R::Residual},
    {Prefix, "altup", C::Other, R::Residual},
    {Prefix, "laurel", C::Other, R::Residual},
});

const Rule* rule_for(std::string_view stem) {
  for (const Rule& rule : kRules) {
    const bool matches = rule.match == Exact    ? stem == rule.text
                         : rule.match == Prefix ? stem.starts_with(rule.text)
                                                : stem.contains(rule.text);
    if (matches) return &rule;
  }
  return nullptr;
}

}  // namespace

LayerId layer_of(std::string_view name) { return parse(name).layer; }

std::string_view name_without_layer(std::string_view name) { return parse(name).stem; }

Component component_of(std::string_view name, TensorKind kind) {
  if (kind == TensorKind::Kv) return Component::KvCache;
  if (kind == TensorKind::Input) return Component::Input;
  const Rule* rule = rule_for(parse(name).stem);
  return rule == nullptr ? Component::Other : rule->component;
}

Role role_of(std::string_view name, TensorKind kind) {
  // An adapter has no heads, and is no part of the model's matrix.
  if (kind == TensorKind::Input || is_adapter_weight(name)) return Role::None;
  const std::string_view stem = parse(name).stem;
  const Rule* rule = rule_for(stem);
  if (kind == TensorKind::Weight && stem.ends_with(".bias") &&
      (rule == nullptr || rule->role != Role::Norm)) {
    return Role::Bias;
  }
  if (kind == TensorKind::Kv && (rule == nullptr || rule->component != Component::KvCache)) {
    return Role::State;  // a recurrent cache that the graph renamed: "conv_states_all-1"
  }
  return rule == nullptr ? Role::None : rule->role;
}

}  // namespace tt
