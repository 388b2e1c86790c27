#include "tracer/weights/model_comparison.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <optional>
#include <utility>
#include <vector>

#include "tracer/format/names/names.h"
#include "tracer/weights/ggml_type_name.h"

namespace tt {

namespace {

std::string why_not(const GgufTensor* reference, const GgufTensor& tensor) {
  return reference == nullptr ? "not in the reference" : incomparable_reason(*reference, tensor);
}

// How much the tensor counts in the error of the model: its values, times how often they are read.
double weight_of(const TensorComparison& one) {
  return one.reads.value_or(1) * static_cast<double>(row_count(*one.tensor)) *
         static_cast<double>(one.tensor->ne[0]);
}

}  // namespace

std::string incomparable_reason(const GgufIndex& reference, const GgufIndex& index) {
  std::string first = "there are none";
  for (const GgufTensor& tensor : index.tensors()) {
    std::string why = why_not(reference.find(tensor.name), tensor);
    if (why.empty()) return "";
    if (&tensor == &index.tensors().front()) first = std::move(why);
  }
  return std::format(
      "no tensor can be compared with the reference: {}. Give two files of the same model", first);
}

std::expected<TensorComparison, std::string> compare_tensor(
    const OpenModel& reference, const OpenModel& model, const GgufTensor& tensor,
    const ComparisonOptions& options, const Weighing& of_model,
    const std::function<bool()>& keep_going) {
  TensorComparison out{.tensor = &tensor, .reference = reference.index.find(tensor.name)};
  if (out.reference != nullptr)
    out.bytes_saved = static_cast<std::int64_t>(out.reference->file.length) -
                      static_cast<std::int64_t>(tensor.file.length);
  out.why = why_not(out.reference, tensor);
  if (!out.why.empty()) return out;
  const TensorWeighing weighing = of_model.of(tensor.name);
  const std::uint64_t reads = weighing.all_reads(tensor);
  if (weighing.uses != nullptr)
    out.reads = static_cast<double>(reads) /
                static_cast<double>(std::max<std::uint64_t>(row_count(tensor), 1));
  if (reads == 0) {
    out.why = "the session does not read it";
    return out;
  }
  std::optional<TypeTrial> trial;
  const ggml_type type = *ggml_type_named(tensor.type);
  if (is_quantizable(*out.reference)) {
    if (out.reference->type == tensor.type) {
      out.predicted = 0;
    } else if (std::ranges::contains(smaller_types(*out.reference), type)) {
      trial.emplace(*out.reference, std::vector{type}, options.rows, weighing);
    }
  }
  bool whole = true;
  auto error =
      tensor_error(reference.reader, *out.reference, model.reader, tensor, options.worst, weighing,
                   trial ? &*trial : nullptr, [&] { return whole = keep_going(); });
  if (!error) return std::unexpected(std::move(error.error()));
  if (!whole) return std::unexpected("cancelled");
  if (trial) out.predicted = trial->errors().front().relative();
  // Such a value would make every sum that contains it useless.
  if (std::isfinite(error->all.squared_error())) {
    out.error = *std::move(error);
  } else {
    out.why = "a value is not finite";
    out.predicted.reset();
  }
  return out;
}

std::expected<ModelComparison, std::string> compare_models(
    const OpenModel& reference, const OpenModel& model, const ComparisonOptions& options,
    const Weighing& weighing, const std::function<bool()>& keep_going) {
  ModelComparison out;
  std::optional<ModelError> predicted = ModelError();
  for (const GgufTensor& tensor : model.index.tensors()) {
    auto compared = compare_tensor(reference, model, tensor, options, weighing, keep_going);
    if (!compared) return std::unexpected(std::move(compared.error()));
    const TensorComparison& one = out.tensors.emplace_back(*std::move(compared));
    if (!one.why.empty()) continue;
    const ErrorSum& sum = one.error.all;
    out.layers[layer_of(tensor.name)].add(sum);
    out.components[component_of(tensor.name, TensorKind::Weight)].add(sum);
    if (!is_quantizable(tensor)) continue;
    out.all.add(weight_of(one), sum.relative());
    if (!one.predicted) predicted.reset();
    if (predicted) predicted->add(weight_of(one), *one.predicted);
  }
  if (predicted) out.predicted = predicted->relative();
  for (TensorComparison& one : out.tensors) {
    if (!one.why.empty() || one.bytes_saved <= 0 || !is_quantizable(*one.tensor)) continue;
    one.error_per_byte = out.all.share(weight_of(one), one.error.all.relative()) /
                         static_cast<double>(one.bytes_saved);
  }
  return out;
}

}  // namespace tt
