// Architectures that are not decoder-only transformers: mamba, t5, bert, rwkv7.

#include <gguf.h>

#include "tracer/modelgen/detail/shapes.h"
#include "tracer/modelgen/detail/vocabulary.h"

namespace tt::modelgen::detail {
namespace {

using enum TensorClass;

void layer_norm(PlanBuilder& plan, const std::string& name, std::int64_t size) {
  plan.norm(name + ".weight", size);
  plan.bias(name + ".bias", {size});
}

}  // namespace

void build_mamba(PlanBuilder& plan) {
  const Dims& d = plan.dims();
  const std::int64_t inner = 2 * d.embd;
  const std::int64_t state = 16;
  const std::int64_t conv = 4;
  const std::int64_t dt_rank = d.embd / 16;
  plan.set("attention.head_count", u32(0));
  plan.set("attention.layer_norm_rms_epsilon", 1e-5F);
  plan.set("ssm.conv_kernel", u32(conv));
  plan.set("ssm.inner_size", u32(inner));
  plan.set("ssm.state_size", u32(state));
  plan.set("ssm.time_step_rank", u32(dt_rank));
  plan.set("vocab_size", u32(d.vocab));
  write_llama_vocabulary(plan.gguf(), d.vocab);

  plan.output();
  plan.embedding();
  for (const std::int64_t layer : file_order(d.layers)) {
    plan.norm(layer_name(layer, "attn_norm.weight"), d.embd);
    plan.fixed(layer_name(layer, "ssm_a"), {state, inner}, {-1.0F, 0.0F});  // decays
    plan.fixed(layer_name(layer, "ssm_d"), {inner}, {1.0F, 0.0F});
    plan.bias(layer_name(layer, "ssm_conv1d.bias"), {inner});
    plan.fixed(layer_name(layer, "ssm_conv1d.weight"), {conv, inner}, {0.0F, 0.5F});
    plan.fixed(layer_name(layer, "ssm_dt.bias"), {inner}, {-4.0F, 0.5F});  // steps of 0.01 to 0.05
    plan.fixed(layer_name(layer, "ssm_dt.weight"), {dt_rank, inner}, {0.0F, 0.1F});
    plan.matrix(layer_name(layer, "ssm_in.weight"), Ssm, {d.embd, 2 * inner});
    plan.matrix(layer_name(layer, "ssm_out.weight"), Ssm, {inner, d.embd});
    plan.matrix(layer_name(layer, "ssm_x.weight"), Ssm, {inner, dt_rank + 2 * state});
  }
  plan.norm("output_norm.weight", d.embd);
}

void build_t5(PlanBuilder& plan) {
  const Dims& d = plan.dims();
  const std::int64_t buckets = 32;
  const std::int64_t head_dim = d.embd / d.heads;
  plan.set("attention.head_count", u32(d.heads));
  plan.set("attention.key_length", u32(head_dim));
  plan.set("attention.value_length", u32(head_dim));
  plan.set("attention.layer_norm_epsilon", 1e-6F);
  plan.set("attention.layer_norm_rms_epsilon", 1e-6F);
  plan.set("attention.relative_buckets_count", u32(buckets));
  plan.set("decoder_start_token_id", u32(0));
  plan.set("decoder_block_count", u32(d.layers));
  plan.set("vocab_size", u32(d.vocab));
  write_t5_vocabulary(plan.gguf(), d.vocab);

  const auto attention = [&](const std::string& prefix) {
    plan.matrix(prefix + "k.weight", Attention, {d.embd, d.embd});
    plan.matrix(prefix + "o.weight", Attention, {d.embd, d.embd});
    plan.matrix(prefix + "q.weight", Attention, {d.embd, d.embd});
    plan.matrix(prefix + "v.weight", Attention, {d.embd, d.embd});
  };
  const auto ffn = [&](const std::string& block) {
    plan.matrix(block + "ffn_down.weight", Ffn, {d.ff, d.embd});
    plan.matrix(block + "ffn_gate.weight", Ffn, {d.embd, d.ff});
    plan.matrix(block + "ffn_up.weight", Ffn, {d.embd, d.ff});
    plan.norm(block + "ffn_norm.weight", d.embd);
  };
  // Only the first layer of encoder and decoder has the position bias.
  const auto self_attention = [&](const std::string& block, std::int64_t layer) {
    attention(block + "attn_");
    plan.norm(block + "attn_norm.weight", d.embd);
    if (layer == 0) {
      plan.fixed(block + "attn_rel_b.weight", {d.heads, buckets}, {0.0F, 0.5F});
    }
  };
  plan.output();
  plan.embedding();
  for (const std::int64_t layer : file_order(d.layers)) {
    const std::string block = std::format("dec.blk.{}.", layer);
    self_attention(block, layer);
    attention(block + "cross_attn_");
    plan.norm(block + "cross_attn_norm.weight", d.embd);
    ffn(block);
  }
  plan.norm("dec.output_norm.weight", d.embd);
  for (const std::int64_t layer : file_order(d.layers)) {
    const std::string block = std::format("enc.blk.{}.", layer);
    self_attention(block, layer);
    ffn(block);
  }
  plan.norm("enc.output_norm.weight", d.embd);
}

void build_bert(PlanBuilder& plan) {
  const Dims& d = plan.dims();
  plan.set("attention.head_count", u32(d.heads));
  plan.set("attention.layer_norm_epsilon", 1e-12F);
  plan.set("attention.causal", false);
  plan.set("pooling_type", u32(1));  // mean
  plan.set("vocab_size", u32(d.vocab));
  write_bert_vocabulary(plan.gguf(), d.vocab);

  plan.fixed("position_embd.weight", {d.embd, d.context}, {0.0F, 0.02F});
  plan.fixed("token_types.weight", {d.embd, 2}, {0.0F, 0.02F});
  plan.embedding();
  layer_norm(plan, "token_embd_norm", d.embd);
  for (const std::int64_t layer : file_order(d.layers)) {
    layer_norm(plan, layer_name(layer, "attn_output_norm"), d.embd);
    for (const char* part : {"attn_output", "attn_k", "attn_q", "attn_v"}) {
      plan.bias(layer_name(layer, std::format("{}.bias", part)), {d.embd});
      plan.matrix(layer_name(layer, std::format("{}.weight", part)), Attention, {d.embd, d.embd});
    }
    plan.bias(layer_name(layer, "ffn_up.bias"), {d.ff});
    plan.matrix(layer_name(layer, "ffn_up.weight"), Ffn, {d.embd, d.ff});
    layer_norm(plan, layer_name(layer, "layer_output_norm"), d.embd);
    plan.bias(layer_name(layer, "ffn_down.bias"), {d.embd});
    plan.matrix(layer_name(layer, "ffn_down.weight"), Ffn, {d.ff, d.embd});
  }
}

void build_rwkv7(PlanBuilder& plan) {
  const Dims& d = plan.dims();
  const std::int64_t rank = 32;  // of every low-rank pair
  plan.set("attention.head_count", u32(0));
  plan.set("attention.layer_norm_epsilon", 1e-5F);
  plan.set("attention.decay_lora_rank", u32(rank));
  plan.set("attention.iclr_lora_rank", u32(rank));
  plan.set("attention.value_residual_mix_lora_rank", u32(rank));
  plan.set("attention.gate_lora_rank", u32(rank));
  plan.set("wkv.head_size", u32(64));
  plan.set("token_shift_count", u32(2));
  plan.set("vocab_size", u32(d.vocab));
  write_rwkv_vocabulary(plan.gguf(), d.vocab);

  plan.embedding();
  layer_norm(plan, "token_embd_norm", d.embd);
  for (const std::int64_t layer : file_order(d.layers)) {
    const auto name = [&](std::string_view part) {
      return layer_name(layer, std::format("{}.weight", part));
    };
    // x + (base + tanh(x A) B): A maps to the rank, B maps back.
    const auto low_rank = [&](char which) {
      plan.fixed(name(std::format("time_mix_{}1", which)), {d.embd, rank}, {0.0F, 0.05F});
      plan.fixed(name(std::format("time_mix_{}2", which)), {rank, d.embd}, {0.0F, 0.05F});
    };
    layer_norm(plan, layer_name(layer, "attn_norm"), d.embd);
    layer_norm(plan, layer_name(layer, "attn_norm_2"), d.embd);
    plan.fixed(name("channel_mix_lerp_k"), {d.embd, 1, 1}, {0.5F, 0.1F});
    plan.matrix(name("channel_mix_key"), Ffn, {d.embd, d.ff});
    plan.matrix(name("channel_mix_value"), Ffn, {d.ff, d.embd});
    for (const char base : {'a', 'v', 'w'}) {
      // The first layer does not mix its value (other layers mix with it), but the library
      // requires tensors of that name with the rank of "a".
      plan.fixed(name(std::format("time_mix_{}0", base)), {d.embd}, {-1.0F, 0.3F});
      low_rank(base);
    }
    low_rank('g');
    plan.fixed(name("time_mix_k_a"), {d.embd}, {1.0F, 0.0F});
    plan.fixed(name("time_mix_k_k"), {d.embd}, {0.8F, 0.1F});
    plan.fixed(name("time_mix_r_k"), {d.embd}, {0.0F, 0.05F});
    plan.fixed(name("time_mix_lerp_fused"), {d.embd, 1, 1, 6}, {0.5F, 0.1F});
    layer_norm(plan, layer_name(layer, "time_mix_ln"), d.embd);
    for (const char* part : {"key", "output", "receptance", "value"}) {
      plan.matrix(name(std::format("time_mix_{}", part)), Ssm, {d.embd, d.embd});
    }
  }
  layer_norm(plan, "output_norm", d.embd);
  plan.output();
}

}  // namespace tt::modelgen::detail
