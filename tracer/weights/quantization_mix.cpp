#include "tracer/weights/quantization_mix.h"

#include <ggml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace tt {

namespace {

constexpr std::int64_t kBlock = 32;

// The errors of the types.
std::expected<std::vector<ErrorSum>, std::string> try_types(
    WeightReader& reader, const GgufTensor& tensor, const std::vector<ggml_type>& types,
    std::size_t rows, const TensorWeighing& weighing, std::uint64_t& tried) {
  TypeTrial trial(tensor, types, rows, weighing);
  for (const std::uint64_t row : trial.rows()) {
    ++tried;
    auto read = reader.read(tensor, {.first = row, .count = 1}, [&](const WeightRows& of_row) {
      trial.add(row, of_row.values);
      return true;
    });
    if (!read) return std::unexpected(std::move(read.error()));
  }
  return trial.errors();
}

// A tensor and its place in `types`.
struct Choice {
  MixTensor* tensor = nullptr;
  std::size_t at = 0;
  double weight = 0;  // of relative², in the sum over the model
};

// The next type that is worth it: on the lower convex hull of error over bytes. Another one adds
// more error per byte saved than the one after it.
std::optional<std::pair<std::size_t, double>> next_step(const Choice& choice) {
  const auto& types = choice.tensor->types;
  std::optional<std::pair<std::size_t, double>> best;
  for (std::size_t i = choice.at + 1; i < types.size(); ++i) {
    const double saved =
        static_cast<double>(types[choice.at].bytes) - static_cast<double>(types[i].bytes);
    if (saved <= 0) continue;
    const double added = choice.weight * (types[i].relative * types[i].relative -
                                          types[choice.at].relative * types[choice.at].relative);
    const double slope = added / saved;
    if (!best || slope < best->second) best.emplace(i, slope);
  }
  return best;
}

// A type for each tensor.
struct Plan {
  std::vector<Choice> choices;
  std::uint64_t bytes = 0;  // of all tensors

  double squares() const {
    double sum = 0;
    for (const Choice& choice : choices) {
      const double relative = choice.tensor->types[choice.at].relative;
      sum += choice.weight * relative * relative;
    }
    return sum;
  }
  void choose(Choice& choice, std::size_t at) {
    const auto& types = choice.tensor->types;
    bytes = bytes + types[at].bytes - types[choice.at].bytes;
    choice.at = at;
  }
};

// Takes bits where that adds the least error per byte, until the plan fits.
void shrink(Plan& plan, std::uint64_t limit) {
  while (plan.bytes > limit) {
    Choice* cheapest = nullptr;
    std::pair<std::size_t, double> step{0, std::numeric_limits<double>::infinity()};
    for (Choice& choice : plan.choices) {
      const auto next = next_step(choice);
      if (!next || next->second >= step.second) continue;
      step = *next;
      cheapest = &choice;
    }
    if (cheapest == nullptr) return;
    plan.choose(*cheapest, step.first);
  }
}

// Gives what room is left where it removes the most error per byte.
void fill(Plan& plan, std::uint64_t limit) {
  for (;;) {
    Choice* best = nullptr;
    std::size_t at = 0;
    double most = 0;
    for (Choice& choice : plan.choices) {
      const auto& types = choice.tensor->types;
      const MixType& now = types[choice.at];
      for (std::size_t i = 0; i < types.size(); ++i) {
        if (types[i].bytes <= now.bytes || plan.bytes + types[i].bytes - now.bytes > limit)
          continue;
        const double removed =
            choice.weight * (now.relative * now.relative - types[i].relative * types[i].relative) /
            static_cast<double>(types[i].bytes - now.bytes);
        if (removed <= most) continue;
        most = removed;
        best = &choice;
        at = i;
      }
    }
    if (best == nullptr) return;
    plan.choose(*best, at);
  }
}

// From the present types, and from each type for all that fits: a step of a large tensor can leave
// more room than smaller ones can use.
Plan best_plan(const Plan& present, std::uint64_t limit, std::span<const UniformMix> uniform) {
  Plan best = present;
  shrink(best, limit);
  fill(best, limit);
  for (const UniformMix& mix : uniform) {
    if (mix.bytes > limit) continue;
    Plan plan = present;
    for (Choice& choice : plan.choices) {
      const auto& types = choice.tensor->types;
      const auto found = std::ranges::find(types, mix.type, &MixType::type);
      plan.choose(choice, static_cast<std::size_t>(found - types.begin()));
    }
    fill(plan, limit);
    if (plan.squares() < best.squares()) best = std::move(plan);
  }
  return best;
}

// The comparison with models whose tensors all have one type.
std::vector<UniformMix> uniform_mixes(std::span<const Choice> choices, std::uint64_t fixed_bytes) {
  std::vector<UniformMix> out;
  for (const ggml_type type :
       {GGML_TYPE_Q8_0, GGML_TYPE_Q6_K, GGML_TYPE_Q5_K, GGML_TYPE_Q5_1, GGML_TYPE_Q5_0,
        GGML_TYPE_Q4_K, GGML_TYPE_Q4_1, GGML_TYPE_Q4_0, GGML_TYPE_Q3_K, GGML_TYPE_Q2_K}) {
    UniformMix mix{.type = ggml_type_name(type), .bytes = fixed_bytes};
    ModelError error;
    const bool all = std::ranges::all_of(choices, [&](const Choice& choice) {
      const auto found = std::ranges::find(choice.tensor->types, mix.type, &MixType::type);
      if (found == choice.tensor->types.end()) return false;
      mix.bytes += found->bytes;
      error.add(choice.weight, found->relative);
      return true;
    });
    if (!all || choices.empty()) continue;
    mix.relative = error.relative();
    out.push_back(std::move(mix));
  }
  return out;
}

}  // namespace

// As llama-quantize decides it (llama-quant.cpp, tensor_allows_quantization).
namespace {

// Names are regular expressions there.
std::string rule_of(const MixTensor& tensor) {
  std::string name;
  for (const char c : tensor.name) {
    if (c == '.') name += '\\';
    name += c;
  }
  return std::format("^{}$={}", name, tensor.type);
}

}  // namespace

bool is_quantizable(const GgufTensor& tensor) {
  constexpr std::array<std::string_view, 8> kKept = {"_norm.weight", "ffn_gate_inp",  "ssm_conv1d",
                                                     "shortconv",    "position_embd", "token_types",
                                                     "time_mix_",    "attn_rel_b"};
  const std::string_view name = tensor.name;
  return name.ends_with("weight") && tensor.ne[1] > 1 && tensor.ne[0] % kBlock == 0 &&
         undecodable_reason(tensor).empty() &&
         std::ranges::none_of(kKept, [&](auto part) { return name.contains(part); });
}

std::expected<QuantizationMix, std::string> quantization_mix(
    WeightReader& reader, const GgufIndex& index, const MixOptions& options,
    const Weighing& weighing, const std::function<bool()>& keep_going) {
  QuantizationMix mix;
  std::uint64_t fixed_bytes = 0;
  for (const GgufTensor& tensor : index.tensors()) {
    MixTensor& of = mix.tensors.emplace_back();
    of.name = tensor.name;
    of.values = row_count(tensor) * static_cast<std::uint64_t>(tensor.ne[0]);
    of.type = tensor.type;
    of.bytes = tensor.file.length;
    of.is_fixed = !is_quantizable(tensor);
    if (of.is_fixed) {
      fixed_bytes += of.bytes;
      continue;
    }
    const std::vector<ggml_type> types = smaller_types(tensor);
    auto sums =
        try_types(reader, tensor, types, options.rows, weighing.of(tensor.name), mix.rows_tried);
    if (!sums) return std::unexpected(std::move(sums.error()));
    of.types.push_back({.type = tensor.type, .bytes = tensor.file.length});
    for (std::size_t i = 0; i < types.size(); ++i)
      of.types.push_back({.type = ggml_type_name(types[i]),
                          .bytes = row_count(tensor) * ggml_row_size(types[i], tensor.ne[0]),
                          .relative = (*sums)[i].relative()});
    if (!keep_going()) return std::unexpected("cancelled");
  }

  Plan plan{.choices = {}, .bytes = fixed_bytes};
  std::uint64_t least = fixed_bytes;
  for (std::size_t i = 0; i < mix.tensors.size(); ++i) {
    MixTensor& tensor = mix.tensors[i];
    if (tensor.is_fixed) continue;
    const GgufTensor& of = index.tensors()[i];
    const double weight =
        static_cast<double>(weighing.of(of.name).all_reads(of)) * static_cast<double>(of.ne[0]);
    plan.choices.push_back({.tensor = &tensor, .at = 0, .weight = weight});
    plan.bytes += tensor.types.front().bytes;
    least += std::ranges::min(tensor.types, {}, &MixType::bytes).bytes;
  }
  if (least > options.bytes)
    return std::unexpected(std::format(
        "no mix fits: with the smallest types the tensors take {} bytes. Give a larger size.",
        least));
  mix.uniform = uniform_mixes(plan.choices, fixed_bytes);
  plan = best_plan(plan, options.bytes, mix.uniform);
  mix.bytes = plan.bytes;
  ModelError error;
  const double squares = plan.squares();
  for (const Choice& choice : plan.choices)
    error.add(choice.weight, choice.tensor->types[choice.at].relative);
  for (const Choice& choice : plan.choices) {
    const MixType& chosen = choice.tensor->types[choice.at];
    const std::uint64_t saved = choice.tensor->types.front().bytes - chosen.bytes;
    choice.tensor->type = chosen.type;
    choice.tensor->rule = rule_of(*choice.tensor);
    choice.tensor->bytes = chosen.bytes;
    choice.tensor->relative = chosen.relative;
    const double of_tensor = choice.weight * chosen.relative * chosen.relative;
    choice.tensor->error_share = squares > 0 ? of_tensor / squares : 0;
    if (saved > 0)
      choice.tensor->error_per_byte =
          error.share(choice.weight, chosen.relative) / static_cast<double>(saved);
  }
  mix.relative = error.relative();
  return mix;
}

}  // namespace tt
