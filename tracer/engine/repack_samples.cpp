#include "tracer/engine/repack_samples.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"

namespace tt {

namespace {

// "blk.3.attn_q.weight", "blk.3.ffn_up_exps.weight".
bool is_multiplied(std::string_view name) {
  constexpr std::array<std::string_view, 8> kRoles = {
      "attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
  if (!name.starts_with("blk.") || !name.ends_with(".weight")) return false;
  name.remove_prefix(4);
  name.remove_suffix(7);
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  name.remove_prefix(dot + 1);
  if (name.ends_with("_exps")) name.remove_suffix(5);
  return std::ranges::contains(kRoles, name);
}

std::optional<ggml_type> type_of(std::string_view name) {
  const auto same = [](char a, char b) { return std::toupper(a) == std::toupper(b); };
  for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
    const char* known = ggml_type_name(static_cast<ggml_type>(type));
    if (known != nullptr && std::ranges::equal(name, std::string_view(known), same))
      return static_cast<ggml_type>(type);
  }
  return std::nullopt;
}

// The first buffer type that can multiply this weight; null: none. As the library decides.
ggml_backend_buffer_type_t repacked_type(
    const GgufTensor& weight, const std::vector<ggml_backend_buffer_type_t>& candidates) {
  constexpr std::int64_t kTokens = 512;
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  const auto type = type_of(weight.type);
  if (!type || cpu == nullptr) return nullptr;
  const GgmlContext context(
      ggml_init({.mem_size = 8 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  const auto& [columns, rows, experts, more] = weight.ne;
  ggml_tensor* tensor = ggml_new_tensor_4d(context.get(), *type, columns, rows, experts,
                                           std::max<std::int64_t>(1, more));
  const auto input = [&](std::int64_t second, std::int64_t third) {
    return ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, columns, second, third);
  };
  ggml_tensor* product =
      experts > 1 ? ggml_mul_mat_id(context.get(), tensor, input(1, kTokens),
                                    ggml_new_tensor_2d(context.get(), GGML_TYPE_I32, 1, kTokens))
                  : ggml_mul_mat(context.get(), tensor, input(kTokens, 1));
  for (ggml_backend_buffer_type_t candidate : candidates) {
    ggml_backend_buffer_t empty = ggml_backend_buft_alloc_buffer(candidate, 0);
    if (empty == nullptr) continue;
    tensor->buffer = empty;
    const bool supported = ggml_backend_dev_supports_op(cpu, product);
    tensor->buffer = nullptr;
    ggml_backend_buffer_free(empty);
    if (supported) return candidate;
  }
  return nullptr;
}

// A regular expression that matches exactly `name`.
std::string pattern_of(std::string_view name) {
  std::string pattern = "^";
  for (const char c : name) {  // any character
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte) == 0) pattern += '\\';
    pattern += c;
  }
  return pattern + '$';
}

}  // namespace

std::vector<ggml_backend_buffer_type_t> repacked_buffer_types() {
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (cpu == nullptr) return {};
  const auto extra =
      reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
          ggml_backend_dev_backend_reg(cpu), "ggml_backend_dev_get_extra_bufts"));
  std::vector<ggml_backend_buffer_type_t> types;
  ggml_backend_buffer_type_t* each = extra == nullptr ? nullptr : extra(cpu);
  for (; each != nullptr && *each != nullptr; ++each) types.push_back(*each);
  return types;
}

RepackSamples::RepackSamples(const GgufIndex& model) {
  constexpr std::size_t kSamples = 64;
  constexpr std::int64_t kLargestBlock = 256, kMaxRowsAtOnce = 64;
  using Class = std::tuple<std::string, std::int64_t, std::int64_t, bool>;
  std::map<Class, const GgufTensor*> smallest;
  for (const GgufTensor& tensor : model.tensors()) {
    if (!is_multiplied(tensor.name)) continue;
    const Class kind = {tensor.type, tensor.ne[0] % kLargestBlock, tensor.ne[1] % kMaxRowsAtOnce,
                        tensor.ne[2] > 1};
    if (smallest.size() >= kSamples && !smallest.contains(kind)) continue;
    const GgufTensor*& sample = smallest[kind];
    if (sample == nullptr || tensor.file.length < sample->file.length) sample = &tensor;
  }
  const auto candidates = repacked_buffer_types();
  for (const auto& [kind, sample] : smallest) {
    ggml_backend_buffer_type_t buffer = repacked_type(*sample, candidates);
    if (buffer == nullptr) continue;
    names_.push_back(sample->name);
    overrides_.push_back(
        {.pattern = patterns_.emplace_back(pattern_of(sample->name)).c_str(), .buft = buffer});
  }
  if (!overrides_.empty()) overrides_.push_back({.pattern = nullptr, .buft = nullptr});
}

const llama_model_tensor_buft_override* RepackSamples::overrides() const {
  return overrides_.empty() ? nullptr : overrides_.data();
}

}  // namespace tt
