#include "analysis/weights/weight_reads.h"

#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/common/cancel.h"
#include "analysis/common/derived_graphs.h"
#include "analysis/common/op_info.h"
#include "analysis/index/walk_outlines.h"
#include "tracer/format/access/access.h"

namespace tt {

struct ReadSequenceBuilder::Impl {
  // Reads of weights that follow each other in a step: a run of items that is the same in all steps
  // of a template, or the reads of one access in an op that selects parts by a list.
  struct ReadPiece {
    const OutlineAccess* access = nullptr;  // null: a run
    OpId op{};                              // of the access
    // Of the access; its range is that of the view, and with Grain::Tensor that of the tensor.
    ReuseItem item{};
    bool whole = false;                  // of the access: all its parts are this item
    std::vector<std::uint32_t> items{};  // the run; of an access per part, kNone: not known yet
    std::vector<std::pair<OpId, ReuseItem>> unknown{};  // the run, before the first step
  };

  // The reads of all steps with the same template and the same number of executed ops.
  struct TemplateReads {
    std::shared_ptr<const TemplateOutline> outline;
    std::vector<ReadPiece> pieces;
    std::uint64_t steps = 0;
  };

  static TemplateReads reads_of_template(const DerivedGraph& derived, const StepDecoder& decoder,
                                         Grain grain) {
    const GraphTemplate& graph = *derived.graph;
    TemplateReads out{.outline = decoder.outline(), .pieces = {}};
    const auto all = std::span(derived.accesses);
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      const OpId op = all[begin].op;
      if (op.v >= decoder.ran()) break;
      bool lists = false;  // whether the op selects parts of a weight by a list
      for (; end < all.size() && all[end].op == op; ++end)
        lists = lists || (all[end].slot != kNoSlot && may_read_file(graph, all[end]));
      for (std::size_t i = begin; i < end; ++i) {
        const Access& access = all[i];
        if (!may_read_file(graph, access)) continue;
        if (access.slot == kNoSlot && access.range.length == 0) continue;
        const Tensor& tensor = graph.tensor(graph.root(access.tensor));
        ReuseItem item{.tensor = tensor.name,
                       .file = grain == Grain::Part ? access.range : tensor.file,
                       .layer = tensor.layer,
                       .source = tensor.source};
        if (!lists) {
          if (out.pieces.empty() || out.pieces.back().access != nullptr) out.pieces.emplace_back();
          out.pieces.back().unknown.emplace_back(op, std::move(item));
          continue;
        }
        out.pieces.push_back({.access = &out.outline->accesses[i],
                              .op = op,
                              .item = std::move(item),
                              .whole = grain == Grain::Tensor});
      }
    }
    return out;
  }

  using Range = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;

  Impl(const SessionReader& reader, Grain of) : grain(of), graphs(reader) {}

  std::expected<TemplateReads*, TraceError> plan_of(TemplateId graph, const StepDecoder& decoder) {
    const std::pair key(decoder.outline().get(), decoder.ran());
    if (const auto known = plans.find(key); known != plans.end()) return &known->second;
    const auto derived = graphs.of(graph);
    if (!derived) return std::unexpected(derived.error());
    return &plans.emplace(key, reads_of_template(**derived, decoder, grain)).first->second;
  }

  void add(TemplateReads& plan, StepDecoder& decoder) {
    ++plan.steps;
    OpId op{kNone};
    for (ReadPiece& piece : plan.pieces) {
      if (piece.access == nullptr) {
        if (!piece.unknown.empty()) learn(piece);
        sequence.reads.insert(sequence.reads.end(), piece.items.begin(), piece.items.end());
        continue;
      }
      if (piece.op != op) ++ops;
      op = piece.op;
      add_access(plan, piece, decoder);
    }
  }

  // An item that an op reads twice counts once.
  void learn(ReadPiece& run) {
    OpId op{kNone};
    for (const auto& [of, item] : run.unknown) {
      if (of != op) ++ops;
      op = of;
      const std::uint32_t number = item_of(item);
      if (std::exchange(read_by[number], ops) != ops) run.items.push_back(number);
    }
    run.unknown.clear();
  }

  void add_access(const TemplateReads& plan, ReadPiece& piece, StepDecoder& decoder) {
    const OutlineAccess& access = *piece.access;
    if (access.rule == kNone) {
      add_item(item_of(piece.item));
      return;
    }
    const OutlineRule& rule = plan.outline->rules[access.rule];
    const auto parts = decoder.parts_of(rule);
    if (!rule.rule.separate) {
      if (parts.count > 0 && access.unit.v > 0 && !access.file.empty())
        add_item(item_of(piece.item));
      return;
    }
    for_each_part(parts, [&](std::uint64_t part) { add_part(piece, part, rule.experts()); });
  }

  void add_part(ReadPiece& piece, std::uint64_t part, bool expert) {
    constexpr std::uint64_t kMaxKnown = std::uint64_t{1} << 20;  // the list may be untrusted
    if (part < piece.items.size() && piece.items[part] != kNone) return add_item(piece.items[part]);
    const FileRange range = piece.access->part_in_file(part);
    if (range.length == 0) return;
    ReuseItem item = piece.item;
    if (!piece.whole) {
      item.file = range;
      if (expert) item.expert = static_cast<std::int32_t>(part);
    }
    const std::uint32_t number = item_of(item);
    if (part < kMaxKnown) {
      if (part >= piece.items.size()) piece.items.resize(static_cast<std::size_t>(part) + 1, kNone);
      piece.items[part] = number;
    }
    add_item(number);
  }

  void add_item(std::uint32_t item) {
    if (std::exchange(read_by[item], ops) == ops) return;
    ++sequence.items[item].reads;
    sequence.reads.push_back(item);
  }

  std::uint32_t item_of(const ReuseItem& item) {
    const FileRange& range = item.file;
    const auto [at, fresh] = items.try_emplace(Range(range.file, range.offset, range.length),
                                               static_cast<std::uint32_t>(sequence.items.size()));
    if (fresh) {
      sequence.items.push_back(item);
      read_by.push_back(0);
    }
    return at->second;
  }

  const Grain grain;
  DerivedGraphCache graphs;
  ReadSequence sequence;
  std::map<std::pair<const TemplateOutline*, std::uint32_t>, TemplateReads> plans;
  std::map<Range, std::uint32_t> items;
  std::uint64_t ops = 0;               // number of ops with lists, and of learned ops, so far
  std::vector<std::uint64_t> read_by;  // per item: number of the last of these ops that read it
};

ReadSequenceBuilder::ReadSequenceBuilder(const SessionReader& reader, Grain grain)
    : impl_(std::make_unique<Impl>(reader, grain)) {}
ReadSequenceBuilder::~ReadSequenceBuilder() = default;

std::expected<void, TraceError> ReadSequenceBuilder::add(const SessionReader::StepRow& row,
                                                         StepDecoder& decoder) {
  const auto plan = impl_->plan_of(row.head.graph, decoder);
  if (!plan) return std::unexpected(plan.error());
  impl_->add(**plan, decoder);
  return {};
}

ReadSequence ReadSequenceBuilder::take() {
  for (const auto& [key, plan] : impl_->plans) {
    for (const Impl::ReadPiece& piece : plan.pieces) {
      if (piece.access != nullptr) continue;
      for (const std::uint32_t item : piece.items) impl_->sequence.items[item].reads += plan.steps;
    }
  }
  impl_->plans.clear();
  return std::move(impl_->sequence);
}

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
  ReadSequenceBuilder builder(reader, grain);
  const auto walked = walk_outlines(reader, steps, keep_going,
                                    [&](const SessionReader::StepRow& row, StepDecoder& decoder) {
                                      return builder.add(row, decoder);
                                    });
  if (!walked) return std::unexpected(walked.error());
  return builder.take();
}

}  // namespace tt
