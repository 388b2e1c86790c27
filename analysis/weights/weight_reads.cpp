#include "analysis/weights/weight_reads.h"

#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "analysis/common/cancel.h"
#include "analysis/common/derived_graphs.h"
#include "analysis/common/op_info.h"
#include "analysis/common/walk_steps.h"
#include "tracer/format/access/access.h"

namespace tt {

namespace {

// The file range of the cache item that an access reads.
FileRange cached_range(const GraphTemplate& graph, const StepAccess& access, Grain grain) {
  return grain == Grain::Part ? access.range : graph.tensor(graph.root(access.tensor)).file;
}

class SequenceBuilder {
 public:
  explicit SequenceBuilder(Grain grain) : grain_(grain) {}

  void add_step(const std::shared_ptr<const DerivedGraph>& of, const Step& step) {
    const DerivedGraph& derived = *of;
    const GraphTemplate& graph = *derived.graph;
    if (derived_ != of) {
      derived_ = of;
      accesses_.clear();
      for (const Access& access : derived.accesses) {
        if (may_read_file(graph, access)) accesses_.push_back(access);
      }
      known_.assign(accesses_.size(), kNone);
    }
    OpId op{kNoOp};
    for_each_access(graph, accesses_, step, [&](const StepAccess& access) {
      if (access.write || access.range.length == 0) return;
      if (access.op.v != op.v) ++ops_;
      op = access.op;
      // An access that depends on no list reads the same item in every step of the template.
      std::uint32_t item = known_[access.access];
      if (item == kNone) item = item_of(graph, access);
      if (accesses_[access.access].slot == kNoSlot) known_[access.access] = item;
      // With Grain::Tensor, an op that reads several experts of a tensor counts as one read.
      read_by_.resize(sequence_.items.size());
      if (std::exchange(read_by_[item], ops_) == ops_) return;
      ++sequence_.items[item].reads;
      sequence_.reads.push_back(item);
    });
  }

  ReadSequence take() { return std::move(sequence_); }

 private:
  static constexpr std::uint32_t kNoOp = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t item_of(const GraphTemplate& graph, const StepAccess& access) {
    const FileRange range = cached_range(graph, access, grain_);
    const auto [at, fresh] = items_.try_emplace(std::tuple(range.file, range.offset, range.length),
                                                static_cast<std::uint32_t>(sequence_.items.size()));
    if (fresh) {
      const Tensor& tensor = graph.tensor(graph.root(access.tensor));
      sequence_.items.push_back({.tensor = tensor.name,
                                 .expert = grain_ == Grain::Part ? access.expert : -1,
                                 .file = range,
                                 .layer = tensor.layer,
                                 .source = tensor.source});
    }
    return at->second;
  }

  const Grain grain_;
  ReadSequence sequence_;
  std::shared_ptr<const DerivedGraph> derived_;  // of the previous step
  std::vector<Access> accesses_;                 // its accesses that may read weights
  std::vector<std::uint32_t> known_;             // cached item per access; kNone: unknown
  std::uint64_t ops_ = 0;                        // number of ops seen in all steps
  std::vector<std::uint64_t> read_by_;           // per item: number of the last op reading it
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> items_;
};

}  // namespace

Bytes ReadSequence::bytes() const {
  std::uint64_t sum = 0;
  for (const ReuseItem& item : items) sum += item.reads * item.file.length;
  return Bytes{sum};
}

Bytes ReadSequence::distinct_bytes() const {
  std::uint64_t sum = 0;
  for (const ReuseItem& item : items) sum += item.file.length;
  return Bytes{sum};
}

std::expected<ReadSequence, TraceError> reads_of(const ReadSequence& sequence,
                                                 const std::function<bool(const ReuseItem&)>& keep,
                                                 const ContinueCheck& keep_going) {
  CancelCheck cancel_check(keep_going);
  ReadSequence out;
  std::vector<std::uint32_t> number(sequence.items.size(), kNone);
  for (std::size_t i = 0; i < sequence.items.size(); ++i) {
    if (!keep(sequence.items[i])) continue;
    number[i] = static_cast<std::uint32_t>(out.items.size());
    out.items.push_back(sequence.items[i]);
  }
  for (const std::uint32_t item : sequence.reads) {
    if (!cancel_check.may_continue()) return std::unexpected(cancelled_error());
    if (number[item] != kNone) out.reads.push_back(number[item]);
  }
  return out;
}

std::expected<ReadSequence, TraceError> weight_reads(const SessionReader& reader, PageRange steps,
                                                     Grain grain, const ContinueCheck& keep_going) {
  SequenceBuilder builder(grain);
  const auto walked = walk_derived_steps(reader, steps, keep_going,
                                         [&](const DerivedPtr& derived, const Step& step) {
                                           if (derived != nullptr) builder.add_step(derived, step);
                                         });
  if (!walked) return std::unexpected(walked.error());
  return builder.take();
}

}  // namespace tt
