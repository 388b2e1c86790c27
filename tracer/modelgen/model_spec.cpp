#include "tracer/modelgen/model_spec.h"

#include <algorithm>
#include <array>
#include <format>

#include "tracer/modelgen/detail/lower.h"
#include "tracer/text/join.h"

namespace tt::modelgen {
namespace {

// Types to which ggml_quantize_chunk converts F32 without an importance matrix.
constexpr std::array kTypes = {GGML_TYPE_F32,  GGML_TYPE_F16,    GGML_TYPE_BF16,   GGML_TYPE_Q4_0,
                               GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,   GGML_TYPE_Q5_1,   GGML_TYPE_Q8_0,
                               GGML_TYPE_Q2_K, GGML_TYPE_Q3_K,   GGML_TYPE_Q4_K,   GGML_TYPE_Q5_K,
                               GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4};

std::string type_names() {
  return join(kTypes, [](ggml_type type) { return lower(ggml_type_name(type)); });
}

struct ClassName {
  std::string_view name;
  TensorClass cls;
};
constexpr std::array kClassNames = {ClassName{"embedding", TensorClass::Embedding},
                                    ClassName{"attention", TensorClass::Attention},
                                    ClassName{"ffn", TensorClass::Ffn},
                                    ClassName{"experts", TensorClass::Experts},
                                    ClassName{"ssm", TensorClass::Ssm},
                                    ClassName{"output", TensorClass::Output}};

}  // namespace

std::vector<std::string> quant_mixes() {
  std::vector<std::string> names;
  for (const ggml_type type : kTypes) {
    names.push_back(lower(ggml_type_name(type)));
  }
  names.emplace_back("q4_k_m");
  names.emplace_back("mxfp4_moe");
  return names;
}

std::expected<ggml_type, ModelError> parse_type(std::string_view name) {
  for (const ggml_type type : kTypes) {
    if (lower(ggml_type_name(type)) == lower(name)) {
      return type;
    }
  }
  return std::unexpected(
      ModelError{ModelError::Kind::UnknownQuantization,
                 std::format("unknown quantization '{}'; known: {}", name, type_names())});
}

std::expected<std::pair<TensorClass, ggml_type>, ModelError> parse_class_type(
    std::string_view text) {
  const std::size_t equals = text.find('=');
  const auto found = std::ranges::find(kClassNames, lower(text.substr(0, equals)),
                                       [](const ClassName& entry) { return entry.name; });
  if (equals == std::string_view::npos || found == kClassNames.end()) {
    return std::unexpected(ModelError{
        ModelError::Kind::UnknownQuantization,
        std::format("'{}' is not CLASS=TYPE with CLASS one of embedding, attention, ffn, "
                    "experts, ssm, output (norms always stay f32)",
                    text)});
  }
  return parse_type(text.substr(equals + 1)).transform([&](ggml_type type) {
    return std::pair(found->cls, type);
  });
}

}  // namespace tt::modelgen
