#include "analysis/weights/sequentiality.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "analysis/aggregate/axis_rows.h"
#include "analysis/aggregate/step_shares.h"
#include "analysis/fields/fields.h"

namespace tt {

void ReadOrder::add(const ReadOrder& more) {
  reads += more.reads;
  sequential += more.sequential;
  bytes += more.bytes;
  sequential_bytes += more.sequential_bytes;
}

ReadOrder ReadHead::read(std::span<const FileRange> ranges) {
  ReadOrder order{.reads = 1};
  for (const FileRange& range : ranges) order.bytes += Bytes{range.length};
  if (follows(ranges.front().file, ranges.front().offset)) {
    order.sequential = 1;
    order.sequential_bytes = order.bytes;
  }
  move_to(ranges.back().file, ranges.back().offset + ranges.back().length);
  return order;
}

namespace {

// The number of elements of a bit set that have another element at most `near` below them.
std::uint64_t pairs_in(std::span<const std::uint64_t> set, std::uint64_t max_distance) {
  if (max_distance == 0) return 0;
  if (set.size() == 1) {
    std::uint64_t below = set[0] << 1;
    for (std::uint64_t reach = 1; reach < max_distance && reach < 64;) {
      const std::uint64_t more = std::min({reach, max_distance - reach, std::uint64_t{63}});
      below |= below << more;
      reach += more;
    }
    return static_cast<std::uint64_t>(std::popcount(set[0] & below));
  }
  std::uint64_t pairs = 0;
  std::optional<std::uint64_t> before;
  for (std::uint64_t w = 0; w < set.size(); ++w) {
    for (std::uint64_t word = set[w]; word != 0; word &= word - 1) {
      const std::uint64_t n = w * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
      pairs += before && n - *before <= max_distance;
      before = n;
    }
  }
  return pairs;
}

// The reads of a series in order, with their totals. Consecutive reads that are the same in
// every step form a run and are evaluated once. Parts of a tensor differ from step to step. If
// they are stored as a bit set and are equally spaced in the file, only the first and last
// part and the number of parts near each other are needed; otherwise each part is evaluated.
class ReadPlan {
 public:
  ReadPlan(const Series& series, const TraceMatcher& matcher, std::uint64_t gap)
      : series_(series), rules_(series.outline->rules) {
    const TemplateOutline& outline = *series.outline;
    for (std::uint32_t i = 0; i < series.ran; ++i) {
      const OutlineOp& op = outline.ops[i];
      if (!matcher.op(op)) continue;
      for (const OutlineAccess& access :
           std::span(outline.accesses).subspan(op.first_access, op.accesses)) {
        // Copies of weights (repacked, --no-mmap, devices) have a range in the file, too, but are
        // not read from it.
        if (access.write || access.source != Source::Disk || access.file.empty() ||
            !matcher.access(access))
          continue;
        if (access.rule == kNone) {
          add_to_run(access, op.layer, gap);
        } else if (rules_[access.rule].rule.separate) {  // otherwise not in a file
          add_parts(access, op.layer, gap);
        }
      }
    }
    listed_.resize(rules_.size());
  }

  ReadOrder read_step(std::size_t place, ReadHead& head) {
    ++steps_;
    ReadOrder of_step;
    read_sets(place, of_step);
    std::ranges::fill(listed_, std::span<const std::uint32_t>());
    series_.for_each_listed(
        place, [&](std::uint32_t rule, std::span<const std::uint32_t> n) { listed_[rule] = n; });
    for (Item& item : items_) {
      if (item.parts == nullptr) {
        const ReadOrder first = head.read(item.first);
        item.order.add(first);
        of_step.add(first);
        of_step.add(item.rest);
        head.move_to(item.last.file, item.last.offset + item.last.length);
      } else if (item.set != kNone) {
        const Set& set = sets_[item.set];
        if (set.count == 0) continue;
        const OutlineAccess& access = *item.parts;
        if (head.follows(access.file.file, access.file.offset + set.first * access.stride)) {
          ++item.followed;
          ++of_step.sequential;
          of_step.sequential_bytes += access.unit;
        }
        head.move_to(access.file.file,
                     access.file.offset + set.last * access.stride + access.unit.v);
      } else {
        for_each_part(item, place, [&](std::uint32_t number) {
          const FileRange range = item.parts->part_in_file(number);
          if (range.empty()) return;
          const ReadOrder order = head.read(range);
          item.order.add(order);
          of_step.add(order);
        });
      }
    }
    return of_step;
  }

  // Adds the totals of all steps by the layer of the op.
  void add_layers(std::map<LayerId, ReadOrder>& layers) const {
    const auto times = [](std::uint64_t n, std::uint64_t sequential, Bytes unit) {
      return ReadOrder{.reads = n,
                       .sequential = sequential,
                       .bytes = Bytes{n * unit.v},
                       .sequential_bytes = Bytes{sequential * unit.v}};
    };
    for (const Item& item : items_) {
      ReadOrder order = item.order;
      if (item.set != kNone)
        order = times(sets_[item.set].all, sets_[item.set].pairs + item.followed, item.parts->unit);
      if (order.reads != 0) layers[item.layer].add(order);
    }
    for (const auto& [layer, each] : inside_) {
      layers[layer].add({.reads = each.reads * steps_,
                         .sequential = each.sequential * steps_,
                         .bytes = Bytes{each.bytes.v * steps_},
                         .sequential_bytes = Bytes{each.sequential_bytes.v * steps_}});
    }
  }

 private:
  struct Item {
    LayerId layer;
    const OutlineAccess* parts = nullptr;  // null: a run
    FileRange first{}, last{};             // first and last read of a run
    ReadOrder rest{};                      // the run without its first read, per step
    std::uint32_t set = kNone;             // index in sets_, if the parts are a bit set
    std::uint64_t followed = 0;            // number of steps whose first part was sequential
    ReadOrder order{};                     // all steps: first reads of a run, or single parts
  };
  // Shared by all tensors whose parts have the same rule and the same maximum distance of
  // sequential parts.
  struct Set {
    std::uint32_t rule = 0;
    std::uint64_t max_distance = 0;
    std::uint64_t tensors = 0, units = 0;          // number of tensors, sum of their part sizes
    std::uint64_t count = 0, first = 0, last = 0;  // in the step
    std::uint64_t all = 0, pairs = 0;              // in all steps
  };

  void add_to_run(const OutlineAccess& access, LayerId layer, std::uint64_t gap) {
    if (items_.empty() || items_.back().parts != nullptr) {
      items_.push_back(
          {.layer = layer, .parts = nullptr, .first = access.file, .last = access.file});
      return;
    }
    Item& run = items_.back();
    ReadHead head(gap);
    head.move_to(run.last.file, run.last.offset + run.last.length);
    const ReadOrder order = head.read(access.file);
    run.rest.add(order);
    inside_[layer].add(order);
    run.last = access.file;
  }

  void add_parts(const OutlineAccess& access, LayerId layer, std::uint64_t gap) {
    Item item{.layer = layer, .parts = &access};
    const OutlineRule& rule = rules_[access.rule];
    const auto limit = static_cast<std::uint64_t>(rule.rule.limit);
    const std::uint64_t unit = access.unit.v;
    constexpr std::uint64_t kMax = std::uint64_t{1} << 50;  // prevents overflow
    if (rule.words != 0 && unit != 0 && access.stride >= unit && access.stride < kMax &&
        access.file.offset < kMax && gap < kMax &&
        access.file.offset + (limit - 1) * access.stride + unit <= access.file_end) {
      const std::uint64_t max_distance = (gap + unit) / access.stride;
      const auto known = std::ranges::find_if(sets_, [&](const Set& s) {
        return s.rule == access.rule && s.max_distance == max_distance;
      });
      item.set = static_cast<std::uint32_t>(known - sets_.begin());
      if (known == sets_.end())
        sets_.push_back({.rule = access.rule, .max_distance = max_distance});
      ++sets_[item.set].tensors;
      sets_[item.set].units += unit;
    }
    items_.push_back(item);
  }

  void read_sets(std::size_t place, ReadOrder& of_step) {
    const auto before = series_.parts_before(place), after = series_.parts_before(place + 1);
    for (Set& set : sets_) {
      set.count = after[set.rule] - before[set.rule];
      if (set.count == 0) continue;
      const auto words = series_.set_of(rules_[set.rule], place);
      std::size_t low = 0, high = words.size() - 1;
      while (words[low] == 0) ++low;
      while (words[high] == 0) --high;
      set.first = low * 64 + static_cast<std::uint64_t>(std::countr_zero(words[low]));
      set.last = high * 64 + 63 - static_cast<std::uint64_t>(std::countl_zero(words[high]));
      const std::uint64_t pairs = set.max_distance >= set.last - set.first
                                      ? set.count - 1
                                      : pairs_in(words, set.max_distance);
      set.all += set.count;
      set.pairs += pairs;
      of_step.reads += set.count * set.tensors;
      of_step.bytes.v += set.count * set.units;
      of_step.sequential += pairs * set.tensors;
      of_step.sequential_bytes.v += pairs * set.units;
    }
  }

  template <class Each>
  void for_each_part(const Item& item, std::size_t place, Each each) const {
    const std::uint32_t rule = item.parts->rule;
    for (const std::uint32_t n : listed_[rule]) each(n);
    const auto words = series_.set_of(rules_[rule], place);
    for (std::uint32_t w = 0; w < words.size(); ++w)
      for (std::uint64_t word = words[w]; word != 0; word &= word - 1)
        each(w * 64 + static_cast<std::uint32_t>(std::countr_zero(word)));
  }

  const Series& series_;
  const std::vector<OutlineRule>& rules_;
  std::vector<Item> items_;
  std::vector<Set> sets_;
  std::map<LayerId, ReadOrder> inside_;  // per step: the runs without their first reads
  std::vector<std::span<const std::uint32_t>> listed_;  // of the current step, per rule
  std::uint64_t steps_ = 0;
};

}  // namespace

std::expected<Sequentiality, TraceError> sequentiality(const SessionIndex& index,
                                                       const TraceFilter& filter, std::uint64_t gap,
                                                       PageRange page,
                                                       const ContinueCheck& keep_going) {
  Sequentiality out{
      .gap = gap, .total = {}, .layers = {}, .steps = {}, .left_out_steps = index.left_out()};
  const TraceMatcher matcher(index, filter);
  const StepWindow window = window_of(index, filter);
  const auto reaches = [](auto from, auto to, const auto& range) {
    return !range || (from < range->to && to > range->from);
  };
  std::vector<std::unique_ptr<ReadPlan>> plans(index.series().size());
  ReadHead head(gap);
  for (std::uint64_t i = window.steps.from; i < window.steps.to; ++i) {
    if (i % 4096 == 0 && !keep_going()) return std::unexpected(cancelled_error());
    const IndexedStep& step = index.steps()[static_cast<std::size_t>(i)];
    if (step.series == kNone || (filter.phase && step.phase != *filter.phase) ||
        !reaches(token_begin(step), token_end(step), window.tokens) ||
        !reaches(step.begin.v, std::max(step.end.v, step.begin.v + 1), window.time))
      continue;
    const Series& series = index.series()[step.series];
    auto& plan = plans[step.series];
    if (!plan) plan = std::make_unique<ReadPlan>(series, matcher, gap);
    const ReadOrder of_step = plan->read_step(step.place, head);
    if (of_step.reads == 0) continue;
    out.total.add(of_step);
    if (page.contains(out.steps.total++))
      out.steps.rows.push_back({.step = StepId{static_cast<std::uint32_t>(i)},
                                .first_token = step.first_token,
                                .n_tokens = step.n_tokens,
                                .order = of_step});
  }
  std::map<LayerId, ReadOrder> layers;
  for (const auto& plan : plans)
    if (plan) plan->add_layers(layers);
  for (const auto& [layer, order] : layers)
    if (layer != kNoLayer) out.layers.push_back({layer, order});
  if (const auto none = layers.find(kNoLayer); none != layers.end())
    out.layers.push_back({kNoLayer, none->second});
  return out;
}

Fields<ReadOrder> fields_of(const ReadOrder*) {
  return Fields<ReadOrder>("ReadOrder")
      .add("reads", "number of reads of the model files", &ReadOrder::reads)
      .add("sequential", "number of these reads that are sequential", &ReadOrder::sequential)
      .add("bytes", "", &ReadOrder::bytes)
      .add("sequential_bytes", "bytes of the sequential reads", &ReadOrder::sequential_bytes);
}

static Fields<Sequentiality::OfLayer> fields_of(const Sequentiality::OfLayer*) {
  return Fields<Sequentiality::OfLayer>()
      .add("layer", "", &Sequentiality::OfLayer::layer)
      .include(&Sequentiality::OfLayer::order);
}

static Fields<Sequentiality::OfStep> fields_of(const Sequentiality::OfStep*) {
  return Fields<Sequentiality::OfStep>()
      .add("step", "", &Sequentiality::OfStep::step)
      .add("first_token", "", &Sequentiality::OfStep::first_token)
      .add("tokens", "number of tokens that the step evaluated", &Sequentiality::OfStep::n_tokens)
      .include(&Sequentiality::OfStep::order);
}

Fields<Sequentiality> fields_of(const Sequentiality*) {
  return Fields<Sequentiality>("Sequentiality")
      .add("gap",
           "maximum distance from the end of a read to the start of the next, sequential one",
           &Sequentiality::gap, {.unit = "bytes"})
      .add("sums", "", &Sequentiality::total)
      .add("layers", "by layer of the op", &Sequentiality::layers)
      .add("left_out_steps", kLeftOutSteps, &Sequentiality::left_out_steps)
      .add("total", "number of rows in the whole list",
           [](const Sequentiality& of) { return of.steps.total; })
      .add("steps", "steps with at least one read",
           [](const Sequentiality& of) { return of.steps.rows; });
}

}  // namespace tt
