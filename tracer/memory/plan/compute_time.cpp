#include "tracer/memory/plan/compute_time.h"

#include <algorithm>
#include <optional>

#include "tracer/format/model/quantile.h"

namespace tt {

namespace {

// Smaller weights say nothing of the speed: the op takes its time without them.
constexpr std::uint64_t kMinBytes = 256U << 10;
constexpr double kFaster = 0.1;  // of the ops
constexpr double kMuchLonger = 2;

}  // namespace

std::vector<std::uint64_t> weight_bytes_of_ops(const WeightOrder& order, std::size_t ops) {
  std::vector<std::uint64_t> bytes(ops);
  for (const WeightUse& use : order.weights)
    if (use.op.v < ops) bytes[use.op.v] += use.range.file.length;
  for (const ExpertUse& use : order.experts)
    if (use.op.v < ops) bytes[use.op.v] += use.slice * std::min(use.per_token, use.experts);
  return bytes;
}

std::int64_t compute_time(std::span<const std::int64_t> op_ns,
                          std::span<const std::uint64_t> weight_bytes) {
  const auto is_large = [&](std::size_t op) {
    return op < weight_bytes.size() && weight_bytes[op] >= kMinBytes;
  };
  std::vector<double> ns_per_byte;
  for (std::size_t op = 0; op < op_ns.size(); ++op)
    if (is_large(op))
      ns_per_byte.push_back(static_cast<double>(op_ns[op]) / static_cast<double>(weight_bytes[op]));
  std::ranges::sort(ns_per_byte);
  const auto fast = quantile<double>(ns_per_byte, kFaster);
  std::int64_t sum = 0;
  for (std::size_t op = 0; op < op_ns.size(); ++op) {
    std::int64_t ns = std::max<std::int64_t>(op_ns[op], 0);
    if (is_large(op)) {
      const auto computing =
          static_cast<std::int64_t>(*fast * static_cast<double>(weight_bytes[op]));
      if (static_cast<double>(ns) > kMuchLonger * static_cast<double>(computing)) ns = computing;
    }
    sum += ns;
  }
  return sum;
}

}  // namespace tt
