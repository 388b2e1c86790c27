#include "tracer/memory/memory_plan.h"

#include <algorithm>
#include <format>

#include "tracer/memory/mebibytes.h"

namespace tt {

namespace {

// Weights that are smaller are pinned whole: reading them costs a request each.
constexpr std::uint64_t kMinStreamed = 256U << 10;
constexpr std::uint64_t kMinWindow = 4U << 20, kMaxWindow = 64U << 20;
constexpr double kWindowSeconds = 0.04;  // of reading; covers the latency of a busy disk
// Pieces in which ranges are read and released.
constexpr std::uint64_t kPiece = 1U << 20;

constexpr std::uint64_t round_down(std::uint64_t bytes) { return bytes / kPageBytes * kPageBytes; }
constexpr std::uint64_t round_up(std::uint64_t bytes) { return round_down(bytes + kPageBytes - 1); }

std::uint64_t window_for(const PlanInput& input) {
  const auto wanted = static_cast<std::uint64_t>(kWindowSeconds * input.disk_bytes_per_second);
  return round_up(std::min(std::clamp(wanted, kMinWindow, kMaxWindow), input.budget / 4));
}

// The bytes to stream of a weight if `share` of all is streamed. At most `most`, so that what one
// op reads fits the window: more is pinned of large weights.
std::uint64_t streamed_of(const WeightRange& weight, double share, std::uint64_t most) {
  const std::uint64_t length = pages_within(weight).length;
  if (length < kMinStreamed) return 0;
  const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(length));
  if (wanted < kMinStreamed / 2) return 0;
  return round_down(std::min(wanted, most));
}

// The smallest share of each weight to stream so that the rest fits into `room`.
double share_to_stream(std::span<const WeightRange> weights, std::uint64_t total,
                       std::uint64_t room, std::uint64_t most) {
  double low = 0, high = 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    std::uint64_t streamed = 0;
    for (const WeightRange& weight : weights) streamed += streamed_of(weight, middle, most);
    (total - streamed <= room ? high : low) = middle;
  }
  return high;
}

void add_ranges(const WeightRange& weight, std::uint32_t index, std::uint64_t streamed,
                std::vector<PlannedRange>& out) {
  const PageRange whole = pages_around(weight);
  const std::uint64_t end = streamed == 0 ? whole.address + whole.length : [&] {
    const PageRange within = pages_within(weight);
    return within.address + within.length;
  }();
  const auto add = [&](std::uint64_t from, std::uint64_t to, bool pinned) {
    for (std::uint64_t at = from; at < to; at += kPiece) {
      out.push_back({.pages = {.file = whole.file,
                               .offset = whole.offset + (at - whole.address),
                               .address = at,
                               .length = std::min(kPiece, to - at)},
                     .weight = index,
                     .pinned = pinned});
    }
  };
  add(whole.address, end - streamed, true);
  add(end - streamed, end, false);
}

void predict(const PlanInput& input, MemoryPlan& plan) {
  const auto seconds = [&](double bytes) {
    return std::max(input.compute_seconds,
                    input.disk_bytes_per_second > 0 ? bytes / input.disk_bytes_per_second : 0);
  };
  const auto rate = [&](double bytes) {
    const bool known = input.disk_bytes_per_second > 0 || bytes == 0;
    return known && seconds(bytes) > 0 ? 1 / seconds(bytes) : 0;
  };
  // The kernel's cache serves experts about as well as uniform routing allows.
  const auto missed = [&](std::uint64_t room) {
    if (input.expert_bytes == 0) return 0.0;
    const double kept =
        std::min(1.0, static_cast<double>(room) / static_cast<double>(input.expert_bytes));
    return (1 - kept) * static_cast<double>(input.expert_bytes_per_token);
  };
  const auto dense = static_cast<double>(plan.weights - plan.experts);
  if (plan.kind == MemoryPlan::Kind::Fits) {
    plan.tokens_per_second = plan.plain_tokens_per_second = rate(0);
    return;
  }
  const auto per_token = plan.weights - plan.experts + input.expert_bytes_per_token;
  plan.plain_bytes_per_token =
      per_token > input.budget || plan.experts == 0 ? dense + missed(0) : missed(input.budget / 2);
  plan.bytes_per_token = plan.kind == MemoryPlan::Kind::TooSmall
                             ? plan.plain_bytes_per_token
                             : static_cast<double>(plan.streamed) + missed(plan.expert_cache);
  plan.plain_tokens_per_second = rate(plan.plain_bytes_per_token);
  plan.tokens_per_second = rate(plan.bytes_per_token);
}

}  // namespace

PageRange pages_around(const WeightRange& weight) {
  const std::uint64_t begin = round_down(weight.address);
  const std::uint64_t end = round_up(weight.address + weight.file.length);
  return {.file = weight.file.file,
          .offset = weight.file.offset - (weight.address - begin),
          .address = begin,
          .length = end - begin};
}

PageRange pages_within(const WeightRange& weight) {
  const std::uint64_t begin = round_up(weight.address);
  const std::uint64_t end = round_down(weight.address + weight.file.length);
  return {.file = weight.file.file,
          .offset = weight.file.offset + (begin - weight.address),
          .address = begin,
          .length = end > begin ? end - begin : 0};
}

MemoryPlan plan_memory(const PlanInput& input) {
  MemoryPlan plan;
  std::uint64_t dense = 0;
  for (const WeightRange& weight : input.weights) dense += pages_around(weight).length;
  plan.experts = input.expert_bytes;
  plan.weights = dense + plan.experts;
  if (plan.weights <= input.budget) {
    plan.kind = MemoryPlan::Kind::Fits;
    plan.reason = std::format("All {} of weights fit into {}: nothing to do.",
                              mebibytes(plan.weights), mebibytes(input.budget));
    predict(input, plan);
    return plan;
  }
  plan.window = window_for(input);
  if (input.budget < 2 * kMinWindow) {
    plan.kind = MemoryPlan::Kind::TooSmall;
    plan.reason = std::format("{} are too few to act with; at least {} are needed.",
                              mebibytes(input.budget), mebibytes(2 * kMinWindow));
    predict(input, plan);
    return plan;
  }
  plan.kind = MemoryPlan::Kind::Act;
  // From here the window is fixed; what remains is for pinned weights, then for experts. The
  // window holds the experts of the running layer, too.
  const std::uint64_t room = input.budget - plan.window;
  const double share = !input.pin ? 1.0
                       : dense <= room
                           ? 0.0
                           : share_to_stream(input.weights, dense, room, plan.window / 2);
  for (std::uint32_t i = 0; i < input.weights.size(); ++i) {
    const std::uint64_t streamed = streamed_of(input.weights[i], share, plan.window / 2);
    plan.streamed += streamed;
    add_ranges(input.weights[i], i, streamed, plan.ranges);
  }
  for (const PlannedRange& range : plan.ranges)
    if (range.pinned) plan.pinned += range.pages.length;
  if (plan.experts > 0) plan.expert_cache = room - std::min(room, plan.pinned);

  plan.reason = std::format("{} of {} of weights do not fit into {}.",
                            mebibytes(plan.weights - std::min(plan.weights, input.budget)),
                            mebibytes(plan.weights), mebibytes(input.budget));
  if (input.pin && input.prefetch) {
    plan.reason +=
        std::format(" {} stay in memory, {} are read for each token, {} ahead.",
                    mebibytes(plan.pinned), mebibytes(plan.streamed), mebibytes(plan.window));
  } else if (input.pin) {
    plan.reason += std::format(
        " {} stay in memory. Pinning alone can be slower than nothing: it takes memory from the "
        "kernel's cache and readahead, and every read is waited for. Use it with --prefetch.",
        mebibytes(plan.pinned));
  } else {
    plan.reason += std::format(
        " All {} are read for each token, {} ahead: without --pin nothing is kept for the next.",
        mebibytes(plan.streamed), mebibytes(plan.window));
  }
  if (plan.experts > 0) {
    plan.reason += std::format(" {} are for the {} of experts.", mebibytes(plan.expert_cache),
                               mebibytes(plan.experts));
  }
  predict(input, plan);
  return plan;
}

}  // namespace tt
