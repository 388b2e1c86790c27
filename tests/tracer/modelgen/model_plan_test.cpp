#include "tracer/modelgen/model_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace tt::modelgen {
namespace {

std::set<std::string> names_of_type(const ModelPlan& plan, ggml_type type) {
  std::set<std::string> names;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.type == type) {
      names.insert(tensor.name);
    }
  }
  return names;
}

TEST(ModelPlan, LayersAreSortedByName) {
  EXPECT_EQ(file_order(12), (std::vector<std::int64_t>{0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// The 21 weights that a hook inside ggml's plain matmul observed on TinyLlama Q4_K_M.
TEST(ModelPlan, TinyLlamaPromotesExactlyTwentyOneTensorsToQ6K) {
  const auto plan = plan_model({.shape = "tinyllama-1.1b"});
  ASSERT_TRUE(plan) << plan.error().message;
  std::set<std::string> expected = {"output.weight"};
  for (const int layer : {0, 1, 4, 7, 8, 9, 12, 15, 18, 20}) {
    expected.insert("blk." + std::to_string(layer) + ".attn_v.weight");
    expected.insert("blk." + std::to_string(layer) + ".ffn_down.weight");
  }
  EXPECT_EQ(names_of_type(*plan, GGML_TYPE_Q6_K), expected);
  EXPECT_EQ(names_of_type(*plan, GGML_TYPE_F32).size(), 45U);
  EXPECT_EQ(plan->tensors.size(), 201U);
  EXPECT_EQ(plan->weight_bytes() >> 20U, 636U);
}

TEST(ModelPlan, ExpertsArePromotedByTheirLayer) {
  const auto plan = plan_model({.shape = "moe"});
  ASSERT_TRUE(plan) << plan.error().message;
  std::set<std::string> down;
  for (const std::string& name : names_of_type(*plan, GGML_TYPE_Q6_K)) {
    if (name.contains("ffn_down_exps")) {
      down.insert(name);
    }
  }
  EXPECT_EQ(down,
            (std::set<std::string>{"blk.0.ffn_down_exps.weight", "blk.3.ffn_down_exps.weight",
                                   "blk.6.ffn_down_exps.weight", "blk.7.ffn_down_exps.weight"}));
}

TEST(ModelPlan, TiedModelHasNoHeadAndPromotesItsEmbedding) {
  const auto plan = plan_model({.shape = "small", .tied = true});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(std::ranges::none_of(
      plan->tensors, [](const PlannedTensor& tensor) { return tensor.name == "output.weight"; }));
  EXPECT_TRUE(names_of_type(*plan, GGML_TYPE_Q6_K).contains("token_embd.weight"));
}

TEST(ModelPlan, ClassesOverrideMixAndNormsRemainF32) {
  ModelSpec spec{.shape = "moe", .quant = "f16"};
  for (const char* text : {"experts=q4_0", "Attention=Q8_0", "output=f32"}) {
    const auto chosen = parse_class_type(text);
    ASSERT_TRUE(chosen) << chosen.error().message;
    spec.class_type.insert(*chosen);
  }
  const auto plan = plan_model(spec);
  ASSERT_TRUE(plan) << plan.error().message;
  for (const PlannedTensor& tensor : plan->tensors) {
    const ggml_type expected_type = tensor.cls == TensorClass::Experts     ? GGML_TYPE_Q4_0
                                    : tensor.cls == TensorClass::Attention ? GGML_TYPE_Q8_0
                                    : tensor.cls == TensorClass::Embedding ? GGML_TYPE_F16
                                                                           : GGML_TYPE_F32;
    EXPECT_EQ(tensor.type, expected_type) << tensor.name;
  }
}

TEST(ModelPlan, RejectsInvalidSpecsWithReason) {
  using Kind = ModelError::Kind;
  struct Case {
    const char* what;
    ModelSpec spec;
    Kind kind;
    const char* says;
  };
  const Case cases[] = {
      {"shape", {.shape = "llama-9000"}, Kind::UnknownShape, "known: tinyllama-1.1b, small"},
      {"quant", {.quant = "q9_z"}, Kind::UnknownQuantization, "unknown quantization 'q9_z'"},
      {"width for q4_k",
       {.dims = {.embd = 192, .heads = 6, .kv_heads = 6}, .quant = "q4_k"},
       Kind::BadSpec,
       "q4_k needs rows of a multiple of 256 values, but this tensor has 192"},
      {"class type",
       {.dims = {.ff = 384}, .quant = "f16", .class_type = {{TensorClass::Ffn, GGML_TYPE_Q6_K}}},
       Kind::BadSpec,
       "blk.0.ffn_down.weight: q6_k needs rows"},
      {"heads", {.dims = {.heads = 7}}, Kind::BadSpec, "heads: 7 does not divide embd 256"},
      {"kv heads", {.dims = {.kv_heads = 3}}, Kind::BadSpec, "kv-heads: 3 does not divide heads 8"},
      {"no layers", {.dims = {.layers = 0}}, Kind::BadSpec, "layers: 0 must be from 1 to"},
      {"no experts",
       {.dims = {.experts = 4}},
       Kind::BadSpec,
       "experts: the shape small does not have this size"},
      {"few experts",
       {.shape = "moe", .dims = {.experts = 1}},
       Kind::BadSpec,
       "experts-used: 2 is more than experts (1)"},
      {"vocab", {.dims = {.vocab = 100}}, Kind::BadSpec, "vocab: 100 is too small"},
      {"splits", {.splits = 0}, Kind::BadSpec, "splits: 0 must be from 1 to"},
      {"more splits than tensors", {.splits = 100000}, Kind::BadSpec, "splits: 100000"},
      {"tied", {.shape = "rwkv", .tied = true}, Kind::BadSpec, "tied: the shape rwkv"},
      {"pieces",
       {.shape = "bert", .pieces = {"a"}},
       Kind::BadSpec,
       "does not support a learned vocabulary"},
  };
  for (const Case& c : cases) {
    const auto plan = plan_model(c.spec);
    ASSERT_FALSE(plan) << c.what;
    EXPECT_EQ(plan.error().kind, c.kind) << c.what;
    EXPECT_TRUE(plan.error().message.contains(c.says)) << c.what << ": " << plan.error().message;
  }
}

TEST(ModelPlan, ClassTypeRequiresKnownClassAndType) {
  for (const char* text : {"", "ffn", "norm=q8_0", "ffn=", "ffn=iq2_xxs", "=q8_0"}) {
    const auto chosen = parse_class_type(text);
    ASSERT_FALSE(chosen) << text;
    EXPECT_EQ(chosen.error().kind, ModelError::Kind::UnknownQuantization);
  }
}

}  // namespace
}  // namespace tt::modelgen
