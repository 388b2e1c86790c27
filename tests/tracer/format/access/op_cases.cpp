#include "tests/tracer/format/access/op_cases.h"

namespace tt::test {

namespace {

using S = OpScene;

bool causal(std::int64_t cell, std::int64_t query) { return cell <= query + 2; }
bool sliding(std::int64_t cell, std::int64_t query) {
  return cell <= query + 5 && cell + 3 > query + 5;
}

const OpCase kMatrix[] = {
    {"MulMatF32",
     [](S& s) { return ggml_mul_mat(s.ctx(), s.f32("w", {8, 6}), s.f32("x", {8, 3})); }},
    {"MulMatF16",
     [](S& s) { return ggml_mul_mat(s.ctx(), s.f16("w", {16, 6}), s.f32("x", {16, 3})); }},
    {"MulMatQ8",
     [](S& s) {
       return ggml_mul_mat(s.ctx(), s.leaf("w", GGML_TYPE_Q8_0, {64, 6}), s.f32("x", {64, 1}));
     }},
    {"MulMatQ4K",
     [](S& s) {
       return ggml_mul_mat(s.ctx(), s.leaf("w", GGML_TYPE_Q4_K, {512, 2}), s.f32("x", {512, 2}));
     }},
    {"MulMatGroupedQueries",  // 4 query heads share 2 heads of K
     [](S& s) { return ggml_mul_mat(s.ctx(), s.f16("k", {8, 5, 2}), s.f32("q", {8, 3, 4})); }},
    {"MulMatOfACacheView",  // 6 of 10 cells, heads side by side in a cell
     [](S& s) {
       ggml_tensor* cache = s.f16("cache", {16, 10});
       ggml_tensor* k = ggml_view_3d(s.ctx(), cache, 8, 2, 6, 16, 32, 0);
       return ggml_mul_mat(s.ctx(), ggml_permute(s.ctx(), k, 0, 2, 1, 3), s.f32("q", {8, 3, 4}));
     }},
    {"MulMatOfATransposedCacheView",  // V without flash attention
     [](S& s) {
       ggml_tensor* cache = s.f16("cache", {10, 8});
       ggml_tensor* v = ggml_view_2d(s.ctx(), cache, 6, 8, 20, 0);
       return ggml_mul_mat(s.ctx(), v, s.f32("kq", {6, 3}));
     }},
    {"MulMatId",
     [](S& s) {
       return ggml_mul_mat_id(s.ctx(), s.f32("w", {8, 3, 4}), s.f32("x", {8, 2, 2}),
                              s.i32("ids", {2, 2}, {1, 3, 3, 0}));
     }},
    {"MulMatIdOneInputForAllExperts",
     [](S& s) {
       return ggml_mul_mat_id(s.ctx(), s.leaf("w", GGML_TYPE_Q8_0, {32, 3, 8}),
                              s.f32("x", {32, 1, 2}), s.i32("ids", {2, 2}, {5, 2, 2, 5}));
     }},
    {"MulMatIdWithIdsOfAView",  // the first 2 of 4 sorted experts
     [](S& s) {
       ggml_tensor* sorted = s.i32("sorted", {4, 2}, {1, 3, 0, 2, 3, 1, 2, 0});
       return ggml_mul_mat_id(s.ctx(), s.f32("w", {8, 3, 4}), s.f32("x", {8, 2, 2}),
                              ggml_view_2d(s.ctx(), sorted, 2, 2, 16, 0));
     }},
    {"AddId",
     [](S& s) {
       return ggml_add_id(s.ctx(), s.f32("x", {4, 2, 2}), s.f32("bias", {4, 6}),
                          s.i32("ids", {2, 2}, {1, 4, 4, 2}));
     }},
    {"OutProd",
     [](S& s) { return ggml_out_prod(s.ctx(), s.f32("a", {4, 3}), s.f32("b", {5, 3})); }},
};

const OpCase kRows[] = {
    {"GetRows",
     [](S& s) {
       return ggml_get_rows(s.ctx(), s.f32("table", {6, 8}), s.i32("rows", {3}, {5, 2, 5}));
     }},
    {"GetRowsOfAQuantizedTable",
     [](S& s) {
       return ggml_get_rows(s.ctx(), s.leaf("table", GGML_TYPE_Q8_0, {64, 8}),
                            s.i32("rows", {3}, {0, 7, 3}));
     }},
    {"GetRowsPerBatch",  // routing weights: row = expert, batch = token
     [](S& s) {
       return ggml_get_rows(s.ctx(), s.f32("probs", {1, 6, 3}),
                            s.i32("ids", {2, 3}, {4, 1, 1, 4, 0, 0}));
     }},
    {"SetRowsOfACache",
     [](S& s) {
       return ggml_set_rows(s.ctx(), s.f16("cache", {6, 8}), s.f32("k", {6, 3}),
                            s.i64("cells", {3}, {5, 2, 6}));
     }},
    {"SetRowsOfAQuantizedCache",
     [](S& s) {
       return ggml_set_rows(s.ctx(), s.leaf("cache", GGML_TYPE_Q8_0, {64, 8}), s.f32("k", {64, 2}),
                            s.i64("cells", {2}, {1, 6}));
     }},
    {"SetRowsOfOneElement",  // the transposed V cache: one index per element
     [](S& s) {
       ggml_tensor* cache = s.f16("cache", {8, 3});
       return ggml_set_rows(s.ctx(), ggml_reshape_2d(s.ctx(), cache, 1, 24), s.f32("v", {1, 6}),
                            s.i64("cells", {6}, {2, 10, 18, 4, 12, 20}));
     }},
    {"SetRowsSameListForAllBatches",
     [](S& s) {
       return ggml_set_rows(s.ctx(), s.f32("cache", {4, 6, 2}), s.f32("k", {4, 2, 2}),
                            s.i64("cells", {2}, {0, 3}));
     }},
    {"SetRowsListPerBatch",
     [](S& s) {
       return ggml_set_rows(s.ctx(), s.f32("cache", {4, 6, 2}), s.f32("k", {4, 2, 2}),
                            s.i64("cells", {2, 2}, {0, 3, 5, 1}));
     }},
};

const OpCase kMoves[] = {
    {"ContOfAPermutedView",
     [](S& s) {
       return ggml_cont(s.ctx(), ggml_permute(s.ctx(), s.f32("x", {4, 3, 2}), 1, 0, 2, 3));
     }},
    {"ContOfAStridedView",
     [](S& s) {
       return ggml_cont(s.ctx(), ggml_view_2d(s.ctx(), s.f32("x", {8, 4}), 3, 4, 32, 8));
     }},
    {"ContOfOverlappingWindows",
     [](S& s) { return ggml_cont(s.ctx(), ggml_view_2d(s.ctx(), s.f32("x", {20}), 4, 5, 8, 0)); }},
    {"CpyIntoAView",
     [](S& s) {
       ggml_tensor* cache = s.f16("cache", {8, 6});
       return ggml_cpy(s.ctx(), s.f32("x", {4, 3}), ggml_view_2d(s.ctx(), cache, 4, 3, 16, 32));
     }},
    {"CpyWithinOneTensor",
     [](S& s) {
       ggml_tensor* state = s.f32("state", {4, 6});
       return ggml_cpy(s.ctx(), ggml_view_2d(s.ctx(), state, 4, 2, 16, 64),
                       ggml_view_2d(s.ctx(), state, 4, 2, 16, 0));
     }},
    {"CastToF16", [](S& s) { return ggml_cast(s.ctx(), s.f32("x", {6, 3}), GGML_TYPE_F16); }},
    {"Dup", [](S& s) { return ggml_dup(s.ctx(), s.f32("x", {6, 3})); }},
    {"ConcatAlongRows",
     [](S& s) { return ggml_concat(s.ctx(), s.f32("a", {4, 2}), s.f32("b", {4, 3}), 1); }},
    {"ConcatWithinRows",
     [](S& s) { return ggml_concat(s.ctx(), s.f32("a", {4, 2}), s.f32("b", {3, 2}), 0); }},
    {"Repeat", [](S& s) { return ggml_repeat_4d(s.ctx(), s.f32("x", {3, 1, 2}), 6, 4, 2, 1); }},
    {"Pad", [](S& s) { return ggml_pad(s.ctx(), s.f32("x", {4, 3}), 2, 1, 0, 0); }},
    {"Roll", [](S& s) { return ggml_roll(s.ctx(), s.f32("x", {4, 3}), 1, 1, 0, 0); }},
    {"AccInPlace",
     [](S& s) {
       return ggml_acc_inplace(s.ctx(), s.f32("a", {6, 5}), s.f32("b", {3, 2}), 24, 120, 120, 32);
     }},
    {"Acc",
     [](S& s) {
       return ggml_acc(s.ctx(), s.f32("a", {6, 5}), s.f32("b", {3, 2}), 24, 120, 120, 32);
     }},
    {"SetInPlace",
     [](S& s) {
       return ggml_set_inplace(s.ctx(), s.f32("a", {6, 5}), s.f32("b", {3, 2}), 24, 120, 120, 32);
     }},
    {"Arange", [](S& s) { return ggml_arange(s.ctx(), 1, 7, 1); }},
    {"Fill", [](S& s) { return ggml_fill(s.ctx(), s.f32("x", {4, 3}), 2.0f); }},
    {"FillInPlace", [](S& s) { return ggml_fill_inplace(s.ctx(), s.f32("x", {4, 3}), 2.0f); }},
    {"Diag", [](S& s) { return ggml_diag(s.ctx(), s.f32("x", {4})); }},
    {"TriLower",
     [](S& s) { return ggml_tri(s.ctx(), s.f32("x", {4, 4, 2}), GGML_TRI_TYPE_LOWER); }},
    {"TriUpperDiag",
     [](S& s) { return ggml_tri(s.ctx(), s.f32("x", {4, 4}), GGML_TRI_TYPE_UPPER_DIAG); }},
    {"Upscale",
     [](S& s) { return ggml_upscale(s.ctx(), s.f32("x", {3, 2, 1}), 2, GGML_SCALE_MODE_NEAREST); }},
};

const OpCase kElementwise[] = {
    {"AddBroadcast",
     [](S& s) { return ggml_add(s.ctx(), s.f32("x", {6, 4}), s.f32("bias", {6})); }},
    {"AddInPlace",
     [](S& s) { return ggml_add_inplace(s.ctx(), s.f32("x", {6, 4}), s.f32("y", {6, 4})); }},
    {"MulBySelf",  // one tensor named twice is read once
     [](S& s) {
       ggml_tensor* x = s.f32("x", {6, 4});
       return ggml_mul(s.ctx(), x, x);
     }},
    {"AddOfAViewOfTheOtherSource",
     [](S& s) {
       ggml_tensor* x = s.f32("x", {6, 4});
       return ggml_add(s.ctx(), x, ggml_view_1d(s.ctx(), x, 6, 24));
     }},
    {"Sub", [](S& s) { return ggml_sub(s.ctx(), s.f32("x", {6, 4}), s.f32("y", {6, 4})); }},
    {"DivByRow", [](S& s) { return ggml_div(s.ctx(), s.f32("x", {6, 4}), s.f32("sums", {1, 4})); }},
    {"Sqr", [](S& s) { return ggml_sqr(s.ctx(), s.f32("x", {6, 4})); }},
    {"Sqrt", [](S& s) { return ggml_sqrt(s.ctx(), s.f32("x", {6, 4})); }},
    {"ScaleInPlace", [](S& s) { return ggml_scale_inplace(s.ctx(), s.f32("x", {6, 4}), 0.5f); }},
    {"Silu", [](S& s) { return ggml_silu(s.ctx(), s.f32("x", {6, 4})); }},
    {"Abs", [](S& s) { return ggml_abs(s.ctx(), s.f32("x", {6, 4})); }},
    {"Exp", [](S& s) { return ggml_exp(s.ctx(), s.f32("x", {6, 4})); }},
    {"Gelu", [](S& s) { return ggml_gelu(s.ctx(), s.f32("x", {6, 4})); }},
    {"Neg", [](S& s) { return ggml_neg(s.ctx(), s.f32("x", {6, 4})); }},
    {"Relu", [](S& s) { return ggml_relu(s.ctx(), s.f32("x", {6, 4})); }},
    {"Sgn", [](S& s) { return ggml_sgn(s.ctx(), s.f32("x", {6, 4})); }},
    {"Sigmoid", [](S& s) { return ggml_sigmoid(s.ctx(), s.f32("x", {6, 4})); }},
    {"Softplus", [](S& s) { return ggml_softplus(s.ctx(), s.f32("x", {6, 4})); }},
    {"Tanh", [](S& s) { return ggml_tanh(s.ctx(), s.f32("x", {6, 4})); }},
    {"Clamp", [](S& s) { return ggml_clamp(s.ctx(), s.f32("x", {6, 4}), -9.0f, 9.0f); }},
    {"GluOfOneSource", [](S& s) { return ggml_swiglu(s.ctx(), s.f32("x", {8, 3})); }},
    {"GluOfTwoSources",
     [](S& s) { return ggml_swiglu_split(s.ctx(), s.f32("gate", {8, 3}), s.f32("up", {8, 3})); }},
    {"GluOfGelu", [](S& s) { return ggml_geglu(s.ctx(), s.f32("x", {8, 3})); }},
    {"GluOfRelu", [](S& s) { return ggml_reglu(s.ctx(), s.f32("x", {8, 3})); }},
    {"GluOfGptOss",
     [](S& s) {
       return ggml_swiglu_oai(s.ctx(), s.f32("gate", {8, 3}), s.f32("up", {8, 3}), 1.702f, 7.0f);
     }},
    {"GluWithAClamp",
     [](S& s) {
       return ggml_swiglu_clamp(s.ctx(), s.f32("gate", {8, 3}), s.f32("up", {8, 3}), 7.0f);
     }},
    {"SumRows", [](S& s) { return ggml_sum_rows(s.ctx(), s.f32("x", {6, 4})); }},
    {"Mean", [](S& s) { return ggml_mean(s.ctx(), s.f32("x", {6, 4})); }},
    {"CumSum", [](S& s) { return ggml_cumsum(s.ctx(), s.f32("x", {6, 4})); }},
    {"Norm", [](S& s) { return ggml_norm(s.ctx(), s.f32("x", {6, 4}), 1e-5f); }},
    {"RmsNorm", [](S& s) { return ggml_rms_norm(s.ctx(), s.f32("x", {6, 4}), 1e-5f); }},
    {"RmsNormOfAView",
     [](S& s) {
       return ggml_rms_norm(s.ctx(),
                            ggml_view_3d(s.ctx(), s.f32("x", {12, 4}), 3, 2, 4, 12, 48, 24), 1e-5f);
     }},
    {"RmsNormAndMulFused",
     [](S& s) {
       return ggml_mul(s.ctx(), ggml_rms_norm(s.ctx(), s.f32("x", {6, 4}), 1e-5f),
                       s.f32("weight", {6}));
     }},
    {"L2Norm", [](S& s) { return ggml_l2_norm(s.ctx(), s.f32("x", {6, 4}), 1e-5f); }},
    {"GroupNorm", [](S& s) { return ggml_group_norm(s.ctx(), s.f32("x", {4, 2, 4}), 2, 1e-5f); }},
    {"ArgSort",
     [](S& s) { return ggml_argsort(s.ctx(), s.f32("x", {6, 4}), GGML_SORT_ORDER_DESC); }},
    {"TopK", [](S& s) { return ggml_top_k(s.ctx(), s.f32("x", {8, 3}), 2); }},
    {"SoftMaxInPlace", [](S& s) { return ggml_soft_max_inplace(s.ctx(), s.f32("x", {6, 4})); }},
    {"ArgMax", [](S& s) { return ggml_argmax(s.ctx(), s.f32("x", {6, 2})); }},
};

const OpCase kAttention[] = {
    {"RopeNormal",
     [](S& s) {
       return ggml_rope(s.ctx(), s.f32("q", {8, 2, 3}), s.i32("pos", {3}, {4, 6, 9}), 8, 0);
     }},
    {"RopeOfFewerDimensionsWithFactors",  // 4 of 8, so 2 factors of 3
     [](S& s) {
       return ggml_rope_ext(s.ctx(), s.f32("q", {8, 2, 3}), s.i32("pos", {3}, {4, 6, 9}),
                            s.f32("factors", {3}), 4, GGML_ROPE_TYPE_NEOX, 64, 10000.0f, 1.0f, 0.0f,
                            1.0f, 32.0f, 1.0f);
     }},
    {"RopeInPlaceOfAView",
     [](S& s) {
       ggml_tensor* qkv = s.f32("qkv", {24, 3});
       return ggml_rope_ext_inplace(s.ctx(), ggml_view_3d(s.ctx(), qkv, 8, 2, 3, 32, 96, 0),
                                    s.i32("pos", {3}, {4, 6, 9}), nullptr, 8, 0, 64, 10000.0f, 1.0f,
                                    0.0f, 1.0f, 32.0f, 1.0f);
     }},
    {"RopeMulti",
     [](S& s) {
       int sections[4] = {1, 1, 1, 1};
       return ggml_rope_multi(
           s.ctx(), s.f32("q", {8, 2, 3}), s.i32("pos", {12}, {4, 6, 8, 1, 2, 3, 5, 7, 9, 1, 1, 1}),
           nullptr, 8, sections, GGML_ROPE_TYPE_MROPE, 64, 10000.0f, 1.0f, 0.0f, 1.0f, 32.0f, 1.0f);
     }},
    {"RopeBack",
     [](S& s) {
       return ggml_rope_ext_back(s.ctx(), s.f32("q", {8, 2, 3}), s.i32("pos", {3}, {4, 6, 9}),
                                 nullptr, 8, 0, 64, 10000.0f, 1.0f, 0.0f, 1.0f, 32.0f, 1.0f);
     }},
    {"SoftMax", [](S& s) { return ggml_soft_max(s.ctx(), s.f32("kq", {6, 4})); }},
    {"SoftMaxWithMask",
     [](S& s) {
       return ggml_soft_max_ext(s.ctx(), s.f32("kq", {8, 4, 2}),
                                s.mask("mask", GGML_TYPE_F16, {8, 4}, causal), 0.5f, 0.0f);
     }},
    {"SoftMaxWithAMaskOfMoreQueries",
     [](S& s) {
       return ggml_soft_max_ext(s.ctx(), s.f32("kq", {8, 4, 2}),
                                s.mask("mask", GGML_TYPE_F32, {8, 6}, causal), 0.5f, 0.0f);
     }},
    {"SoftMaxWithSinks",
     [](S& s) {
       ggml_tensor* out =
           ggml_soft_max_ext(s.ctx(), s.f32("kq", {8, 4, 2}),
                             s.mask("mask", GGML_TYPE_F16, {8, 4}, causal), 0.5f, 0.0f);
       ggml_soft_max_add_sinks(out, s.f32("sinks", {2}));
       return out;
     }},
    {"FlashAttentionOneQuery",
     [](S& s) {
       return ggml_flash_attn_ext(s.ctx(), s.f32("q", {16, 1, 4}), s.f16("k", {16, 8, 2}),
                                  s.f16("v", {16, 8, 2}),
                                  s.mask("mask", GGML_TYPE_F16, {8, 1}, causal), 0.25f, 0.0f, 0.0f);
     }},
    {"FlashAttentionSeveralQueries",
     [](S& s) {
       return ggml_flash_attn_ext(
           s.ctx(), s.f32("q", {16, 3, 4}), s.f16("k", {16, 10, 2}), s.f16("v", {16, 10, 2}),
           s.mask("mask", GGML_TYPE_F16, {10, 3}, sliding), 0.25f, 0.0f, 0.0f);
     }},
    {"FlashAttentionOfCacheViews",
     [](S& s) {
       ggml_tensor* k = ggml_view_3d(s.ctx(), s.f16("cache_k", {32, 12}), 16, 2, 8, 32, 64, 0);
       ggml_tensor* v = ggml_view_3d(s.ctx(), s.f16("cache_v", {32, 12}), 16, 2, 8, 32, 64, 0);
       return ggml_flash_attn_ext(s.ctx(), s.f32("q", {16, 2, 4}),
                                  ggml_permute(s.ctx(), k, 0, 2, 1, 3),
                                  ggml_permute(s.ctx(), v, 0, 2, 1, 3),
                                  s.mask("mask", GGML_TYPE_F16, {8, 2}, causal), 0.25f, 0.0f, 0.0f);
     }},
    {"FlashAttentionOfAQuantizedCache",
     [](S& s) {
       return ggml_flash_attn_ext(s.ctx(), s.f32("q", {32, 1, 2}),
                                  s.leaf("k", GGML_TYPE_Q8_0, {32, 8, 1}),
                                  s.leaf("v", GGML_TYPE_Q8_0, {32, 8, 1}),
                                  s.mask("mask", GGML_TYPE_F16, {8, 1}, causal), 0.25f, 0.0f, 0.0f);
     }},
    {"FlashAttentionOfOneCacheAsKAndV",  // MLA: V is the start of each row of K
     [](S& s) {
       ggml_tensor* cache = s.f16("cache", {24, 8});
       ggml_tensor* k = ggml_view_3d(s.ctx(), cache, 24, 8, 1, 48, 384, 0);
       ggml_tensor* v = ggml_view_3d(s.ctx(), cache, 16, 8, 1, 48, 384, 0);
       return ggml_flash_attn_ext(s.ctx(), s.f32("q", {24, 2, 2}), k, v,
                                  s.mask("mask", GGML_TYPE_F16, {8, 2}, causal), 0.25f, 0.0f, 0.0f);
     }},
    {"FlashAttentionWithSinks",
     [](S& s) {
       ggml_tensor* out = ggml_flash_attn_ext(
           s.ctx(), s.f32("q", {16, 2, 4}), s.f16("k", {16, 8, 2}), s.f16("v", {16, 8, 2}),
           s.mask("mask", GGML_TYPE_F16, {8, 2}, causal), 0.25f, 0.0f, 0.0f);
       ggml_flash_attn_ext_add_sinks(out, s.f32("sinks", {4}));
       return out;
     }},
    {"FlashAttentionWithoutMask",
     [](S& s) {
       return ggml_flash_attn_ext(s.ctx(), s.f32("q", {16, 2, 4}), s.f16("k", {16, 8, 2}),
                                  s.f16("v", {16, 8, 2}), nullptr, 0.25f, 0.0f, 0.0f);
     }},
    {"LightningIndexer",
     [](S& s) {
       return ggml_lightning_indexer(s.ctx(), s.f32("q", {16, 2, 3}), s.f16("k", {16, 1, 8}),
                                     s.f32("weights", {2, 3}),
                                     s.mask("mask", GGML_TYPE_F16, {8, 3}, causal));
     }},
};

}  // namespace

std::span<const OpCase> matrix_cases() { return kMatrix; }
std::span<const OpCase> row_cases() { return kRows; }
std::span<const OpCase> move_cases() { return kMoves; }
std::span<const OpCase> elementwise_cases() { return kElementwise; }
std::span<const OpCase> attention_cases() { return kAttention; }

}  // namespace tt::test
