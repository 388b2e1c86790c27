#include "tracer/weights/model_comparison.h"

#include <cmath>
#include <format>
#include <utility>

#include "tracer/format/names/names.h"

namespace tt {

namespace {

std::string why_not(const GgufTensor* reference, const GgufTensor& tensor) {
  return reference == nullptr ? "not in the reference" : incomparable_reason(*reference, tensor);
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
    const OpenModel& reference, const OpenModel& model, const GgufTensor& tensor, std::size_t worst,
    const Importances* importances, const std::function<bool()>& keep_going) {
  TensorComparison out{.tensor = &tensor, .reference = reference.index.find(tensor.name)};
  out.why = why_not(out.reference, tensor);
  if (!out.why.empty()) return out;
  const ColumnImportance* importance = nullptr;
  if (importances != nullptr)
    if (const auto found = importances->find(tensor.name); found != importances->end())
      importance = &found->second;
  bool whole = true;
  auto error = tensor_error(reference.reader, *out.reference, model.reader, tensor, worst,
                            importance, [&] { return whole = keep_going(); });
  if (!error) return std::unexpected(std::move(error.error()));
  if (!whole) return std::unexpected("cancelled");
  // Such a value would make every sum that contains it useless.
  if (std::isfinite(error->all.squared_error())) {
    out.error = *std::move(error);
  } else {
    out.why = "a value is not finite";
  }
  return out;
}

std::expected<ModelComparison, std::string> compare_models(
    const OpenModel& reference, const OpenModel& model, const Importances* importances,
    const std::function<bool()>& keep_going) {
  ModelComparison out;
  for (const GgufTensor& tensor : model.index.tensors()) {
    auto compared = compare_tensor(reference, model, tensor, 0, importances, keep_going);
    if (!compared) return std::unexpected(std::move(compared.error()));
    const TensorComparison& one = out.tensors.emplace_back(*std::move(compared));
    if (!one.why.empty()) continue;
    const ErrorSum& sum = one.error.all;
    out.layers[layer_of(tensor.name)].add(sum);
    out.components[component_of(tensor.name, TensorKind::Weight)].add(sum);
    if (is_quantizable(tensor)) out.all.add(static_cast<double>(sum.count()), sum.relative());
  }
  return out;
}

}  // namespace tt
