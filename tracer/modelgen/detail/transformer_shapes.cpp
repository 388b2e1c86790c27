// Decoder-only transformers: llama, llama with experts, qwen3moe, gpt-oss, deepseek2.

#include <gguf.h>

#include "tracer/modelgen/detail/shapes.h"
#include "tracer/modelgen/detail/vocabulary.h"

namespace tt::modelgen::detail {
namespace {

using enum TensorClass;

void vocabulary(PlanBuilder& plan) {
  plan.set("vocab_size", u32(plan.dims().vocab));
  if (plan.spec().pieces.empty()) {
    write_llama_vocabulary(plan.gguf(), plan.dims().vocab);
  } else {
    write_learned_vocabulary(plan.gguf(), plan.spec().pieces);
  }
}

void attention_metadata(PlanBuilder& plan, std::int64_t head_dim) {
  plan.set("attention.head_count", u32(plan.dims().heads));
  plan.set("attention.head_count_kv", u32(plan.dims().kv_heads));
  plan.set("attention.key_length", u32(head_dim));
  plan.set("attention.value_length", u32(head_dim));
  plan.set("attention.layer_norm_rms_epsilon", 1e-5F);
  plan.set("rope.dimension_count", u32(head_dim));
  plan.set("rope.freq_base", 10000.0F);
}

void expert_metadata(PlanBuilder& plan) {
  plan.set("expert_count", u32(plan.dims().experts));
  plan.set("expert_used_count", u32(plan.dims().experts_used));
  plan.set("expert_feed_forward_length", u32(plan.dims().ff));
}

// Within a layer, tensors are in the order of a checkpoint sorted by name.
void attention(PlanBuilder& plan, std::int64_t layer, std::int64_t head_dim) {
  const Dims& d = plan.dims();
  plan.matrix(layer_name(layer, "attn_k.weight"), Attention, {d.embd, head_dim * d.kv_heads});
  plan.matrix(layer_name(layer, "attn_output.weight"), Attention, {head_dim * d.heads, d.embd});
  plan.matrix(layer_name(layer, "attn_q.weight"), Attention, {d.embd, head_dim * d.heads});
  plan.matrix(layer_name(layer, "attn_v.weight"), Attention, {d.embd, head_dim * d.kv_heads});
}

// A dense feed-forward block; suffix "_shexp" for shared experts.
void dense_ffn(PlanBuilder& plan, std::int64_t layer, std::int64_t ff, std::string_view suffix) {
  const std::int64_t embd = plan.dims().embd;
  const auto name = [&](std::string_view part) {
    return layer_name(layer, std::format("ffn_{}{}.weight", part, suffix));
  };
  plan.matrix(name("down"), Ffn, {ff, embd});
  plan.matrix(name("gate"), Ffn, {embd, ff});
  plan.matrix(name("up"), Ffn, {embd, ff});
}

void experts(PlanBuilder& plan, std::int64_t layer) {
  const Dims& d = plan.dims();
  plan.matrix(layer_name(layer, "ffn_down_exps.weight"), Experts, {d.ff, d.embd, d.experts});
  plan.matrix(layer_name(layer, "ffn_gate_exps.weight"), Experts, {d.embd, d.ff, d.experts});
  plan.matrix(layer_name(layer, "ffn_up_exps.weight"), Experts, {d.embd, d.ff, d.experts});
  // Larger than 1/sqrt(embd), so that the router's scores differ between experts.
  plan.fixed(layer_name(layer, "ffn_gate_inp.weight"), {d.embd, d.experts},
             {0.0F, 0.1F, plan.spec().router_skew});
}

}  // namespace

void build_llama(PlanBuilder& plan) {
  const Dims& d = plan.dims();
  const std::int64_t head_dim = d.embd / d.heads;
  attention_metadata(plan, head_dim);
  if (d.experts > 0) {
    expert_metadata(plan);
  }
  vocabulary(plan);

  plan.output();
  plan.embedding();
  for (const std::int64_t layer : file_order(d.layers)) {
    plan.norm(layer_name(layer, "attn_norm.weight"), d.embd);
    if (d.experts > 0) {
      experts(plan, layer);
    } else {
      dense_ffn(plan, layer, d.ff, "");
    }
    plan.norm(layer_name(layer, "ffn_norm.weight"), d.embd);
    attention(plan, layer, head_dim);
  }
  plan.norm("output_norm.weight", d.embd);
}

void build_qwen3_moe(PlanBuilder& plan) {
  const Dims& d = plan.dims();
  const std::int64_t head_dim = 64;  // independent of embd / heads, as in the real model
  attention_metadata(plan, head_dim);
  expert_metadata(plan);
  vocabulary(plan);

  plan.output();
  plan.embedding();
  for (const std::int64_t layer : file_order(d.layers)) {
    plan.norm(layer_name(layer, "attn_norm.weight"), d.embd);
    experts(plan, layer);
    plan.norm(layer_name(layer, "ffn_norm.weight"), d.embd);
    plan.norm(layer_name(layer, "attn_k_norm.weight"), head_dim);
    plan.norm(layer_name(layer, "attn_q_norm.weight"), head_dim);
    attention(plan, layer, head_dim);
  }
  plan.norm("output_norm.weight", d.embd);
}

void build_gpt_oss(PlanBuilder& plan) {
  const Dims& d = plan.dims();
  const std::int64_t head_dim = 64;
  attention_metadata(plan, head_dim);
  plan.set("attention.sliding_window", u32(128));  // every other layer
  plan.set("rope.scaling.type", std::string_view("yarn"));
  plan.set("rope.scaling.factor", 32.0F);
  plan.set("rope.scaling.original_context_length", u32(4096));
  expert_metadata(plan);
  vocabulary(plan);

  plan.output();
  plan.embedding();
  for (const std::int64_t layer : file_order(d.layers)) {
    plan.norm(layer_name(layer, "attn_norm.weight"), d.embd);
    experts(plan, layer);
    plan.bias(layer_name(layer, "ffn_down_exps.bias"), {d.embd, d.experts});
    plan.bias(layer_name(layer, "ffn_gate_exps.bias"), {d.ff, d.experts});
    plan.bias(layer_name(layer, "ffn_up_exps.bias"), {d.ff, d.experts});
    plan.bias(layer_name(layer, "ffn_gate_inp.bias"), {d.experts});
    plan.norm(layer_name(layer, "post_attention_norm.weight"), d.embd);
    attention(plan, layer, head_dim);
    plan.bias(layer_name(layer, "attn_k.bias"), {head_dim * d.kv_heads});
    plan.bias(layer_name(layer, "attn_output.bias"), {d.embd});
    plan.bias(layer_name(layer, "attn_q.bias"), {head_dim * d.heads});
    plan.bias(layer_name(layer, "attn_v.bias"), {head_dim * d.kv_heads});
    plan.fixed(layer_name(layer, "attn_sinks.weight"), {d.heads}, {0.0F, 1.0F});
  }
  plan.norm("output_norm.weight", d.embd);
}

void build_deepseek2(PlanBuilder& plan) {
  const Dims& d = plan.dims();
  // Latent attention: queries and keys have a part without positions (nope) and a part with
  // positions (rope). The cache stores the compressed form, shared by all heads.
  const std::int64_t q_rank = 256;
  const std::int64_t kv_rank = 256;
  const std::int64_t nope = 256;
  const std::int64_t rope = 64;
  const std::int64_t value = 256;
  plan.set("attention.head_count", u32(d.heads));
  plan.set("attention.head_count_kv", u32(1));
  plan.set("attention.q_lora_rank", u32(q_rank));
  plan.set("attention.kv_lora_rank", u32(kv_rank));
  plan.set("attention.key_length", u32(kv_rank + rope));
  plan.set("attention.value_length", u32(kv_rank));
  plan.set("attention.key_length_mla", u32(nope + rope));
  plan.set("attention.value_length_mla", u32(value));
  plan.set("attention.layer_norm_rms_epsilon", 1e-6F);
  plan.set("rope.dimension_count", u32(rope));
  plan.set("rope.freq_base", 10000.0F);
  expert_metadata(plan);
  plan.set("leading_dense_block_count", u32(1));
  plan.set("expert_shared_count", u32(1));
  plan.set("expert_weights_scale", 1.0F);
  plan.set("expert_weights_norm", true);
  plan.set("expert_gating_func", u32(2));  // sigmoid
  vocabulary(plan);

  plan.output();
  plan.embedding();
  for (const std::int64_t layer : file_order(d.layers)) {
    plan.norm(layer_name(layer, "attn_norm.weight"), d.embd);
    if (layer == 0) {
      dense_ffn(plan, layer, d.ff, "");
    } else {
      experts(plan, layer);
      plan.bias(layer_name(layer, "exp_probs_b.bias"), {d.experts});
      dense_ffn(plan, layer, d.ff, "_shexp");
    }
    plan.norm(layer_name(layer, "ffn_norm.weight"), d.embd);
    plan.norm(layer_name(layer, "attn_kv_a_norm.weight"), kv_rank);
    plan.matrix(layer_name(layer, "attn_kv_a_mqa.weight"), Attention, {d.embd, kv_rank + rope});
    plan.matrix(layer_name(layer, "attn_k_b.weight"), Attention, {nope, kv_rank, d.heads});
    plan.matrix(layer_name(layer, "attn_v_b.weight"), Attention, {kv_rank, value, d.heads});
    plan.matrix(layer_name(layer, "attn_output.weight"), Attention, {d.heads * value, d.embd});
    plan.norm(layer_name(layer, "attn_q_a_norm.weight"), q_rank);
    plan.matrix(layer_name(layer, "attn_q_a.weight"), Attention, {d.embd, q_rank});
    plan.matrix(layer_name(layer, "attn_q_b.weight"), Attention, {q_rank, d.heads * (nope + rope)});
  }
  plan.norm("output_norm.weight", d.embd);
}

}  // namespace tt::modelgen::detail
