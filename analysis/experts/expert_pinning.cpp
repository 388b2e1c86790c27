#include "analysis/experts/expert_pinning.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/common/cancel.h"
#include "analysis/fields/fields.h"

namespace tt {

namespace {

// The number of leading items of `order` that fit into the capacity.
std::size_t how_many_fit(const ReadSequence& sequence, std::span<const std::uint32_t> order,
                         Bytes capacity) {
  std::uint64_t free = capacity.v;
  std::size_t n = 0;
  while (n < order.size() && sequence.size(order[n]) <= free) free -= sequence.size(order[n++]);
  return n;
}

// Bytes that LRU and pinning save of the reads from index `half` on.
std::expected<void, TraceError> evaluate_half(const ReadSequence& sequence,
                                              std::span<const Bytes> distances, std::size_t half,
                                              std::span<const std::uint32_t> order, PinPoint& point,
                                              const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  std::vector<bool> pinned(sequence.items.size());
  const std::size_t n = how_many_fit(sequence, order, point.capacity);
  for (const std::uint32_t item : order.subspan(0, n)) pinned[item] = true;
  std::vector<bool> read(sequence.items.size());
  for (std::size_t i = 0; i < sequence.reads.size(); ++i) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    const std::uint32_t item = sequence.reads[i];
    if (i >= half) {
      const Bytes size{sequence.size(item)};
      if (distances[i] != kNever && distances[i] <= point.capacity) point.tried_lru += size;
      // The first read of a slice loads it.
      if (pinned[item] && read[item]) point.tried_pinned += size;
    }
    read[item] = true;
  }
  return {};
}

// All slices of a weight have the same size.
std::vector<SlotSize> slot_sizes(const ReadSequence& experts) {
  std::map<LayerId, std::map<std::string_view, std::uint64_t>> layers;
  for (const ReuseItem& item : experts.items)
    layers[item.layer].try_emplace(item.tensor, item.file.length);
  std::vector<SlotSize> slots;
  for (const auto& [layer, weights] : layers) {
    SlotSize slot{.layer = layer};
    for (const auto& [name, bytes] : weights) slot.bytes += Bytes{bytes};
    slots.push_back(slot);
  }
  return slots;
}

std::vector<Bytes> tenths_of(Bytes all) {
  constexpr std::uint64_t kTenths = 10;
  std::vector<Bytes> tenths;
  for (std::uint64_t i = 1; i <= kTenths && all.v > 0; ++i)
    tenths.push_back(Bytes{all.v / kTenths * i + all.v % kTenths * i / kTenths});
  return tenths;
}

}  // namespace

std::expected<ReadSequence, TraceError> expert_reads(const ReadSequence& sequence,
                                                     const ContinueCheck& keep_going) {
  return reads_of(sequence, [](const ReuseItem& item) { return item.expert >= 0; }, keep_going);
}

std::expected<ExpertPinning, TraceError> expert_pinning(const ReadSequence& sequence,
                                                        std::span<const Bytes> capacities,
                                                        const ContinueCheck& keep_going) {
  const auto of_experts = expert_reads(sequence, keep_going);
  if (!of_experts) return std::unexpected(of_experts.error());
  const ReadSequence& experts = *of_experts;
  const std::vector<Bytes> tenths = tenths_of(experts.distinct_bytes());
  if (capacities.empty()) capacities = tenths;
  ExpertPinning out{.weights_read = sequence.bytes(),
                    .read = experts.bytes(),
                    .distinct = experts.distinct_bytes(),
                    .reads = experts.reads.size(),
                    .slices = experts.items.size(),
                    .curve = {},
                    .slots = slot_sizes(experts)};
  const std::size_t half = experts.reads.size() / 2;
  CancelCheck cancel_check(keep_going);
  std::vector<std::uint64_t> in_first_half(experts.items.size());
  for (std::size_t i = 0; i < experts.reads.size(); ++i) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    const std::uint32_t item = experts.reads[i];
    if (i < half) {
      ++in_first_half[item];
    } else {
      out.tried += Bytes{experts.size(item)};
    }
  }
  const auto distances = reuse_distances(experts, keep_going);
  if (!distances) return std::unexpected(distances.error());
  const auto lru = lru_reuse(experts, capacities, keep_going);
  if (!lru) return std::unexpected(lru.error());
  const auto pinned = pin_curve(experts, capacities, keep_going);
  if (!pinned) return std::unexpected(pinned.error());
  const auto best = belady_curve(experts, capacities, keep_going);
  if (!best) return std::unexpected(best.error());
  const auto by_all = most_read_first(experts);
  const auto by_half = most_read_first(in_first_half);
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    PinPoint point{.capacity = capacities[i],
                   .lru = lru->curve[i].bytes,
                   .pinned = (*pinned)[i].bytes,
                   .best = (*best)[i].bytes,
                   .slices = how_many_fit(experts, by_all, capacities[i])};
    const auto tried = evaluate_half(experts, *distances, half, by_half, point, keep_going);
    if (!tried) return std::unexpected(tried.error());
    out.curve.push_back(point);
  }
  return out;
}

std::uint64_t ExpertPinning::slots_per_layer(Bytes budget) const {
  Bytes each{};
  for (const SlotSize& slot : slots) each += slot.bytes;
  return each.v == 0 ? 0 : budget.v / each.v;
}

const PinPoint* ExpertPinning::best_gain() const {
  const PinPoint* best = nullptr;
  for (const PinPoint& point : curve) {
    if (point.tried_pinned <= point.tried_lru) continue;
    if (best == nullptr ||
        point.tried_pinned.v - point.tried_lru.v > best->tried_pinned.v - best->tried_lru.v)
      best = &point;
  }
  return best;
}

std::expected<ExpertPinning, TraceError> expert_pinning(const SessionReader& reader,
                                                        std::span<const Bytes> capacities,
                                                        const ContinueCheck& keep_going) {
  const auto sequence = weight_reads(reader, kAllRows, Grain::Part, keep_going);
  if (!sequence) return std::unexpected(sequence.error());
  return expert_pinning(*sequence, capacities, keep_going);
}

namespace {

struct PinGain {
  Bytes capacity{};
  double share = 0;
};

Fields<PinGain> fields_of(const PinGain*) {
  return Fields<PinGain>()
      .add("capacity_bytes", "", &PinGain::capacity)
      .add("share", "share of `expert_bytes_tried`", &PinGain::share);
}

std::optional<PinGain> gain_of(const ExpertPinning& pinning) {
  const PinPoint* const best = pinning.best_gain();
  if (best == nullptr) return std::nullopt;
  const auto gained = static_cast<double>(best->tried_pinned.v - best->tried_lru.v);
  return PinGain{.capacity = best->capacity,
                 .share = pinning.tried.v == 0 ? 0 : gained / static_cast<double>(pinning.tried.v)};
}

struct PinRow {
  PinPoint point;
  std::uint64_t slots;
};

Fields<PinRow> fields_of(const PinRow*) {
  const auto of = [](auto member) { return [=](const PinRow& row) { return row.point.*member; }; };
  return Fields<PinRow>()
      .add("capacity_bytes", "", of(&PinPoint::capacity))
      .add("slices", "number of whole slices that fit, most read first", of(&PinPoint::slices))
      .add("slots_per_layer", "number of slots that fit, the same number in each layer",
           &PinRow::slots)
      .add("lru_saved", "bytes served by an LRU cache", of(&PinPoint::lru))
      .add("pinned_saved", "bytes served if the slices most read in all reads are pinned",
           of(&PinPoint::pinned))
      .add("best_saved", "bytes served by the optimal policy (Belady) with knowledge of all reads",
           of(&PinPoint::best))
      .add("tried_lru_saved",
           "bytes of the second half served by an LRU cache that has run since the first read",
           of(&PinPoint::tried_lru))
      .add("tried_pinned_saved",
           "bytes of the second half served if the most read slices of the first half are "
           "pinned",
           of(&PinPoint::tried_pinned));
}

}  // namespace

static Fields<SlotSize> fields_of(const SlotSize*) {
  return Fields<SlotSize>()
      .add("layer", "", &SlotSize::layer)
      .add("slot_bytes", "", &SlotSize::bytes);
}

Fields<ExpertPinning> fields_of(const ExpertPinning*) {
  return Fields<ExpertPinning>("Pinning")
      .add("weight_bytes_read", "bytes of all reads of weights", &ExpertPinning::weights_read)
      .add("expert_bytes_read",
           "bytes of the reads of slices; a slice is the part of one expert in one weight",
           &ExpertPinning::read)
      .add("expert_bytes_distinct", "total size of the slices that were read",
           &ExpertPinning::distinct)
      .add("expert_bytes_tried",
           "bytes of the second half of the reads. For the `tried` fields, the slices to pin "
           "are those most read in the first half, and the saved bytes are counted in the "
           "second half",
           &ExpertPinning::tried)
      .add("reads", "", &ExpertPinning::reads)
      .add("slices", "number of slices", &ExpertPinning::slices)
      .add("slots", "a slot holds all weights of one expert of one layer; ascending layers",
           &ExpertPinning::slots)
      .add("gain",
           "cache size at which pinning saved most bytes compared with LRU in the second half",
           gain_of, {.null = "it never saved more"})
      .add("curve", "", [](const ExpertPinning& pinning) {
        std::vector<PinRow> rows;
        for (const PinPoint& point : pinning.curve)
          rows.push_back({.point = point, .slots = pinning.slots_per_layer(point.capacity)});
        return rows;
      });
}

}  // namespace tt
