#include "analysis/weights/pattern.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <utility>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/op_info.h"
#include "analysis/fields/fields.h"
#include "analysis/index/walk_outlines.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/format/model/name_of.h"

namespace tt {

namespace {

// What one access of a template touched in one step.
struct Touched {
  std::vector<FileRange> ranges;  // of weights: one, or one per part
  Bytes bytes{};
  friend bool operator==(const Touched&, const Touched&) = default;
};

std::vector<Touched> touched_in(const DerivedGraph& derived, const Step& step) {
  std::vector<Touched> touched(derived.accesses.size());
  for_each_access(*derived.graph, derived.accesses, step, [&](const StepAccess& access) {
    Touched& one = touched[access.access];
    one.bytes += access.touched;
    if (access.range.length > 0) one.ranges.push_back(access.range);
  });
  return touched;
}

// The ranges of a file that an access which depends on a list reads.
void ranges_of(const OutlineAccess& access, const OutlineRule& rule,
               const StepDecoder::Parts& parts, std::vector<FileRange>& out) {
  out.clear();
  if (!rule.rule.separate) {
    if (parts.count > 0 && access.unit.v > 0 && !access.file.empty()) out.push_back(access.file);
    return;
  }
  for_each_part(parts, [&](std::uint64_t part) {
    const FileRange range = access.part_in_file(part);
    if (range.length > 0) out.push_back(range);
  });
}

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
  // The biases of the chosen experts (ADD_ID) are rows.
  const bool by_router =
      access.slot != kNoSlot && derived.graph->slot(access.slot).kind == SlotKind::Experts;
  if (access.extent == Extent::Rows && by_router) return Cause::Experts;
  if (access.extent == Extent::Rows && tensor.kind == TensorKind::Weight) return Cause::Token;
  // The size of attention's other tensors depends on the cache window.
  return Cause::KvWindow;
}

// Whether distinct parts of an access have distinct ranges in the file.
bool has_distinct_ranges(const OutlineAccess& access, const OutlineRule& rule) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 40;  // no product overflows
  const auto limit = static_cast<std::uint64_t>(rule.rule.limit);
  return access.stride > 0 && access.stride < kMax && limit > 0 && limit < (kMax >> 20) &&
         access.part_in_file(limit - 1).length == access.unit.v;
}

// Whether an access touches other bytes with the parts `a` than with `b`.
bool touch_differs(const OutlineAccess& access, const OutlineRule& rule,
                   const StepDecoder::Parts& a, const StepDecoder::Parts& b) {
  if (access.unit.v == 0) return false;
  if (a.count != b.count) return true;
  if (!rule.rule.separate || access.file.empty()) return false;
  if (std::ranges::equal(a.set, b.set) && std::ranges::equal(a.numbers, b.numbers)) return false;
  if (has_distinct_ranges(access, rule)) return true;
  std::vector<FileRange> of_a, of_b;
  ranges_of(access, rule, a, of_a);
  ranges_of(access, rule, b, of_b);
  return of_a != of_b;
}

}  // namespace

struct DeterminismTally::Impl {
  // The parts that the lists of a step select, per rule of its template.
  class StepParts {
   public:
    void take(StepDecoder& decoder) {
      rules_.clear();
      words_.clear();
      numbers_.clear();
      for (const OutlineRule& rule : decoder.outline()->rules) {
        const StepDecoder::Parts parts = decoder.parts_of(rule);
        rules_.push_back({.count = parts.count, .word = words_.size(), .number = numbers_.size()});
        words_.insert(words_.end(), parts.set.begin(), parts.set.end());
        numbers_.insert(numbers_.end(), parts.numbers.begin(), parts.numbers.end());
      }
    }
    StepDecoder::Parts of(std::uint32_t rule) const {
      const OfRule& from = rules_[rule];
      const bool last = rule + 1 == rules_.size();
      return {.count = from.count,
              .set = std::span(words_).subspan(
                  from.word, (last ? words_.size() : rules_[rule + 1].word) - from.word),
              .numbers = std::span(numbers_).subspan(
                  from.number, (last ? numbers_.size() : rules_[rule + 1].number) - from.number)};
    }

   private:
    struct OfRule {
      std::uint64_t count = 0;
      std::size_t word = 0, number = 0;  // the first one
    };
    std::vector<OfRule> rules_;
    std::vector<std::uint64_t> words_;
    std::vector<std::int64_t> numbers_;
  };

  explicit Impl(const SessionReader& reader) : graphs(reader) {}

  // A generated step. Its blob is kept: where the template changes, all accesses are compared.
  struct Generated {
    DerivedPtr derived;
    Step head;
    std::uint64_t ops = 0;
    std::vector<std::byte> packed{};
    StepParts parts{};
  };

  std::expected<void, TraceError> add(const SessionReader::StepRow& row, StepDecoder& decoder) {
    const auto derived = graphs.of(row.head.graph);
    if (!derived) return std::unexpected(derived.error());
    std::swap(before, now);
    now.derived = *derived;
    now.head = row.head;
    now.ops = row.ops;
    now.packed.assign(row.packed.begin(), row.packed.end());
    now.parts.take(decoder);
    return before.derived == nullptr ? std::expected<void, TraceError>() : compare(decoder);
  }

  std::expected<void, TraceError> compare(const StepDecoder& decoder) {
    const std::uint64_t accesses = touching(decoder);
    ++result.pairs;
    result.accesses += accesses;
    const auto differing = result.differing;
    if (now.head.aborted || before.head.aborted) {
      differs(Cause::Unfinished, accesses, 0);
    } else if (before.derived == now.derived && before.ops == now.ops) {
      compare_lists(*decoder.outline());
    } else if (!have_same_order()) {
      differs(Cause::Graph, accesses, 0);
    } else if (const auto compared = compare_all(); !compared) {
      return compared;
    }
    const auto grew = [&](Cause cause) {
      const auto at = static_cast<std::size_t>(cause);
      return result.differing[at] > differing[at];
    };
    result.identical += result.differing == differing;
    result.same_weights += !grew(Cause::Experts) && !grew(Cause::Graph) && !grew(Cause::Unfinished);
    return {};
  }

  // Accesses of the step `now` that touch bytes.
  std::uint64_t touching(const StepDecoder& decoder) const {
    const TemplateOutline& outline = *decoder.outline();
    std::uint64_t sum = 0;
    for (const OutlineOp& op : std::span(outline.ops).first(decoder.ran())) {
      for (const OutlineAccess& access :
           std::span(outline.accesses).subspan(op.first_access, op.accesses)) {
        sum += access.unit.v > 0 && (access.rule == kNone || now.parts.of(access.rule).count > 0);
      }
    }
    return sum;
  }

  // Two steps of a template with the same number of executed ops differ only in accesses
  // that depend on a list.
  void compare_lists(const TemplateOutline& outline) {
    const std::vector<Access>& accesses = now.derived->accesses;
    if (listed_of != now.derived) {
      listed_of = now.derived;
      listed.clear();
      for (std::uint32_t i = 0; i < accesses.size(); ++i)
        if (outline.accesses[i].rule != kNone) listed.push_back(i);
    }
    const std::size_t ran = now.ops == 0 ? now.derived->graph->ops.size() : now.ops;
    for (const std::uint32_t i : listed) {
      if (accesses[i].op.v >= ran) break;
      const OutlineAccess& access = outline.accesses[i];
      if (touch_differs(access, outline.rules[access.rule], now.parts.of(access.rule),
                        before.parts.of(access.rule)))
        differs(cause_of(*now.derived, accesses[i]), 1, i);
    }
  }

  bool have_same_order() {
    if (before.derived == now.derived) return true;
    const std::pair pair(before.derived, now.derived);
    if (ordered != pair) {
      ordered = pair;
      in_same_order = same_order(*before.derived, *now.derived);
    }
    return in_same_order;
  }

  std::expected<void, TraceError> compare_all() {
    const auto was = touched_in(before), is = touched_in(now);
    if (!was || !is) return std::unexpected(was ? is.error() : was.error());
    for (std::size_t i = 0; i < is->size(); ++i)
      if ((*is)[i] != (*was)[i]) differs(cause_of(*now.derived, now.derived->accesses[i]), 1, i);
    return {};
  }

  static std::expected<std::vector<Touched>, TraceError> touched_in(const Generated& of) {
    Step step = of.head;
    if (!unpack_step(of.packed, step)) return std::unexpected(damaged_step(step.id));
    return tt::touched_in(*of.derived, step);
  }

  void differs(Cause cause, std::uint64_t accesses, std::size_t at) {
    result.differing[static_cast<std::size_t>(cause)] += accesses;
    const bool is_first = !std::ranges::contains(result.firsts, cause, &FirstDifference::cause);
    if (is_first && at < now.derived->accesses.size()) {
      const Access& access = now.derived->accesses[at];
      result.firsts.push_back({.step = now.head.id,
                               .before = before.head.id,
                               .op = access.op,
                               .tensor = now.derived->graph->tensor(access.tensor).name,
                               .cause = cause});
    }
  }

  DerivedGraphCache graphs;
  Determinism result;
  Generated before, now;
  DerivedPtr listed_of;
  std::vector<std::uint32_t> listed;  // accesses of listed_of that depend on a list
  std::pair<DerivedPtr, DerivedPtr> ordered;
  bool in_same_order = false;  // of `ordered`
};

DeterminismTally::DeterminismTally(const SessionReader& reader)
    : impl_(std::make_unique<Impl>(reader)) {}
DeterminismTally::~DeterminismTally() = default;

std::expected<void, TraceError> DeterminismTally::add(const SessionReader::StepRow& row,
                                                      StepDecoder& decoder) {
  if (row.head.phase != Phase::Generate) return {};
  return impl_->add(row, decoder);
}
Determinism DeterminismTally::take() { return std::move(impl_->result); }

// ---------------------------------------------------------------- pattern

struct PatternTally::Impl {
  // One access to a weight in the steps of a template.
  struct WeightRead {
    const OutlineAccess* access = nullptr;
    const OutlineRule* rule = nullptr;  // null: reads access->file in each step
    std::uint32_t tensor = 0;           // number of its name
    PatternEntry entry{};               // without the ranges
  };

  Impl(const SessionReader& reader, std::uint64_t steps) : graphs(reader) {
    Prediction& prediction = pattern.prediction;
    prediction.steps_learned = (steps + 1) / 2;
    prediction.steps_tried = steps - prediction.steps_learned;
  }

  // The pattern is taken from the last step of the first half and tested on the second half.
  std::expected<void, TraceError> add(const SessionReader::StepRow& row, StepDecoder& decoder) {
    const std::uint64_t learned = pattern.prediction.steps_learned;
    if (++seen < learned || learned == 0) return {};
    const auto derived = graphs.of(row.head.graph);
    if (!derived) return std::unexpected(derived.error());
    if (reads_of != *derived) select_reads(*derived, decoder.outline());
    if (seen == learned) {
      if (!is_given) learn(decoder);
      follow(decoder, nullptr);
    } else {
      follow(decoder, &pattern.prediction);
    }
    return {};
  }

  void give(std::vector<PatternEntry> entries) {
    is_given = true;
    pattern.entries = std::move(entries);
    for (const PatternEntry& entry : pattern.entries) tensors.push_back(number_of(entry.tensor));
    last.resize(tensors.size());
  }

  std::uint32_t number_of(const std::string& tensor) {
    return names.try_emplace(tensor, static_cast<std::uint32_t>(names.size())).first->second;
  }

  void select_reads(const DerivedPtr& derived, const std::shared_ptr<const TemplateOutline>& of) {
    reads_of = derived;
    outline = of;
    reads.clear();
    const GraphTemplate& graph = *derived->graph;
    for (std::size_t i = 0; i < derived->accesses.size(); ++i) {
      const Access& access = derived->accesses[i];
      if (!may_read_file(graph, access)) continue;
      const OutlineAccess& at = outline->accesses[i];
      const Tensor& tensor = graph.tensor(graph.root(access.tensor));
      reads.push_back({.access = &at,
                       .rule = at.rule == kNone ? nullptr : &outline->rules[at.rule],
                       .tensor = number_of(tensor.name),
                       .entry = {.kind = access.extent == Extent::Experts ? ReadKind::Routed
                                         : access.extent == Extent::Rows  ? ReadKind::Row
                                                                          : ReadKind::Fixed,
                                 .tensor = tensor.name,
                                 .op = access.op,
                                 .file = tensor.file,
                                 .part_bytes = access.unit,
                                 .layer = tensor.layer,
                                 .component = tensor.component}});
    }
  }

  // Calls `each(read, ranges)` for the accesses of the step that read anything.
  template <class Each>
  void for_each_read(StepDecoder& decoder, Each each) {
    for (const WeightRead& read : reads) {
      if (read.entry.op.v >= decoder.ran()) break;
      if (read.rule != nullptr) {
        ranges_of(*read.access, *read.rule, decoder.parts_of(*read.rule), ranges);
      } else {
        ranges.assign(read.access->file.empty() ? 0 : 1, read.access->file);
      }
      if (!ranges.empty()) each(read);
    }
  }

  void learn(StepDecoder& decoder) {
    for_each_read(decoder, [&](const WeightRead& read) {
      PatternEntry& entry = pattern.entries.emplace_back(read.entry);
      entry.parts = static_cast<std::uint32_t>(ranges.size());
      if (entry.kind == ReadKind::Fixed) entry.file = ranges.front();
      tensors.push_back(read.tensor);
    });
    last.resize(tensors.size());
  }

  // Follows the reads along the pattern and predicts each one. If `count` is null, only remembers
  // the routed parts and rows for the next step.
  void follow(StepDecoder& decoder, Prediction* count) {
    std::size_t at = 0;
    for_each_read(decoder, [&](const WeightRead& read) {
      const bool expected = at < tensors.size() && tensors[at] == read.tensor;
      if (count != nullptr) {
        for (const FileRange& range : ranges) {
          const bool right = expected && predicts(at, range);
          ++count->reads;
          count->right += right;
          count->bytes += Bytes{range.length};
          if (right) count->right_bytes += Bytes{range.length};
        }
      }
      // On a misprediction, continue after the next entry that reads this tensor.
      std::size_t found = at;
      while (found < tensors.size() && tensors[found] != read.tensor) ++found;
      if (found == tensors.size()) return;
      if (pattern.entries[found].kind != ReadKind::Fixed) last[found].swap(ranges);
      at = found + 1;
    });
  }

  bool predicts(std::size_t at, const FileRange& range) const {
    const PatternEntry& entry = pattern.entries[at];
    if (entry.kind == ReadKind::Fixed) return entry.file == range;
    return std::ranges::find(last[at], range) != last[at].end();
  }

  DerivedGraphCache graphs;
  AccessPattern pattern;
  bool is_given = false;  // the entries are of another session
  std::uint64_t seen = 0;
  DerivedPtr reads_of;
  std::shared_ptr<const TemplateOutline> outline;  // of reads_of
  std::vector<WeightRead> reads;
  std::unordered_map<std::string, std::uint32_t> names;
  std::vector<FileRange> ranges;             // of one read
  std::vector<std::uint32_t> tensors;        // per entry
  std::vector<std::vector<FileRange>> last;  // per entry, of the previous step
};

PatternTally::PatternTally(const SessionReader& reader, std::uint64_t steps)
    : impl_(std::make_unique<Impl>(reader, steps)) {}
PatternTally::PatternTally(const SessionReader& reader, std::uint64_t steps,
                           std::vector<PatternEntry> entries)
    : PatternTally(reader, steps) {
  impl_->give(std::move(entries));
}
PatternTally::~PatternTally() = default;

std::expected<void, TraceError> PatternTally::add(const SessionReader::StepRow& row,
                                                  StepDecoder& decoder) {
  if (!is_complete_token(row.head)) return {};
  return impl_->add(row, decoder);
}
AccessPattern PatternTally::take() { return std::move(impl_->pattern); }

bool PatternTally::is_complete_token(const Step& head) {
  return head.phase == Phase::Generate && head.graph.v != 0 && !head.aborted;
}

const char* to_text(Cause cause) {
  static constexpr std::array kWords = {"token", "kv-window", "experts", "graph", "unfinished"};
  return name_of(kWords, cause);
}

std::expected<Determinism, TraceError> determinism(const SessionReader& reader,
                                                   const ContinueCheck& keep_going) {
  DeterminismTally tally(reader);
  const auto walked = walk_outlines(
      reader, kAllRows, keep_going,
      [&](const SessionReader::StepRow& row, StepDecoder& step) { return tally.add(row, step); });
  if (!walked) return std::unexpected(walked.error());
  return tally.take();
}

std::expected<std::uint64_t, TraceError> complete_tokens(const SessionReader& reader,
                                                         const ContinueCheck& keep_going) {
  std::uint64_t steps = 0;
  bool wanted = true;
  const auto listed =
      reader.for_each_step_row(StepId{0}, kNone, [&](const SessionReader::StepRow& row) {
        steps += PatternTally::is_complete_token(row.head);
        return wanted = keep_going();
      });
  if (!wanted) return std::unexpected(cancelled_error());
  if (!listed) return std::unexpected(listed.error());
  return steps;
}

std::expected<AccessPattern, TraceError> access_pattern(const SessionReader& reader,
                                                        const ContinueCheck& keep_going) {
  const auto steps = complete_tokens(reader, keep_going);
  if (!steps) return std::unexpected(steps.error());
  PatternTally tally(reader, *steps);
  const auto walked = walk_outlines(
      reader, kAllRows, keep_going,
      [&](const SessionReader::StepRow& row, StepDecoder& step) { return tally.add(row, step); });
  if (!walked) return std::unexpected(walked.error());
  return tally.take();
}

std::expected<RecordedPattern, TraceError> recorded_pattern(const SessionReader& reader,
                                                            const ContinueCheck& keep_going) {
  auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  auto same = determinism(reader, keep_going);
  if (!same) return std::unexpected(same.error());
  return access_pattern(reader, keep_going).transform([&](AccessPattern pattern) {
    return RecordedPattern{.session = *std::move(info),
                           .pattern = std::move(pattern),
                           .determinism = *std::move(same)};
  });
}

static consteval columns::Enumeration words_of(Cause) {
  return columns::words_to("", Cause::Unfinished);
}

static consteval columns::Enumeration words_of(ReadKind) {
  return columns::words_to("", ReadKind::Row);
}

static Fields<FirstDifference> fields_of(const FirstDifference*) {
  return Fields<FirstDifference>()
      .add("cause", "", &FirstDifference::cause)
      .add("step", "", &FirstDifference::step)
      .add("before", "the step that it was compared with", &FirstDifference::before)
      .add("op", "", &FirstDifference::op)
      .add("tensor_name", "", &FirstDifference::tensor);
}

static Fields<ModelFile> fields_of(const ModelFile*) {
  return Fields<ModelFile>()
      .add(pattern_names::kPath, "", &ModelFile::path)
      .add(pattern_names::kSize, "", &ModelFile::size, {.unit = "bytes"})
      .add(pattern_names::kHeaderHash, "", &ModelFile::header_hash);
}

static Fields<Prediction> fields_of(const Prediction*) {
  return Fields<Prediction>()
      .add("accuracy", "`right` divided by `reads`", &Prediction::accuracy)
      .add("steps_learned", "steps that the order was learned from", &Prediction::steps_learned)
      .add("steps_tried", "steps whose reads were predicted", &Prediction::steps_tried)
      .add("reads", "reads in the predicted steps", &Prediction::reads)
      .add("right", "reads that were predicted correctly", &Prediction::right)
      .add("bytes", "", &Prediction::bytes)
      .add("right_bytes", "", &Prediction::right_bytes);
}

static Fields<PatternEntry> fields_of(const PatternEntry*) {
  return Fields<PatternEntry>()
      .add("tensor_name", "", &PatternEntry::tensor)
      .add(pattern_names::kKind, "", &PatternEntry::kind)
      .add(pattern_names::kOp, "the op of the graph of a token that reads it", &PatternEntry::op)
      .add(pattern_names::kModelFile, "", [](const PatternEntry& entry) { return entry.file.file; })
      .add(pattern_names::kFileOffset, "",
           [](const PatternEntry& entry) { return entry.file.offset; }, {.unit = "bytes"})
      .add(pattern_names::kSizeBytes, "parts x part_bytes",
           [](const PatternEntry& entry) { return entry.part_bytes.v * entry.parts; },
           {.unit = "bytes"})
      .add(pattern_names::kParts, "", &PatternEntry::parts)
      .add(pattern_names::kPartBytes, "", &PatternEntry::part_bytes)
      .add(pattern_names::kFileBytes,
           "length of the data at file_offset; of routed and row entries the whole tensor",
           [](const PatternEntry& entry) { return entry.file.length; }, {.unit = "bytes"})
      .add("layer_id", "", &PatternEntry::layer)
      .add("component", "", &PatternEntry::component);
}

Fields<Determinism> fields_of(const Determinism*) {
  return Fields<Determinism>("Determinism")
      .add("pairs", "number of pairs of consecutive generated tokens", &Determinism::pairs)
      .add("identical", "number of pairs that do not differ", &Determinism::identical)
      .add("same_weights",
           "number of pairs that do not differ, or differ only by the causes token and "
           "kv-window",
           &Determinism::same_weights)
      .add("accesses",
           "number of accesses compared: those of the second token of each pair that touch "
           "bytes",
           &Determinism::accesses)
      .add("differing",
           "number of differing accesses by cause. token: another row of a weight, for example "
           "of the token embedding; kv-window: other cells of a cache, or a tensor whose size "
           "depends on the number of cells; experts: other routed experts; graph: other ops; "
           "unfinished: a step was cancelled",
           [](const Determinism& of) {
             std::map<Cause, std::uint64_t> differing;
             for (std::size_t i = 0; i < kCauses; ++i)
               differing.emplace(static_cast<Cause>(i), of.differing[i]);
             return differing;
           },
           {.names = fields::list_of(words_of(Cause{}))})
      .add("first_differences", "the first difference of each cause", &Determinism::firsts);
}

Fields<RecordedPattern> fields_of(const RecordedPattern*) {
  return Fields<RecordedPattern>("AccessPattern")
      .add(pattern_names::kVersionName, "of the format",
           [](const RecordedPattern&) { return pattern_names::kVersion; })
      .add("session", "", [](const RecordedPattern& of) { return of.session.id; })
      .add(pattern_names::kModelFiles, "",
           [](const RecordedPattern& of) { return of.session.model_files; })
      .add("prediction", "", [](const RecordedPattern& of) { return of.pattern.prediction; })
      .add("determinism", "", &RecordedPattern::determinism)
      .add(pattern_names::kTokenOrder, "empty if no generated token with accesses was recorded",
           [](const RecordedPattern& of) { return of.pattern.entries; });
}

}  // namespace tt
