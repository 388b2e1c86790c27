#include "tracer/memory/plan/memory_plan.h"

#include <unistd.h>

#include <algorithm>
#include <format>
#include <functional>
#include <numeric>
#include <utility>

#include "tracer/memory/limits/mebibytes.h"

namespace tt {

namespace {

// Weights, or groups of them, that are smaller are pinned whole: reading them costs a request each.
constexpr std::uint64_t kMinStreamed = 256U << 10;
constexpr std::uint64_t kMinWindow = 4U << 20;
constexpr std::uint64_t kMaxWindow = 64U << 20;
// Pieces in which ranges are read and released.
constexpr std::uint64_t kPiece = 1U << 20;

std::uint64_t round_down(std::uint64_t bytes) { return bytes / page_bytes() * page_bytes(); }
std::uint64_t round_up_to(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}
std::uint64_t round_up(std::uint64_t bytes) { return round_down(bytes + page_bytes() - 1); }

std::uint64_t window_for(const PlanInput& input) {
  const auto wanted = static_cast<std::uint64_t>(input.window_seconds * input.speeds.blocks);
  return round_up(std::min(std::clamp(wanted, kDefaultWindow, kMaxWindow), input.budget / 4));
}

// A weight in its whole pages: blocks, and the pages before and after them. Without blocks all is
// `before`.
struct Parts {
  std::uint64_t before = 0, blocks = 0, after = 0;  // bytes
};

Parts parts_of(const MappedPages& within, std::uint64_t block) {
  if (block == 0) return {.before = within.length};
  const std::uint64_t first = round_up_to(within.offset, block);
  const std::uint64_t end = within.offset + within.length;
  if (first + block > end) return {.before = within.length};
  const std::uint64_t after = end % block;
  return {.before = first - within.offset, .blocks = end - after - first, .after = after};
}

// What is streamed of a weight: the last bytes of each of its parts.
struct Streamed {
  Parts parts;
  std::uint64_t sum() const { return parts.before + parts.blocks + parts.after; }
};

// The bytes to stream of single pages if `share` of all is streamed.
std::uint64_t streamed_pages(std::uint64_t length, double share, std::uint64_t most) {
  if (length < kMinStreamed) return 0;
  const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(length));
  if (wanted < kMinStreamed / 2) return 0;
  return round_down(std::min(wanted, most));
}

// What to stream of each weight. `share` is from 0 to 1 for a part of the blocks, and from 1 to
// kAll for all blocks and a part of the other pages. At most `most` of each weight, so that what
// one op reads fits the window: more is pinned of large weights.
class Division {
 public:
  static constexpr double kAll = 2;

  Division(std::span<const WeightRange> weights, std::uint64_t block) : block_(block) {
    for (const WeightRange& weight : weights)
      parts_.push_back(parts_of(pages_within(weight), block));
  }

  template <class F>
  void divide(double share, std::uint64_t most, F f) const {
    double due = 0;  // blocks
    for (const Parts& parts : parts_) {
      Streamed streamed;
      if (parts.blocks > 0) {
        const std::uint64_t count = parts.blocks / block_;
        due += std::min(share, 1.0) * static_cast<double>(count);
        // Above 1 all; else rounded, so that what is not streamed of one weight is of the next.
        const std::uint64_t wanted = share >= 1 ? count : static_cast<std::uint64_t>(due);
        const std::uint64_t blocks = std::min({wanted, count, most / block_});
        streamed.parts.blocks = blocks * block_;
        due = std::min(due - static_cast<double>(blocks), 1.0);
      }
      if (share > 1) {
        streamed.parts.before =
            streamed_pages(parts.before, share - 1, most - streamed.parts.blocks);
        streamed.parts.after = streamed_pages(parts.after, share - 1, most - streamed.sum());
      }
      f(parts, streamed);
    }
  }
  std::uint64_t streamed(double share, std::uint64_t most) const {
    std::uint64_t sum = 0;
    divide(share, most, [&](const Parts&, const Streamed& part) { sum += part.sum(); });
    return sum;
  }
  // The smallest share with which the rest fits into `room`.
  double share_for(std::uint64_t total, std::uint64_t room, std::uint64_t most) const {
    double low = 0, high = kAll;
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      (total - streamed(middle, most) <= room ? high : low) = middle;
    }
    return high;
  }

 private:
  const std::uint64_t block_;
  std::vector<Parts> parts_;
};

// What must stay in memory if each weight is streamed as far as a window of so many bytes allows,
// and the window.
std::uint64_t need_of(const Division& weights, std::uint64_t total, std::uint64_t window) {
  return total - weights.streamed(Division::kAll, window / 2) + window;
}

// The smallest window of at least `window` bytes with which the weights fit the budget; 0: none.
// Of large weights only half of the window can be streamed, so a model with large weights needs
// more of it. The smallest budget with which there is one goes to `least`.
std::uint64_t fitting_window(std::span<const WeightRange> weights, const Division& division,
                             std::uint64_t total, std::uint64_t window, std::uint64_t budget,
                             std::uint64_t& least) {
  // need_of() falls until at most two weights are larger than half of the window, and rises then.
  std::vector<std::uint64_t> lengths;
  for (const WeightRange& weight : weights) lengths.push_back(pages_within(weight).length);
  std::uint64_t best = window;
  least = need_of(division, total, window);
  if (least <= budget) return window;
  std::ranges::sort(lengths, std::greater());
  for (std::size_t i = 0; i < std::min<std::size_t>(lengths.size(), 3); ++i) {
    const std::uint64_t wide = std::max(window, 2 * lengths[i]);
    const std::uint64_t need = need_of(division, total, wide);
    if (need < least) {
      least = need;
      best = wide;
    }
  }
  if (least > budget) return 0;
  std::uint64_t too_small = window;
  while (best - too_small > page_bytes()) {
    const std::uint64_t middle = round_down(too_small + (best - too_small) / 2);
    if (middle == too_small) break;
    (need_of(division, total, middle) <= budget ? best : too_small) = middle;
  }
  return best;
}

// The ranges of a weight: each block is one, other pages are in pieces.
void add_ranges(const WeightRange& weight, std::uint32_t group, const Parts& parts,
                const Streamed& streamed, std::uint64_t block, std::vector<PlannedRange>& out) {
  const MappedPages whole = pages_around(weight), within = pages_within(weight);
  const auto add = [&](std::uint64_t from, std::uint64_t to, bool pinned, std::uint64_t piece) {
    for (std::uint64_t at = from; at < to; at += piece) {
      out.push_back({.pages = {.file = whole.file,
                               .offset = whole.offset + (at - whole.address),
                               .address = at,
                               .length = std::min(piece, to - at)},
                     .group = group,
                     .pinned = pinned});
    }
  };
  if (streamed.sum() == 0 && parts.blocks == 0) {
    add(whole.address, whole.address + whole.length, true, kPiece);
    return;
  }
  const std::uint64_t blocks = within.address + parts.before, after = blocks + parts.blocks;
  // The last page, which is shared with the next weight, is left to it where single pages are
  // streamed before it.
  const bool keep_end = parts.after > 0 && streamed.parts.after == 0;
  const std::uint64_t end = keep_end ? whole.address + whole.length : after + parts.after;
  add(whole.address, blocks - streamed.parts.before, true, kPiece);
  add(blocks - streamed.parts.before, blocks, false, kPiece);
  add(blocks, after - streamed.parts.blocks, true, block);
  add(after - streamed.parts.blocks, after, false, block);
  add(after, end - streamed.parts.after, true, kPiece);
  add(end - streamed.parts.after, end, false, kPiece);
}

// Sets `group_of`; returns the range of each group.
std::vector<WeightRange> group_small(std::span<const WeightRange> weights,
                                     std::vector<std::uint32_t>& group_of) {
  constexpr std::uint64_t kMaxGroup = 1U << 20;
  std::vector<std::uint32_t> by_place(weights.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::ranges::sort(by_place, {}, [&](std::uint32_t i) {
    return std::pair(weights[i].file.file, weights[i].file.offset);
  });
  // Each weight joins the one before it in the file, or begins a group: the first of its weights.
  std::vector<std::uint32_t> first_of(weights.size());
  std::vector<WeightRange> ranges(weights.begin(), weights.end());
  for (std::size_t i = 0; i < by_place.size(); ++i) {
    const std::uint32_t own = by_place[i];
    first_of[own] = own;
    if (i == 0) continue;
    const WeightRange& weight = weights[own];
    WeightRange& group = ranges[first_of[by_place[i - 1]]];
    const std::uint64_t end = group.file.offset + group.file.length;
    const bool near = group.file.file == weight.file.file && weight.file.offset >= end &&
                      weight.file.offset - end < page_bytes() &&
                      weight.address - group.address == weight.file.offset - group.file.offset;
    const std::uint64_t length = weight.file.offset + weight.file.length - group.file.offset;
    const bool small =
        weights[by_place[i - 1]].file.length < kMinStreamed && weight.file.length < kMinStreamed;
    if (!near || !small || length > kMaxGroup) continue;
    first_of[own] = first_of[by_place[i - 1]];
    group.file.length = length;
  }
  std::vector<WeightRange> groups;
  constexpr std::uint32_t kNew = UINT32_MAX;
  std::vector<std::uint32_t> number(weights.size(), kNew);
  group_of.clear();
  for (const std::uint32_t first : first_of) {
    if (number[first] == kNew) {
      number[first] = static_cast<std::uint32_t>(groups.size());
      groups.push_back(ranges[first]);
    }
    group_of.push_back(number[first]);
  }
  return groups;
}

// Bytes of the experts that a token uses and that are not in memory. `kept`: the share that is.
double missed_experts(const PlanInput& input, double kept) {
  return (1 - kept) * static_cast<double>(input.expert_bytes_per_token);
}

// Of the used experts, if each is equally likely.
double uniform_share(const MemoryPlan& plan, std::uint64_t room) {
  if (plan.experts == 0) return 0;
  return std::min(1.0, static_cast<double>(room) / static_cast<double>(plan.experts));
}

// What page faults read per token while the pinned ranges stay, and what is used of it.
TokenReads fault_reads(const PlanInput& input, const MemoryPlan& plan, bool with_pinned) {
  const std::uint64_t pinned = with_pinned ? plan.pinned : 0;
  const auto used =
      static_cast<double>(plan.weights - plan.experts - pinned + input.expert_bytes_per_token);
  if (input.faulted) {
    std::vector<FileRange> kept;
    for (const PlannedRange& range : plan.ranges)
      if (range.pinned && with_pinned)
        kept.push_back(
            {.file = range.pages.file, .offset = range.pages.offset, .length = range.pages.length});
    return {.faults = input.faulted(input.budget, kept), .faults_used = used};
  }
  // The kernel's cache serves experts about as well as uniform routing allows. It has none of
  // what is read again after more than the budget.
  std::uint64_t room = with_pinned ? plan.expert_cache : input.budget / 2;
  if (!with_pinned && used > static_cast<double>(input.budget)) room = 0;
  return {.faults = static_cast<double>(plan.weights - plan.experts - pinned) +
                    missed_experts(input, uniform_share(plan, room)),
          .faults_used = used};
}

double bytes_of(const TokenReads& reads) {
  return reads.blocks + reads.pages + reads.experts + reads.faults;
}

void predict(const PlanInput& input, MemoryPlan& plan) {
  const auto rate = [&](const TokenReads& reads) {
    return token_rate(reads, input.compute_seconds, input.speeds);
  };
  if (plan.kind == MemoryPlan::Kind::Fits) {
    plan.tokens_per_second = plan.plain_tokens_per_second = rate({});
    return;
  }
  plan.reads = plan.plain_reads = fault_reads(input, plan, /*with_pinned=*/false);
  plan.plain_bytes_per_token = bytes_of(plan.plain_reads);
  plan.plain_tokens_per_second = rate(plan.plain_reads);
  if (plan.kind == MemoryPlan::Kind::Act && input.prefetch) {
    const double kept = input.expert_hit_rate ? input.expert_hit_rate(plan.expert_cache)
                                              : uniform_share(plan, plan.expert_cache);
    plan.reads = {.blocks = static_cast<double>(plan.streamed_blocks),
                  .pages = static_cast<double>(plan.streamed - plan.streamed_blocks),
                  .experts = missed_experts(input, kept)};
  } else if (plan.kind == MemoryPlan::Kind::Act) {
    plan.reads = fault_reads(input, plan, /*with_pinned=*/true);
  }
  plan.bytes_per_token = bytes_of(plan.reads);
  plan.tokens_per_second = rate(plan.reads);
}

}  // namespace

ReadSpeeds ReadSpeeds::times(double factor) const {
  ReadSpeeds other = *this;
  for (double* speed :
       {&other.blocks, &other.pages, &other.experts, &other.faults.bytes_per_second})
    *speed *= factor;
  return other;
}

double token_rate(const TokenReads& reads, double compute_seconds, const ReadSpeeds& speeds) {
  if (speeds.blocks <= 0 && bytes_of(reads) > 0) return 0;
  const auto seconds_of = [&](double bytes, double speed) {
    return bytes > 0 ? bytes / (speed > 0 ? speed : speeds.blocks) : 0;
  };
  const double pages = seconds_of(reads.pages, speeds.pages);
  const double ahead = seconds_of(reads.blocks, speeds.blocks) + pages;
  const double processor = std::min(reads.pages * speeds.page_seconds, pages);
  double seconds = std::max(compute_seconds, ahead) + std::min(compute_seconds, processor) +
                   seconds_of(reads.experts, speeds.experts);
  const double faults = seconds_of(reads.faults, speeds.faults.bytes_per_second) +
                        reads.faults_used * speeds.faults.map_seconds;
  seconds = speeds.faults.with_computing ? std::max(seconds, faults) : seconds + faults;
  return seconds > 0 ? 1 / seconds : 0;
}

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

MappedPages pages_around(const WeightRange& weight) {
  const std::uint64_t begin = round_down(weight.address);
  const std::uint64_t end = round_up(weight.address + weight.file.length);
  return {.file = weight.file.file,
          .offset = weight.file.offset - (weight.address - begin),
          .address = begin,
          .length = end - begin};
}

MappedPages pages_within(const WeightRange& weight) {
  const std::uint64_t begin = round_up(weight.address);
  const std::uint64_t end = round_down(weight.address + weight.file.length);
  return {.file = weight.file.file,
          .offset = weight.file.offset + (begin - weight.address),
          .address = begin,
          .length = end > begin ? end - begin : 0};
}

MemoryPlan plan_memory(const PlanInput& input) {
  MemoryPlan plan;
  const std::vector<WeightRange> weights = group_small(input.weights, plan.group_of);
  std::uint64_t dense = 0;
  for (const WeightRange& weight : weights) dense += pages_around(weight).length;
  plan.experts = input.expert_bytes;
  plan.weights = dense + plan.experts;
  if (plan.weights <= input.budget) {
    plan.kind = MemoryPlan::Kind::Fits;
    plan.reason = std::format("All {} of weights fit into {}: nothing to do.",
                              mebibytes(plan.weights), mebibytes(input.budget));
    predict(input, plan);
    return plan;
  }
  const std::uint64_t block = input.prefetch ? input.block : 0;
  const Division division(weights, block);
  // Without prefetch there is no window that a weight would have to fit.
  std::uint64_t least = 0;
  plan.window = window_for(input);
  const std::uint64_t window =
      input.prefetch ? fitting_window(weights, division, dense, plan.window, input.budget, least)
                     : plan.window;
  least = std::max(least, 2 * kMinWindow);
  if (window == 0 || input.budget < 2 * kMinWindow) {
    plan.kind = MemoryPlan::Kind::TooSmall;
    plan.reason = std::format(
        "{} are too few for this model; at least {} are needed to read weights ahead. The kernel "
        "alone decides what is kept, as without a budget.",
        mebibytes(input.budget), mebibytes(round_up_to(least, 1U << 20)));
    predict(input, plan);
    return plan;
  }
  plan.window = window;
  plan.kind = MemoryPlan::Kind::Act;
  // From here the window is fixed; what remains is for pinned weights, then for experts. The
  // window holds the experts of the running layer, too.
  const std::uint64_t room = input.budget - plan.window;
  const std::uint64_t most = input.prefetch ? plan.window / 2 : UINT64_MAX;  // of each weight
  const double share = !input.pin      ? Division::kAll
                       : dense <= room ? 0.0
                                       : division.share_for(dense, room, most);
  std::uint32_t group = 0;
  division.divide(share, most, [&](const Parts& parts, const Streamed& streamed) {
    plan.streamed += streamed.sum();
    plan.streamed_blocks += streamed.parts.blocks;
    add_ranges(weights[group], group, parts, streamed, block, plan.ranges);
    ++group;
  });
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
