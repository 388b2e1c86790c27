// What of an op matters for tracing it, by ggml's name of the op: whether it does work, and which
// of its sources is an index list that decides what it touches. Numbers of ops differ between
// versions of ggml; names do not.
//
// Plain values without the standard library: also used inside other people's programs
// (attach/agent).
#pragma once

#include <cstdint>

namespace tt {

struct OpRule {
  const char* op;
  bool works;  // ggml computes something for it
  int slot;    // number of the source that lists rows, cells, experts...; -1: none
  // The source is one only if it has the shape of routing weights (is_routing_shape()).
  bool routing = false;
};

inline constexpr OpRule kOpRules[] = {
    {"NONE", false, -1},    {"RESHAPE", false, -1},      {"VIEW", false, -1},
    {"PERMUTE", false, -1}, {"TRANSPOSE", false, -1},    {"GET_ROWS", true, 1},
    {"SET_ROWS", true, 1},  {"ROPE", true, 1},           {"MUL_MAT_ID", true, 2},
    {"ADD_ID", true, 2},    {"FLASH_ATTN_EXT", true, 3}, {"SSM_SCAN", true, 6},
    {"MUL", true, 1, true},
};

constexpr bool same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

constexpr OpRule op_rule(const char* op) {
  for (const OpRule& rule : kOpRules)
    if (same_text(rule.op, op)) return rule;
  return {op, true, -1};
}

// Routing weights are applied as [1, experts used, tokens] to [n, experts used, tokens]. `factor`
// and `node`: the four numbers of elements of the second source (of type F32) and of the MUL.
constexpr bool is_routing_shape(const std::int64_t* factor, const std::int64_t* node) {
  return factor[0] == 1 && factor[3] == 1 && factor[1] == node[1] && factor[2] == node[2] &&
         factor[1] <= 256;
}

}  // namespace tt
