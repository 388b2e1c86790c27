#include "tracer/probe/attention_weights.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "tracer/probe/tensor_rows.h"

namespace tt {

namespace {

// The sources of FLASH_ATTN_EXT in ggml's order. Mask and sinks may be absent.
constexpr std::size_t kQueries = 0, kKeys = 1, kMask = 3, kSinks = 4;

struct Parameters {
  float scale = 1, max_bias = 0, soft_cap = 0;
};

Parameters parameters_of(const ggml_tensor& op) {
  Parameters p;
  static_assert(sizeof(p) == 3 * sizeof(float));
  std::memcpy(&p, op.op_params, sizeof(p));
  return p;
}

// In several sums, so that the compiler can use vector instructions.
float dot(const float* a, const float* b, std::size_t n) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float lane : sums) sum += lane;
  return sum;
}

// What ALiBi multiplies the mask with.
float slope_of(std::uint64_t head, std::uint64_t heads, float max_bias) {
  if (max_bias <= 0) return 1;
  const auto power =
      static_cast<float>(std::uint64_t{1} << static_cast<unsigned>(std::log2(heads)));
  const auto h = static_cast<float>(head);
  return h < power ? std::pow(std::exp2(-max_bias / power), h + 1)
                   : std::pow(std::exp2(-max_bias / 2 / power), 2 * (h - power) + 1);
}

// Scores to weights; a sink takes part without a place of its own.
void soft_max(std::span<float> scores, const float* sink) {
  float largest = sink == nullptr ? -std::numeric_limits<float>::infinity() : *sink;
  for (const float score : scores) largest = std::max(largest, score);
  if (std::isinf(largest)) {  // everything is masked
    std::ranges::fill(scores, 0.0F);
    return;
  }
  double sum = sink == nullptr ? 0 : std::exp(double{*sink} - double{largest});
  for (float& score : scores) sum += double{score = std::exp(score - largest)};
  for (float& score : scores) score = static_cast<float>(double{score} / sum);
}

}  // namespace

std::array<std::uint64_t, 4> attention_shape(const ggml_tensor& op) {
  const ggml_tensor &queries = *op.src[kQueries], &keys = *op.src[kKeys];
  const auto of = [](std::int64_t ne) { return static_cast<std::uint64_t>(ne); };
  return {of(keys.ne[1]), of(queries.ne[1]), of(queries.ne[2]), of(queries.ne[3])};
}

bool has_readable_attention(const ggml_tensor& op) {
  for (const std::size_t source : {kQueries, kKeys, kMask, kSinks})
    if (op.src[source] != nullptr && !has_readable_rows(*op.src[source])) return false;
  return true;
}

std::vector<float> attention_weights(const ggml_tensor& op, std::vector<std::byte>& scratch) {
  const auto [n_keys, n_queries, heads, streams] = attention_shape(op);
  const auto ne = [](const ggml_tensor& of, int d) { return static_cast<std::uint64_t>(of.ne[d]); };
  const ggml_tensor &q = *op.src[kQueries], &k = *op.src[kKeys];
  const ggml_tensor *mask = op.src[kMask], *sinks = op.src[kSinks];
  const std::vector<float> queries = row_values(q, scratch), keys = row_values(k, scratch);
  const std::vector<float> masks = mask ? row_values(*mask, scratch) : std::vector<float>();
  const std::vector<float> sink_of = sinks ? row_values(*sinks, scratch) : std::vector<float>();
  const Parameters p = parameters_of(op);
  const float scale = p.soft_cap == 0 ? p.scale : p.scale / p.soft_cap;
  const std::size_t size = ne(q, 0), key_heads = ne(k, 2), key_streams = ne(k, 3);

  std::vector<float> weights(n_keys * n_queries * heads * streams);
  float* row = weights.data();
  for (std::uint64_t stream = 0; stream < streams; ++stream) {
    for (std::uint64_t head = 0; head < heads; ++head) {
      const float slope = slope_of(head, heads, p.max_bias);
      // Heads that share keys are neighbours.
      const std::uint64_t key_head =
          stream * key_streams / streams * key_heads + head * key_heads / heads;
      const float* const head_keys = keys.data() + key_head * n_keys * size;
      for (std::uint64_t query = 0; query < n_queries; ++query, row += n_keys) {
        const float* const vector =
            queries.data() + ((stream * heads + head) * n_queries + query) * size;
        const float* const masked =
            mask == nullptr
                ? nullptr
                : masks.data() +
                      ((stream % ne(*mask, 3) * ne(*mask, 2) + head % ne(*mask, 2)) * ne(*mask, 1) +
                       query) *
                          n_keys;
        for (std::uint64_t key = 0; key < n_keys; ++key) {
          const float bias = masked == nullptr ? 0 : slope * masked[key];
          if (std::isinf(bias)) {
            row[key] = bias;
            continue;
          }
          float score = dot(vector, head_keys + key * size, size) * scale;
          if (p.soft_cap != 0) score = p.soft_cap * std::tanh(score);
          row[key] = score + bias;
        }
        soft_max({row, n_keys}, sinks == nullptr ? nullptr : &sink_of[head]);
      }
    }
  }
  return weights;
}

}  // namespace tt
