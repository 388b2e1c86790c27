#include "tests/tracer/format/access/op_memory.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

namespace tt::test {
namespace {

constexpr std::size_t kMaxSceneTensors = 64;

std::size_t block_bytes(const ggml_tensor& t) { return ggml_type_size(t.type); }

std::vector<float> random_floats(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(0.1f, 0.9f);
  std::vector<float> out(n);
  for (float& v : out) v = distribution(random);
  return out;
}

std::vector<std::uint8_t> random_bytes(const ggml_tensor& t, std::uint32_t seed) {
  std::vector<std::uint8_t> out(ggml_nbytes(&t));
  if (t.type == GGML_TYPE_I32 || t.type == GGML_TYPE_I64) {
    std::mt19937 random(seed);
    for (std::uint8_t& b : out) b = static_cast<std::uint8_t>(random());
    return out;
  }
  const auto values = random_floats(static_cast<std::size_t>(ggml_nelements(&t)), seed);
  ggml_quantize_chunk(t.type, values.data(), out.data(), 0, ggml_nrows(&t), t.ne[0], nullptr);
  return out;
}

std::vector<std::uint8_t> from_floats(ggml_type type, const std::vector<float>& values) {
  std::vector<std::uint8_t> out(values.size() * ggml_type_size(type));
  if (type == GGML_TYPE_F16) {
    ggml_fp32_to_fp16_row(values.data(), reinterpret_cast<ggml_fp16_t*>(out.data()),
                          static_cast<std::int64_t>(values.size()));
  } else {
    std::memcpy(out.data(), values.data(), out.size());
  }
  return out;
}

template <class Int>
std::vector<std::uint8_t> from_integers(const std::vector<std::int64_t>& values) {
  std::vector<std::uint8_t> out;
  for (const std::int64_t v : values) {
    const auto as = static_cast<Int>(v);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&as);
    out.insert(out.end(), bytes, bytes + sizeof as);
  }
  return out;
}

// Replacement values for one block. NaN propagates through arithmetic, but comparisons and ReLU
// absorb it; infinity and finite numbers detect those.
constexpr int kPoisons = 4;

float poisoned(float v, int variant) {
  switch (variant) {
    case 0:
      return std::numeric_limits<float>::quiet_NaN();
    case 1:
      return std::numeric_limits<float>::infinity();
    case 2:
      return std::isfinite(v) ? v + 8.0f : 8.0f;
    default:
      return std::isfinite(v) ? -1.7f * v - 0.3f : 0.5f;
  }
}

void poison(ggml_type type, std::uint8_t* block, int variant) {
  switch (type) {
    case GGML_TYPE_I32:
    case GGML_TYPE_I64:
      block[0] ^= 1;  // the neighbour: an index remains valid
      return;
    case GGML_TYPE_F32: {
      float v;
      std::memcpy(&v, block, sizeof v);
      v = poisoned(v, variant);
      std::memcpy(block, &v, sizeof v);
      return;
    }
    default: {  // F16; quantized blocks used here start with their scale in F16
      ggml_fp16_t h;
      std::memcpy(&h, block, sizeof h);
      h = ggml_fp32_to_fp16(poisoned(ggml_fp16_to_fp32(h), variant));
      std::memcpy(block, &h, sizeof h);
    }
  }
}

}  // namespace

OpScene::OpScene(ggml_backend_t cpu)
    : cpu_(cpu),
      ctx_(ggml_init({.mem_size = kMaxSceneTensors * ggml_tensor_overhead() + ggml_graph_overhead(),
                      .mem_buffer = nullptr,
                      .no_alloc = true})) {}

ggml_tensor* OpScene::leaf(const char* name, ggml_type type, Shape ne) {
  ggml_tensor* t = ggml_new_tensor(ctx(), type, static_cast<int>(ne.size()), ne.begin());
  ggml_set_name(t, name);
  roots_.push_back({t, [t](std::uint32_t seed) { return random_bytes(*t, seed); }});
  return t;
}

ggml_tensor* OpScene::i32(const char* name, Shape ne, std::vector<std::int64_t> values) {
  ggml_tensor* t = leaf(name, GGML_TYPE_I32, ne);
  roots_.back().make = [values = std::move(values)](std::uint32_t) {
    return from_integers<std::int32_t>(values);
  };
  return t;
}

ggml_tensor* OpScene::i64(const char* name, Shape ne, std::vector<std::int64_t> values) {
  ggml_tensor* t = leaf(name, GGML_TYPE_I64, ne);
  roots_.back().make = [values = std::move(values)](std::uint32_t) {
    return from_integers<std::int64_t>(values);
  };
  return t;
}

ggml_tensor* OpScene::mask(const char* name, ggml_type type, Shape ne,
                           const std::function<bool(std::int64_t, std::int64_t)>& attends) {
  ggml_tensor* t = leaf(name, type, ne);
  std::vector<float> values;
  for (std::int64_t row = 0; row < ggml_nrows(t); ++row) {
    for (std::int64_t cell = 0; cell < t->ne[0]; ++cell) {
      values.push_back(attends(cell, row % t->ne[1]) ? 0.0f
                                                     : -std::numeric_limits<float>::infinity());
    }
  }
  roots_.back().make = [type, values](std::uint32_t) { return from_floats(type, values); };
  return t;
}

void OpScene::finish(ggml_tensor* last) {
  graph_ = ggml_new_graph(ctx());
  ggml_build_forward_expand(graph_, last);
  for (ggml_tensor* t = ggml_get_first_tensor(ctx()); t != nullptr;
       t = ggml_get_next_tensor(ctx(), t)) {
    if (t->op == GGML_OP_NONE || t->view_src != nullptr) continue;
    if (t->name[0] == '\0') ggml_set_name(t, t == last ? "output" : "inner");
    roots_.push_back({t, [t](std::uint32_t seed) { return random_bytes(*t, seed); }});
  }
  buffer_.reset(ggml_backend_alloc_ctx_tensors(ctx(), cpu_));
}

std::vector<const ggml_tensor*> OpScene::nodes() const {
  std::vector<const ggml_tensor*> out;
  for (int i = 0; i < ggml_graph_n_nodes(graph_); ++i) out.push_back(ggml_graph_node(graph_, i));
  return out;
}

std::vector<std::int64_t> OpScene::integers(const ggml_tensor& t) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < ggml_nelements(&t); ++i) {
    std::size_t at = 0;
    std::int64_t rest = i;
    for (std::size_t d = 0; d < 4; ++d) {
      at += static_cast<std::size_t>(rest % t.ne[d]) * t.nb[d];
      rest /= t.ne[d];
    }
    const char* p = static_cast<const char*>(t.data) + at;
    if (t.type == GGML_TYPE_I64) {
      std::int64_t v;
      std::memcpy(&v, p, sizeof v);
      out.push_back(v);
    } else {
      std::int32_t v;
      std::memcpy(&v, p, sizeof v);
      out.push_back(v);
    }
  }
  return out;
}

void OpScene::restore(const std::vector<Bytes>& contents) {
  for (std::size_t i = 0; i < roots_.size(); ++i) {
    std::memcpy(roots_[i].tensor->data, contents[i].data(), contents[i].size());
  }
}

std::vector<OpScene::Bytes> OpScene::run_from(const std::vector<Bytes>& contents) {
  restore(contents);
  const ggml_status status = ggml_backend_graph_compute(cpu_, graph_);
  assert(status == GGML_STATUS_SUCCESS);
  (void)status;
  std::vector<Bytes> after;
  for (const Content& root : roots_) {
    const auto* data = static_cast<const std::uint8_t*>(root.tensor->data);
    after.emplace_back(data, data + ggml_nbytes(root.tensor));
  }
  return after;
}

TouchedBytes OpScene::touched(const std::vector<std::string>& only) {
  TouchedBytes out;
  std::vector<Bytes> before;
  for (std::size_t i = 0; i < roots_.size(); ++i) {
    before.push_back(roots_[i].make(static_cast<std::uint32_t>(i + 1)));
  }
  const std::vector<Bytes> after = run_from(before);

  for (std::size_t r = 0; r < roots_.size(); ++r) {
    const std::string name = roots_[r].tensor->name;
    if (!only.empty() && std::ranges::find(only, name) == only.end()) continue;
    const std::size_t block = block_bytes(*roots_[r].tensor);

    for (std::size_t at = 0; at < before[r].size(); at += block) {
      bool read = false;
      for (int variant = 0; variant < kPoisons && !read; ++variant) {
        std::vector<Bytes> changed = before;
        poison(roots_[r].tensor->type, changed[r].data() + at, variant);
        std::vector<Bytes> result = run_from(changed);
        // The replacement value does not count as an effect if it is unchanged.
        if (std::memcmp(result[r].data() + at, changed[r].data() + at, block) == 0) {
          std::memcpy(result[r].data() + at, after[r].data() + at, block);
        }
        read = result != after;
      }
      if (read) out.read[name] += block;
    }

    // Written: the result does not depend on the previous content.
    std::vector<Bytes> other = before;
    other[r] = roots_[r].make(static_cast<std::uint32_t>(r + 1000));
    const std::vector<Bytes> other_after = run_from(other);
    for (std::size_t at = 0; at < before[r].size(); at += block) {
      const auto kept = [&](const Bytes& from, const Bytes& to) {
        return std::memcmp(from.data() + at, to.data() + at, block) == 0;
      };
      if (!kept(before[r], after[r]) || !kept(other[r], other_after[r])) out.written[name] += block;
    }
  }
  return out;
}

}  // namespace tt::test
