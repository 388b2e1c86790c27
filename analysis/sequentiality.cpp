#include "analysis/sequentiality.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>

#include "analysis/axis_rows.h"
#include "analysis/step_shares.h"

namespace tt {

namespace {

void add(ReadOrder& to, const ReadOrder& more) {
  to.reads += more.reads;
  to.sequential += more.sequential;
  to.bytes += more.bytes;
  to.sequential_bytes += more.sequential_bytes;
}

// Reads one after the other.
class Head {
 public:
  explicit Head(std::uint64_t gap) : gap_(gap) {}
  ReadOrder read(const FileRange& range) {
    const bool follows = last_.length > 0 && last_.file == range.file &&
                         range.offset >= last_.offset + last_.length &&
                         range.offset - (last_.offset + last_.length) <= gap_;
    last_ = range;
    ReadOrder order{.reads = 1, .bytes = Bytes{range.length}};
    if (follows) {
      order.sequential = 1;
      order.sequential_bytes = order.bytes;
    }
    return order;
  }
  void move_behind(const FileRange& range) { last_ = range; }

 private:
  const std::uint64_t gap_;
  FileRange last_;
};

// The reads of a series: stretches in which every step reads the same, reckoned
// once, and accesses whose parts differ from step to step.
class ReadPlan {
 public:
  ReadPlan(const Series& series, const TracePicks& picks, std::uint64_t gap)
      : rules_(series.outline->rules) {
    const TemplateOutline& outline = *series.outline;
    for (std::uint32_t i = 0; i < series.ran; ++i) {
      const OutlineOp& op = outline.ops[i];
      if (!picks.op(op)) continue;
      for (const OutlineAccess& access :
           std::span(outline.accesses).subspan(op.first_access, op.accesses)) {
        if (access.write || access.file.empty() || !picks.access(access)) continue;
        if (access.rule != kNone && !rules_[access.rule].rule.apart) continue;  // not in a file
        add_read(access, op.layer, gap);
      }
    }
  }

  struct Item {
    LayerId layer;
    const OutlineAccess* parts = nullptr;  // null: a stretch
    FileRange first, last;
    ReadOrder rest;  // of a stretch, without its first read; by layer below
  };
  const std::vector<Item>& items() const { return items_; }
  // Of what is inside stretches.
  const std::map<LayerId, ReadOrder>& inside() const { return inside_; }
  const std::vector<OutlineRule>& rules() const { return rules_; }

 private:
  void add_read(const OutlineAccess& access, LayerId layer, std::uint64_t gap) {
    if (access.rule != kNone) {
      items_.push_back({.layer = layer, .parts = &access, .first = {}, .last = {}, .rest = {}});
    } else if (items_.empty() || items_.back().parts != nullptr) {
      items_.push_back({.layer = layer,
                        .parts = nullptr,
                        .first = access.file,
                        .last = access.file,
                        .rest = {}});
    } else {
      Item& stretch = items_.back();
      Head head(gap);
      head.move_behind(stretch.last);
      const ReadOrder order = head.read(access.file);
      add(stretch.rest, order);
      add(inside_[layer], order);
      stretch.last = access.file;
    }
  }

  const std::vector<OutlineRule>& rules_;
  std::vector<Item> items_;
  std::map<LayerId, ReadOrder> inside_;
};

}  // namespace

std::expected<Sequentiality, TraceError> sequentiality(const SessionIndex& index,
                                                       const TraceFilter& filter, std::uint64_t gap,
                                                       PageRange page,
                                                       const KeepGoing& keep_going) {
  Sequentiality out{.gap = gap, .total = {}, .layers = {}, .steps = {}};
  const TracePicks picks(index, filter);
  const StepWindow window = window_of(index, filter);
  const auto reaches = [](auto from, auto to, const auto& stretch) {
    return !stretch || (from < stretch->to && to > stretch->from);
  };
  std::vector<std::unique_ptr<ReadPlan>> plans(index.series().size());
  std::vector<std::uint64_t> steps_of(index.series().size());
  std::map<LayerId, ReadOrder> layers;
  std::vector<std::size_t> offsets;  // of the numbers of each rule in a step
  Head head(gap);
  for (std::uint64_t i = window.steps.from; i < window.steps.to; ++i) {
    if (i % 4096 == 0 && !keep_going()) return std::unexpected(cancelled_error());
    const IndexedStep& step = index.steps()[static_cast<std::size_t>(i)];
    if (step.series == kNone || (filter.phase && step.phase != *filter.phase) ||
        !reaches(token_begin(step), token_end(step), window.tokens) ||
        !reaches(step.begin.v, std::max(step.end.v, step.begin.v + 1), window.time))
      continue;
    const Series& series = index.series()[step.series];
    auto& plan = plans[step.series];
    if (!plan) plan = std::make_unique<ReadPlan>(series, picks, gap);
    ++steps_of[step.series];

    const auto numbers = series.numbers_of(step.place);
    const auto before = series.parts_before(step.place),
               after = series.parts_before(step.place + 1);
    offsets.assign(1, 0);
    for (std::size_t r = 0; r < plan->rules().size(); ++r)
      offsets.push_back(offsets.back() + (plan->rules()[r].rule.apart
                                              ? static_cast<std::size_t>(after[r] - before[r])
                                              : 0));
    ReadOrder of_step;
    const auto read = [&](const FileRange& range, LayerId layer) {
      const ReadOrder order = head.read(range);
      add(of_step, order);
      add(layers[layer], order);
    };
    for (const ReadPlan::Item& item : plan->items()) {
      if (item.parts == nullptr) {
        read(item.first, item.layer);
        add(of_step, item.rest);
        head.move_behind(item.last);
        continue;
      }
      const std::size_t rule = item.parts->rule;
      for (const std::uint32_t n :
           numbers.subspan(offsets[rule], offsets[rule + 1] - offsets[rule])) {
        const FileRange range = item.parts->part_in_file(n);
        if (!range.empty()) read(range, item.layer);
      }
    }
    if (of_step.reads == 0) continue;
    add(out.total, of_step);
    if (page.holds(out.steps.total++))
      out.steps.rows.push_back({.step = StepId{static_cast<std::uint32_t>(i)},
                                .first_token = step.first_token,
                                .n_tokens = step.n_tokens,
                                .order = of_step});
  }
  for (std::size_t s = 0; s < plans.size(); ++s) {
    if (!plans[s]) continue;
    for (const auto& [layer, order] : plans[s]->inside()) {
      const std::uint64_t n = steps_of[s];
      add(layers[layer], {.reads = order.reads * n,
                          .sequential = order.sequential * n,
                          .bytes = Bytes{order.bytes.v * n},
                          .sequential_bytes = Bytes{order.sequential_bytes.v * n}});
    }
  }
  for (const auto& [layer, order] : layers)
    if (layer != kNoLayer) out.layers.push_back({layer, order});
  if (const auto none = layers.find(kNoLayer); none != layers.end())
    out.layers.push_back({kNoLayer, none->second});
  return out;
}

}  // namespace tt
