#include "tracer/weights/quantization_error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>

#include "tracer/weights/block_parameters.h"
#include "tracer/weights/type_trial.h"

namespace tt {

void ErrorSum::add(std::span<const float> reference, std::span<const float> values,
                   std::span<const float> importance) {
  constexpr std::size_t kLanes = 8;  // independent sums, so that the compiler can vectorize them
  using Lanes = std::array<double, kLanes>;
  struct Sums {
    Lanes error{}, reference{}, value{}, product{}, weights{}, max_error{};
  } sums;
  const std::size_t count = std::min(reference.size(), values.size());
  const auto take = [&](std::size_t lane, std::size_t i, double weight) {
    const double a = reference[i], b = values[i], difference = b - a;
    sums.error[lane] += weight * difference * difference;
    sums.reference[lane] += weight * a * a;
    sums.value[lane] += weight * b * b;
    sums.product[lane] += weight * a * b;
    sums.weights[lane] += weight;
    sums.max_error[lane] = std::max(sums.max_error[lane], std::abs(difference));
  };
  const std::size_t whole = count / kLanes * kLanes;
  if (importance.empty()) {
    for (std::size_t i = 0; i < whole; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) take(lane, i + lane, 1);
    for (std::size_t i = whole; i < count; ++i) take(0, i, 1);
  } else {
    for (std::size_t i = 0; i < whole; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) take(lane, i + lane, importance[i + lane]);
    for (std::size_t i = whole; i < count; ++i) take(0, i, importance[i]);
  }
  count_ += count;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    error_ += sums.error[lane];
    reference_ += sums.reference[lane];
    value_ += sums.value[lane];
    product_ += sums.product[lane];
    weights_ += sums.weights[lane];
    max_error_ = std::max(max_error_, sums.max_error[lane]);
  }
}

void ErrorSum::add(const ErrorSum& other, double times) {
  count_ += other.count_;
  weights_ += times * other.weights_;
  error_ += times * other.error_;
  reference_ += times * other.reference_;
  value_ += times * other.value_;
  product_ += times * other.product_;
  max_error_ = std::max(max_error_, other.max_error_);
}

std::string incomparable_reason(const GgufTensor& reference, const GgufTensor& tensor) {
  if (reference.ne != tensor.ne) return "the shapes differ";
  for (const GgufTensor* one : {&reference, &tensor})
    if (std::string why = undecodable_reason(*one); !why.empty()) return why;
  return "";
}

namespace {

// Keeps the `limit` largest.
template <class T, class Key>
void keep_worst(std::vector<T>& worst, std::size_t limit, T one, const Key& key) {
  if (limit == 0 || (worst.size() == limit && key(worst.back()) >= key(one))) return;
  const auto at = std::ranges::lower_bound(worst, key(one), std::ranges::greater(), key);
  worst.insert(at, std::move(one));
  if (worst.size() > limit) worst.pop_back();
}

}  // namespace

std::expected<TensorError, std::string> tensor_error(
    WeightReader& reference_reader, const GgufTensor& reference, WeightReader& reader,
    const GgufTensor& tensor, std::size_t worst, const TensorWeighing& weighing, TypeTrial* trial,
    const std::function<bool()>& keep_going) {
  if (std::string why = incomparable_reason(reference, tensor); !why.empty())
    return std::unexpected(std::move(why));
  const BlockLayout* const layout = block_layout(tensor.type);
  const std::size_t block = layout == nullptr ? 256 : layout->values;
  TensorError out;
  std::string error;
  auto read = reader.read(tensor, all_rows(tensor), [&](const WeightRows& rows) {
    auto got = reference_reader.read(
        reference, {.first = rows.first, .count = rows.count}, [&](const WeightRows& of_reference) {
          for (std::uint64_t i = 0; i < of_reference.count; ++i) {
            const std::uint64_t row = of_reference.first + i;
            const std::uint64_t reads = weighing.reads(row);
            if (reads == 0) continue;
            const auto a = of_reference.row(i), b = rows.row(row - rows.first);
            const auto importance = weighing.columns(tensor, row);
            ErrorSum sum;
            sum.add(a, b, importance);
            out.all.add(sum, static_cast<double>(reads));
            if (trial != nullptr) trial->add(row, a);
            if (worst == 0) continue;
            keep_worst(out.worst_rows, worst, {.row = row, .error = sum},
                       [](const RowError& one) { return one.error.relative(); });
            for (std::size_t at = 0; at < a.size(); at += block) {
              const std::size_t size = std::min(block, a.size() - at);
              ErrorSum of_block;
              of_block.add(a.subspan(at, size), b.subspan(at, size));
              keep_worst(out.worst_blocks, worst,
                         {.row = row,
                          .first = at,
                          .max_error = of_block.max_error(),
                          .rmse = of_block.rmse()},
                         [](const BlockError& one) { return one.rmse; });
            }
          }
          return true;
        });
    if (!got) error = std::move(got.error());
    return error.empty() && keep_going();
  });
  if (!read) return std::unexpected(std::move(read.error()));
  if (!error.empty()) return std::unexpected(std::move(error));
  return out;
}

}  // namespace tt
