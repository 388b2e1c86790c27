#include "analysis/weights/pattern.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/op_info.h"
#include "analysis/common/walk_steps.h"

namespace tt {

namespace {

// Calls `visit` for each GENERATE step from `first` on that has a template.
std::expected<void, TraceError> each_generated(
    const SessionReader& reader, StepId first, const ContinueCheck& keep_going,
    const std::function<void(const DerivedPtr&, const Step&)>& visit) {
  DerivedGraphCache graphs(reader);
  return walk_steps(reader, {.from = first.v, .limit = UINT64_MAX}, keep_going,
                    [&](const Step& step) -> std::expected<void, TraceError> {
                      if (step.phase != Phase::Generate || step.graph.v == 0) return {};
                      const auto derived = graphs.of(step.graph);
                      if (!derived) return std::unexpected(derived.error());
                      visit(*derived, step);
                      return {};
                    });
}

// What one access of a template touched in one step.
struct Touched {
  std::vector<FileRange> ranges;  // of weights: one, or one per part
  Bytes bytes{};
  friend bool operator==(const Touched&, const Touched&) = default;
};

std::vector<Touched> touched_in(const GraphTemplate& graph, std::span<const Access> accesses,
                                const Step& step) {
  std::vector<Touched> touched(accesses.size());
  for_each_access(graph, accesses, step, [&](const StepAccess& access) {
    Touched& one = touched[access.access];
    one.bytes += access.touched;
    if (access.range.length > 0) one.ranges.push_back(access.range);
  });
  return touched;
}
std::vector<Touched> touched_in(const DerivedGraph& derived, const Step& step) {
  return touched_in(*derived.graph, derived.accesses, step);
}

// A subset of the accesses of a template. Expanding lists of cache cells is expensive, so
// accesses that are not needed are left out.
struct AccessSubset {
  DerivedPtr of;
  std::vector<Access> accesses;
  std::vector<std::size_t> places;  // indices in of->accesses

  template <class Wanted>
  void select(const DerivedPtr& derived, Wanted wanted) {
    if (of == derived) return;
    of = derived;
    accesses.clear();
    places.clear();
    for (std::size_t i = 0; i < derived->accesses.size(); ++i) {
      if (!wanted(derived->accesses[i])) continue;
      accesses.push_back(derived->accesses[i]);
      places.push_back(i);
    }
  }
  std::vector<Touched> touched_in(const Step& step) const {
    return tt::touched_in(*of->graph, accesses, step);
  }
};

// ---------------------------------------------------------------- determinism

// Whether two templates make the same accesses, except for the size of the cache window.
bool same_order(const DerivedGraph& a, const DerivedGraph& b) {
  return std::ranges::equal(a.accesses, b.accesses, [&](const Access& x, const Access& y) {
    return x.op == y.op && x.write == y.write && x.extent == y.extent &&
           a.graph->tensor(x.tensor).name == b.graph->tensor(y.tensor).name;
  });
}

Cause cause_of(const DerivedGraph& derived, const Access& access) {
  const Tensor& tensor = derived.graph->tensor(derived.graph->root(access.tensor));
  if (access.extent == Extent::Experts) return Cause::Experts;
  if (access.extent == Extent::Rows && tensor.kind == TensorKind::Weight) return Cause::Token;
  // The size of attention's other tensors depends on the cache window.
  return Cause::KvWindow;
}

class Comparison {
 public:
  void add(const DerivedPtr& derived, const Step& step) {
    // Two steps of a template with the same number of executed ops differ only in accesses
    // that depend on a list.
    listed_.select(derived, [](const Access& access) { return access.slot != kNoSlot; });
    auto touched = listed_.touched_in(step);
    if (derived_ != nullptr) compare(derived, step, touched);
    derived_ = derived;
    before_ = step;
    touched_ = std::move(touched);
  }
  Determinism take() { return std::move(result_); }

 private:
  // `touched` and, if the template is the same, touched_ are indexed like listed_.accesses.
  void compare(const DerivedPtr& now, const Step& step, std::span<const Touched> touched) {
    const DerivedGraph& derived = *now;
    const std::size_t accesses = derived.accesses.size();
    ++result_.pairs;
    result_.accesses += accesses;
    const auto before = result_.differing;
    if (step.aborted || before_.aborted) {
      differs(Cause::Unfinished, accesses, derived, step, 0);
    } else if (derived_ == now && before_.op_ends.size() == step.op_ends.size()) {
      for (std::size_t i = 0; i < touched.size(); ++i) {
        if (touched[i] != touched_[i])
          differs(cause_of(derived, listed_.accesses[i]), 1, derived, step, listed_.places[i]);
      }
    } else if (derived_ != now && !same_order(*derived_, derived)) {
      differs(Cause::Graph, accesses, derived, step, 0);
    } else {
      const auto was = touched_in(*derived_, before_), is = touched_in(derived, step);
      for (std::size_t i = 0; i < accesses; ++i)
        if (is[i] != was[i]) differs(cause_of(derived, derived.accesses[i]), 1, derived, step, i);
    }
    const auto grew = [&](Cause cause) {
      const auto at = static_cast<std::size_t>(cause);
      return result_.differing[at] > before[at];
    };
    result_.identical += result_.differing == before;
    result_.same_weights +=
        !grew(Cause::Experts) && !grew(Cause::Graph) && !grew(Cause::Unfinished);
  }

  void differs(Cause cause, std::uint64_t accesses, const DerivedGraph& derived, const Step& step,
               std::size_t at) {
    std::uint64_t& sum = result_.differing[static_cast<std::size_t>(cause)];
    if (sum == 0 && at < derived.accesses.size()) {
      const Access& access = derived.accesses[at];
      result_.firsts.push_back({.step = step.id,
                                .before = before_.id,
                                .op = access.op,
                                .tensor = derived.graph->tensor(access.tensor).name,
                                .cause = cause});
    }
    sum += accesses;
  }

  Determinism result_;
  DerivedPtr derived_;  // of the previous step
  Step before_;
  AccessSubset listed_;
  std::vector<Touched> touched_;  // in before_
};

// ---------------------------------------------------------------- pattern

bool is_weight_read(const Access& access, const Touched& touched) {
  return !access.write && !touched.ranges.empty();
}

PatternEntry entry_of(const GraphTemplate& graph, const Access& access, const Touched& touched) {
  const Tensor& tensor = graph.tensor(graph.root(access.tensor));
  PatternEntry entry{.kind = access.extent == Extent::Experts ? PatternEntry::Kind::Routed
                             : access.extent == Extent::Rows  ? PatternEntry::Kind::Row
                                                              : PatternEntry::Kind::Fixed,
                     .tensor = tensor.name,
                     .op = access.op,
                     .file = tensor.file,
                     .part_bytes = access.unit,
                     .parts = static_cast<std::uint32_t>(touched.ranges.size()),
                     .layer = tensor.layer,
                     .component = tensor.component};
  if (entry.kind == PatternEntry::Kind::Fixed) entry.file = touched.ranges.front();
  return entry;
}

std::vector<PatternEntry> entries_of(const AccessSubset& reads, const Step& step) {
  std::vector<PatternEntry> entries;
  const auto touched = reads.touched_in(step);
  for (std::size_t i = 0; i < touched.size(); ++i) {
    if (is_weight_read(reads.accesses[i], touched[i]))
      entries.push_back(entry_of(*reads.of->graph, reads.accesses[i], touched[i]));
  }
  return entries;
}

// Follows a step's reads along the pattern and predicts each read.
class Predictor {
 public:
  explicit Predictor(std::span<const PatternEntry> entries)
      : entries_(entries), last_(entries.size()) {}

  // If `count` is null, only remembers the routed parts and rows for the next step.
  void follow(const AccessSubset& reads, const Step& step, Prediction* count) {
    const auto touched = reads.touched_in(step);
    const GraphTemplate& graph = *reads.of->graph;
    std::size_t at = 0;
    for (std::size_t i = 0; i < touched.size(); ++i) {
      if (!is_weight_read(reads.accesses[i], touched[i])) continue;
      const Tensor& tensor = graph.tensor(graph.root(reads.accesses[i].tensor));
      const bool expected = at < entries_.size() && entries_[at].tensor == tensor.name;
      if (count != nullptr) {
        for (const FileRange& range : touched[i].ranges) {
          const bool right = expected && predicts(at, range);
          ++count->reads;
          count->right += right;
          count->bytes += Bytes{range.length};
          if (right) count->right_bytes += Bytes{range.length};
        }
      }
      // On a misprediction, continue after the next entry that reads this tensor.
      std::size_t found = at;
      while (found < entries_.size() && entries_[found].tensor != tensor.name) ++found;
      if (found == entries_.size()) continue;
      last_[found] = touched[i].ranges;
      at = found + 1;
    }
  }

 private:
  bool predicts(std::size_t at, const FileRange& range) const {
    if (entries_[at].kind == PatternEntry::Kind::Fixed) return entries_[at].file == range;
    return std::ranges::find(last_[at], range) != last_[at].end();
  }

  std::span<const PatternEntry> entries_;
  std::vector<std::vector<FileRange>> last_;  // per entry, of the previous step
};

}  // namespace

const char* to_text(Cause cause) {
  switch (cause) {
    case Cause::Token:
      return "token";
    case Cause::KvWindow:
      return "kv-window";
    case Cause::Experts:
      return "experts";
    case Cause::Graph:
      return "graph";
    case Cause::Unfinished:
      return "unfinished";
  }
  return "graph";
}

std::expected<Determinism, TraceError> determinism(const SessionReader& reader,
                                                   const ContinueCheck& keep_going) {
  Comparison comparison;
  const auto walked = each_generated(
      reader, StepId{0}, keep_going,
      [&](const DerivedPtr& derived, const Step& step) { comparison.add(derived, step); });
  if (!walked) return std::unexpected(walked.error());
  return comparison.take();
}

std::expected<AccessPattern, TraceError> access_pattern(const SessionReader& reader,
                                                        const ContinueCheck& keep_going) {
  // Step rows are enough to select the steps; only the second half is decoded.
  std::vector<StepId> steps;
  bool wanted = true;
  const auto listed =
      reader.for_each_step_row(StepId{0}, kNone, [&](const SessionReader::StepRow& row) {
        const Step& step = row.head;
        if (step.phase == Phase::Generate && step.graph.v != 0 && !step.aborted)
          steps.push_back(step.id);
        return wanted = keep_going();
      });
  if (!wanted) return std::unexpected(cancelled_error());
  if (!listed) return std::unexpected(listed.error());
  AccessPattern pattern;
  Prediction& prediction = pattern.prediction;
  prediction.steps_learned = (steps.size() + 1) / 2;
  prediction.steps_tried = steps.size() - prediction.steps_learned;
  if (steps.empty()) return pattern;

  // The pattern is taken from the last step of the first half and tested on the second half.
  std::optional<Predictor> predictor;
  AccessSubset reads;
  const auto walked = each_generated(reader, steps[prediction.steps_learned - 1], keep_going,
                                     [&](const DerivedPtr& derived, const Step& step) {
                                       if (step.aborted) return;
                                       reads.select(derived, [&](const Access& access) {
                                         return may_read_file(*derived->graph, access);
                                       });
                                       Prediction* const count = predictor ? &prediction : nullptr;
                                       if (!predictor) {
                                         pattern.entries = entries_of(reads, step);
                                         predictor.emplace(pattern.entries);
                                       }
                                       predictor->follow(reads, step, count);
                                     });
  if (!walked) return std::unexpected(walked.error());
  return pattern;
}

}  // namespace tt
