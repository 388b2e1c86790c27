// One table says what a name means; the rest takes a name apart for it. The
// table is in order: the first rule that fits wins. Words and reasons:
// docs/names.md.
#include "tracer/format/names/names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

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

// "Qcur-5 (view) (permuted)" -> "Qcur-5". A copy into a tensor without a name
// is called " (copy of state-5 (view))": what it copies is all we know.
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
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || value < 0) {
    return std::nullopt;
  }
  return value;
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
  // Digits at the end belong to a layer after "-", and after "_l" in the names
  // of caches and states; those of leaf_N and node_N just count tensors.
  const std::string_view before = rest.substr(0, rest.find_last_not_of(kDigits) + 1);
  const auto layer = number(rest.substr(before.size()));
  if (!layer) return {rest, kNoLayer};
  if (before.ends_with('-')) return {before.substr(0, before.size() - 1), LayerId{*layer}};
  if (before.ends_with("_l") && (before.starts_with("cache_") || before.contains("_state_"))) {
    return {before.substr(0, before.size() - 2), LayerId{*layer}};
  }
  return {rest, kNoLayer};
}

enum class Match : std::uint8_t { Whole, Start, Part };

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
    // Caches, before anything else: "cache_k" is no K projection.
    {Start, "cache_k", C::KvCache, R::K},
    {Start, "cache_v", C::KvCache, R::V},
    {Start, "cache_idx", C::KvCache, R::K},
    {Start, "cache_", C::KvCache, R::State},

    // Routing. "ffn_moe_weights_norm" normalises scores: not a norm layer.
    {Start, "ffn_gate_inp", C::Moe, R::Router},
    {Start, "exp_probs", C::Moe, R::Router},
    {Start, "ffn_gate_tid2eid", C::Moe, R::Router},
    {Start, "ffn_moe_logits", C::Moe, R::Router},
    {Start, "ffn_moe_probs", C::Moe, R::Router},
    {Start, "ffn_moe_argsort", C::Moe, R::Router},
    {Start, "ffn_moe_topk", C::Moe, R::Router},
    {Start, "ffn_moe_group", C::Moe, R::Router},
    {Start, "ffn_moe_weights", C::Moe, R::Scores},
    {Start, "norm_w", C::Moe, R::Scores},
    {Start, "ffn_moe_gate", C::Moe, R::Gate},
    {Start, "ffn_moe_up", C::Moe, R::Up},
    {Start, "ffn_moe_down", C::Moe, R::Down},
    {Start, "ffn_moe", C::Moe, R::None},
    {Start, "v_moe", C::Moe, R::V},

    // Q and K after their norms are still Q and K.
    {Start, "Qcur", C::Attention, R::Q},
    {Start, "Kcur", C::Attention, R::K},
    {Start, "Vcur", C::Attention, R::V},
    {Start, "QKVcur", C::Attention, R::Qkv},

    // Norms, of whatever part.
    {Part, "norm", C::Norm, R::Norm},
    {Start, "time_mix_ln", C::Norm, R::Norm},

    // Hyper-connections widen the residual stream around attention and feed-forward.
    {Start, "hc_", C::Other, R::Residual},

    // Embedding and output.
    {Start, "token_embd", C::Embedding, R::None},
    {Start, "per_layer", C::Embedding, R::None},
    {Start, "position_embd", C::Embedding, R::None},
    {Start, "token_types", C::Embedding, R::None},
    {Start, "embd", C::Embedding, R::None},
    {Start, "inp_embd", C::Embedding, R::None},
    {Start, "inpL", C::Embedding, R::None},
    {Start, "pos_embd", C::Embedding, R::None},
    {Start, "ple_conv", C::Embedding, R::Conv},
    {Start, "ple_", C::Embedding, R::None},
    {Part, "embed_tokens", C::Embedding, R::None},
    {Part, "input_embed", C::Embedding, R::None},
    {Start, "inp_gate", C::Embedding, R::Gate},
    {Start, "proj.", C::Embedding, R::None},
    {Start, "nextn.shared_head_head", C::Output, R::Logits},
    {Start, "nextn.", C::Embedding, R::None},
    {Start, "result_output", C::Output, R::Logits},
    {Start, "result_", C::Output, R::None},
    {Start, "output_hc", C::Output, R::Residual},
    {Start, "output_res", C::Output, R::Residual},
    {Whole, "output", C::Output, R::Logits},
    {Start, "output.", C::Output, R::Logits},
    {Start, "cls", C::Output, R::Logits},
    {Start, "dense_", C::Output, R::None},
    {Start, "lm_head", C::Output, R::Logits},
    {Start, "final_output", C::Output, R::None},

    // Experts: routed, shared and chunked ones; gate and up in one count as up.
    {Start, "ffn_gate_up_exps", C::Moe, R::Up},
    {Start, "ffn_gate_exps", C::Moe, R::Gate},
    {Start, "ffn_up_exps", C::Moe, R::Up},
    {Start, "ffn_down_exps", C::Moe, R::Down},
    {Start, "ffn_gate_shexp", C::Moe, R::Gate},
    {Start, "ffn_up_shexp", C::Moe, R::Up},
    {Start, "ffn_down_shexp", C::Moe, R::Down},
    {Start, "ffn_gate_chexps", C::Moe, R::Gate},
    {Start, "ffn_up_chexps", C::Moe, R::Up},
    {Start, "ffn_down_chexps", C::Moe, R::Down},
    {Start, "ffn_shexp", C::Moe, R::None},
    {Start, "ffn_shared", C::Moe, R::None},
    {Start, "shared_expert", C::Moe, R::Gate},
    {Start, "ffn_latent_up", C::Moe, R::Up},
    {Start, "ffn_latent_down", C::Moe, R::Down},
    {Start, "ffn_routed_up", C::Moe, R::Up},
    {Start, "ffn_routed_down", C::Moe, R::Down},

    // Feed-forward.
    {Start, "ffn_inp", C::Ffn, R::Residual},
    {Start, "ffn_res", C::Ffn, R::Residual},
    {Start, "ffn_gate", C::Ffn, R::Gate},
    {Start, "ffn_up", C::Ffn, R::Up},
    {Start, "ffn_down", C::Ffn, R::Down},
    {Start, "ffn_out", C::Ffn, R::Down},
    {Start, "ffn", C::Ffn, R::None},
    {Start, "vis_gate", C::Ffn, R::Gate},
    {Start, "vis_up", C::Ffn, R::Up},
    {Start, "vis_down", C::Ffn, R::Down},
    {Start, "channel_mix_key", C::Ffn, R::Up},
    {Start, "channel_mix_value", C::Ffn, R::Down},
    {Start, "channel_mix_receptance", C::Ffn, R::Gate},
    {Start, "channel_mix", C::Ffn, R::None},

    // Convolutions and states of recurrent layers.
    {Part, "conv.in_proj", C::Ssm, R::Up},
    {Part, "conv.out_proj", C::Ssm, R::O},
    {Start, "shortconv", C::Ssm, R::Conv},
    {Part, ".conv.", C::Ssm, R::Conv},
    {Start, "ssm_conv", C::Ssm, R::Conv},
    {Start, "ssm_out", C::Ssm, R::O},
    {Start, "ssm_g", C::Ssm, R::Gate},
    {Start, "ssm_", C::Ssm, R::None},
    {Part, "conv_state", C::Ssm, R::State},
    {Part, "conv1d_state", C::Ssm, R::State},
    {Part, "ssm_state", C::Ssm, R::State},
    {Part, "conv1d", C::Ssm, R::Conv},
    {Part, "_conv", C::Ssm, R::Conv},
    {Start, "conv_", C::Ssm, R::Conv},
    {Start, "mamba", C::Ssm, R::None},
    {Start, "kda_g", C::Ssm, R::Gate},
    {Start, "kda", C::Ssm, R::None},
    {Start, "linear_attn_out", C::Ssm, R::O},
    {Start, "linear_attn_qkv", C::Ssm, R::Qkv},
    {Start, "linear_attn", C::Ssm, R::None},
    {Whole, "new_state", C::Ssm, R::State},
    {Start, "state_predelta", C::Ssm, R::State},
    {Start, "time_mix_key", C::Ssm, R::K},
    {Start, "time_mix_value", C::Ssm, R::V},
    {Start, "time_mix_receptance", C::Ssm, R::Q},
    {Start, "time_mix_gate", C::Ssm, R::Gate},
    {Start, "time_mix_output", C::Ssm, R::O},
    {Start, "time_mix", C::Ssm, R::None},
    {Start, "wkv", C::Ssm, R::State},
    {Whole, "alpha", C::Ssm, R::None},
    {Start, "beta", C::Ssm, R::None},
    {Start, "a_softplus", C::Ssm, R::None},

    // Attention over compressed or selected cells keeps states and masks of its own.
    {Start, "csa_state", C::Attention, R::State},
    {Start, "hca_state", C::Attention, R::State},
    {Start, "lid_state", C::Attention, R::State},
    {Start, "csa_", C::Attention, R::None},
    {Start, "hca_", C::Attention, R::None},
    {Start, "lid_", C::Attention, R::None},
    {Start, "msa_", C::Attention, R::None},

    // Attention.
    {Part, "attn_qkv", C::Attention, R::Qkv},
    {Part, "attn_kv", C::Attention, R::Qkv},
    {Start, "wqkv", C::Attention, R::Qkv},
    {Start, "qkv", C::Attention, R::Qkv},
    {Part, "attn_q", C::Attention, R::Q},
    {Part, "attn_k.", C::Attention, R::K},
    {Whole, "attn_k", C::Attention, R::K},
    {Part, "attn_k_b", C::Attention, R::K},
    {Part, "attn_v_gate", C::Attention, R::Gate},
    {Part, "attn_v", C::Attention, R::V},
    {Part, "attn_output", C::Attention, R::O},
    {Part, "attn_out", C::Attention, R::O},
    {Part, "attn_o", C::Attention, R::O},
    {Part, "attn_wo", C::Attention, R::O},
    {Part, "attn_gate", C::Attention, R::Gate},
    {Part, "attn_rel_b", C::Attention, R::Bias},
    {Start, "attn_residual", C::Attention, R::Residual},
    {Start, "attn_res", C::Attention, R::Residual},
    {Start, "indexer_q", C::Attention, R::Q},
    {Start, "indexer.q", C::Attention, R::Q},
    {Start, "indexer_k", C::Attention, R::K},
    {Start, "indexer.k", C::Attention, R::K},
    {Start, "indexer_score", C::Attention, R::Scores},
    {Start, "indexer", C::Attention, R::None},
    {Start, "kqv", C::Attention, R::None},
    {Start, "kq", C::Attention, R::Scores},
    {Start, "kv_", C::Attention, R::Qkv},
    {Whole, "kv", C::Attention, R::Qkv},
    {Part, "attn", C::Attention, R::None},
    {Start, "rope_f", C::Attention, R::None},
    {Start, "mla_", C::Attention, R::None},
    {Start, "sa_out", C::Attention, R::O},
    {Whole, "q", C::Attention, R::Q},
    {Start, "q_", C::Attention, R::Q},
    {Start, "qr", C::Attention, R::Q},
    {Start, "k_", C::Attention, R::K},
    {Start, "v_", C::Attention, R::V},

    // The residual stream between the parts.
    {Start, "l_out", C::Other, R::Residual},
    {Start, "l_last", C::Other, R::Residual},
    {Start, "layer_out", C::Other, R::Residual},
    {Start, "inpSA", C::Other, R::Residual},
    {Start, "residual", C::Other, R::Residual},
    {Start, "altup", C::Other, R::Residual},
    {Start, "laurel", C::Other, R::Residual},
});

const Rule* rule_for(std::string_view stem) {
  for (const Rule& rule : kRules) {
    const bool fits = rule.match == Whole   ? stem == rule.text
                      : rule.match == Start ? stem.starts_with(rule.text)
                                            : stem.contains(rule.text);
    if (fits) return &rule;
  }
  return nullptr;
}

}  // namespace

LayerId layer_of(std::string_view name) { return parse(name).layer; }

Component component_of(std::string_view name, TensorKind kind) {
  if (kind == TensorKind::Kv) return Component::KvCache;
  if (kind == TensorKind::Input) return Component::Input;
  const Rule* rule = rule_for(parse(name).stem);
  return rule == nullptr ? Component::Other : rule->component;
}

Role role_of(std::string_view name, TensorKind kind) {
  if (kind == TensorKind::Input) return Role::None;
  const std::string_view stem = parse(name).stem;
  const Rule* rule = rule_for(stem);
  if (kind == TensorKind::Weight && stem.ends_with(".bias") &&
      (rule == nullptr || rule->role != Role::Norm)) {
    return Role::Bias;
  }
  if (kind == TensorKind::Kv && (rule == nullptr || rule->component != Component::KvCache)) {
    return Role::State;  // recurrent caches that a graph renamed: "conv_states_all-1"
  }
  return rule == nullptr ? Role::None : rule->role;
}

}  // namespace tt
