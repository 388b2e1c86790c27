// Ops of recurrent models, and of vision and audio models.
#include "tests/tracer/format/access/op_cases.h"

namespace tt::test {

namespace {

using S = OpScene;

const OpCase kRecurrent[] = {
    {"SsmConv",
     [](S& s) { return ggml_ssm_conv(s.ctx(), s.f32("x", {6, 5, 2}), s.f32("conv", {4, 5})); }},
    {"SsmScanMamba1",  // states of 2 of 4 sequences
     [](S& s) {
       return ggml_ssm_scan(s.ctx(), s.f32("state", {4, 1, 6, 4}), s.f32("x", {1, 6, 3, 2}),
                            s.f32("dt", {6, 3, 2}), s.f32("A", {4, 6}), s.f32("B", {4, 1, 3, 2}),
                            s.f32("C", {4, 1, 3, 2}), s.i32("ids", {2}, {3, 1}), 1);
     }},
    {"SsmScanMamba2",
     [](S& s) {
       return ggml_ssm_scan(s.ctx(), s.f32("state", {8, 2, 3, 4}), s.f32("x", {2, 3, 3, 1}),
                            s.f32("dt", {3, 3, 1}), s.f32("A", {1, 3}), s.f32("B", {8, 1, 3, 1}),
                            s.f32("C", {8, 1, 3, 1}), s.i32("ids", {1}, {2}), 1);
     }},
    // Heads of 64: the minimum of the kernels' vector loops.
    {"RwkvWkv6",
     [](S& s) {
       return ggml_rwkv_wkv6(s.ctx(), s.f32("k", {64, 1, 2}), s.f32("v", {64, 1, 2}),
                             s.f32("r", {64, 1, 2}), s.f32("tf", {64, 1}), s.f32("td", {64, 1, 2}),
                             s.f32("state", {4096, 1}));
     }},
    {"RwkvWkv7",
     [](S& s) {
       return ggml_rwkv_wkv7(s.ctx(), s.f32("r", {64, 1, 2}), s.f32("w", {64, 1, 2}),
                             s.f32("k", {64, 1, 2}), s.f32("v", {64, 1, 2}), s.f32("a", {64, 1, 2}),
                             s.f32("b", {64, 1, 2}), s.f32("state", {4096, 1}));
     }},
    {"GatedLinearAttention",
     [](S& s) {
       return ggml_gated_linear_attn(s.ctx(), s.f32("k", {16, 2, 3}), s.f32("v", {16, 2, 3}),
                                     s.f32("q", {16, 2, 3}), s.f32("g", {16, 2, 3}),
                                     s.f32("state", {512, 1}), 0.5f);
     }},
    {"GatedDeltaNet",
     [](S& s) {
       return ggml_gated_delta_net(s.ctx(), s.f32("q", {16, 2, 3}), s.f32("k", {16, 2, 3}),
                                   s.f32("v", {16, 2, 3}), s.f32("g", {1, 2, 3}),
                                   s.f32("beta", {1, 2, 3}), s.f32("state", {16, 16, 2, 1}), 1);
     }},
    {"GatedDeltaNetWithAGatePerChannel",
     [](S& s) {
       return ggml_gated_delta_net(s.ctx(), s.f32("q", {16, 1, 2}), s.f32("k", {16, 1, 2}),
                                   s.f32("v", {16, 2, 2}), s.f32("g", {16, 2, 2}),
                                   s.f32("beta", {1, 2, 2}), s.f32("state", {16, 16, 2, 1}), 1);
     }},
    {"GatedDeltaNetMoreSnapshotsThanTokens",
     [](S& s) {
       return ggml_gated_delta_net(s.ctx(), s.f32("q", {16, 1, 2}), s.f32("k", {16, 1, 2}),
                                   s.f32("v", {16, 1, 2}), s.f32("g", {1, 1, 2}),
                                   s.f32("beta", {1, 1, 2}), s.f32("state", {16, 16, 1, 1}), 3);
     }},
    {"GatedDeltaNetFewerSnapshotsThanTokens",
     [](S& s) {
       return ggml_gated_delta_net(s.ctx(), s.f32("q", {16, 1, 4}), s.f32("k", {16, 1, 4}),
                                   s.f32("v", {16, 1, 4}), s.f32("g", {1, 1, 4}),
                                   s.f32("beta", {1, 1, 4}), s.f32("state", {16, 16, 1, 1}), 2);
     }},
    {"SsmScanMoreSnapshotsThanTokens",
     [](S& s) {
       return ggml_ssm_scan(s.ctx(), s.f32("state", {8, 2, 3, 4}), s.f32("x", {2, 3, 2, 1}),
                            s.f32("dt", {3, 2, 1}), s.f32("A", {1, 3}), s.f32("B", {8, 1, 2, 1}),
                            s.f32("C", {8, 1, 2, 1}), s.i32("ids", {1}, {2}), 3);
     }},
    {"SsmScanFewerSnapshotsThanTokens",
     [](S& s) {
       return ggml_ssm_scan(s.ctx(), s.f32("state", {8, 2, 3, 4}), s.f32("x", {2, 3, 4, 1}),
                            s.f32("dt", {3, 4, 1}), s.f32("A", {1, 3}), s.f32("B", {8, 1, 4, 1}),
                            s.f32("C", {8, 1, 4, 1}), s.i32("ids", {1}, {2}), 2);
     }},
    {"SolveTri",
     [](S& s) {
       return ggml_solve_tri(s.ctx(), s.f32("a", {4, 4, 2}), s.f32("b", {3, 4, 2}), true, true,
                             false);
     }},
    {"Im2Col",  // only the kernel's shape is used
     [](S& s) {
       return ggml_im2col(s.ctx(), s.f16("kernel", {3, 2, 4}), s.f32("x", {8, 2, 1}), 1, 0, 1, 0, 1,
                          0, false, GGML_TYPE_F16);
     }},
    {"ConvTranspose1d",
     [](S& s) {
       return ggml_conv_transpose_1d(s.ctx(), s.f16("kernel", {3, 2, 4}), s.f32("x", {5, 4}), 1, 0,
                                     1);
     }},
    {"Conv2d",
     [](S& s) {
       return ggml_conv_2d_direct(s.ctx(), s.f32("kernel", {2, 2, 2, 3}), s.f32("x", {4, 4, 2, 1}),
                                  1, 1, 0, 0, 1, 1);
     }},
    {"TimestepEmbedding",
     [](S& s) { return ggml_timestep_embedding(s.ctx(), s.f32("t", {3}), 8, 100); }},
    {"Pool2d",
     [](S& s) {
       return ggml_pool_2d(s.ctx(), s.f32("x", {4, 4, 2}), GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0);
     }},
    {"HyperConnectionComb",
     [](S& s) {
       return ggml_dsv4_hc_comb(s.ctx(), s.f32("mixes", {24, 3}), s.f32("scale", {3}),
                                s.f32("base", {24}), 1e-6f, 2);
     }},
    {"HyperConnectionPre",
     [](S& s) {
       return ggml_dsv4_hc_pre(s.ctx(), s.f32("x", {8, 4, 3}), s.f32("weights", {4, 3}));
     }},
    {"HyperConnectionPost",
     [](S& s) {
       return ggml_dsv4_hc_post(s.ctx(), s.f32("x", {8, 3}), s.f32("residual", {8, 4, 3}),
                                s.f32("post", {4, 3}), s.f32("comb", {4, 4, 3}));
     }},
};

}  // namespace

std::span<const OpCase> recurrent_cases() { return kRecurrent; }

}  // namespace tt::test
