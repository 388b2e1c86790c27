#include "analysis/weights/file_order.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/fields/fields.h"
#include "analysis/index/walk_outlines.h"

namespace tt {

namespace {

constexpr std::uint64_t kAlignment = 32;  // of tensors in a GGUF file, unless it says otherwise

// A weight in the file, used by generated tokens.
struct UsedTensor {
  std::string name;
  FileRange file;
  std::vector<std::uint64_t> reads;  // per expert
};

// What a step of a template reads of the files.
struct FileRead {
  const OutlineAccess* access;
  std::uint32_t tensor;  // in Uses::tensors
};

// The steps of a template with the same number of executed ops.
struct StepPlan {
  std::shared_ptr<const TemplateOutline> outline;  // owns the accesses
  std::vector<FileRead> reads;                     // in op order
};

class Uses {
 public:
  // Finds the tensors in the order of their first use.
  const StepPlan& plan_of(const StepDecoder& decoder) {
    const std::pair key(decoder.outline().get(), decoder.ran());
    const auto known = plans_.find(key);
    if (known != plans_.end()) return known->second;
    StepPlan plan{.outline = decoder.outline(), .reads = {}};
    const TemplateOutline& outline = *plan.outline;
    for (const OutlineOp& op : std::span(outline.ops).first(decoder.ran())) {
      for (const OutlineAccess& access :
           std::span(outline.accesses).subspan(op.first_access, op.accesses)) {
        if (access.write || access.file.empty()) continue;
        plan.reads.push_back(
            {.access = &access, .tensor = number_of(decoder.names().tensors()[access.tensor])});
      }
    }
    return plans_.emplace(key, std::move(plan)).first->second;
  }

  void count_experts(const StepPlan& plan, StepDecoder& decoder) {
    constexpr std::uint64_t kMaxExperts = 1U << 16;  // the list may be untrusted
    for (const FileRead& read : plan.reads) {
      if (read.access->rule == kNone) continue;
      const OutlineRule& rule = plan.outline->rules[read.access->rule];
      if (!rule.rule.separate || !rule.experts()) continue;
      std::vector<std::uint64_t>& reads = tensors_[read.tensor].reads;
      for_each_part(decoder.parts_of(rule), [&](std::uint64_t expert) {
        if (expert >= kMaxExperts) return;
        if (expert >= reads.size()) reads.resize(static_cast<std::size_t>(expert) + 1);
        ++reads[static_cast<std::size_t>(expert)];
      });
    }
  }

  const std::vector<UsedTensor>& tensors() const { return tensors_; }
  // The steps that were walked.
  PageRange steps{};

 private:
  std::uint32_t number_of(const SessionTensor& tensor) {
    const auto [at, fresh] =
        numbers_.try_emplace(std::tuple(tensor.file.file, tensor.file.offset, tensor.file.length),
                             static_cast<std::uint32_t>(tensors_.size()));
    if (fresh) tensors_.push_back({.name = tensor.name, .file = tensor.file, .reads = {}});
    return at->second;
  }

  std::map<std::pair<const TemplateOutline*, std::uint32_t>, StepPlan> plans_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::uint32_t> numbers_;
  std::vector<UsedTensor> tensors_;
};

std::expected<Uses, TraceError> uses_of(const SessionReader& reader,
                                        const ContinueCheck& keep_going) {
  Uses uses;
  const auto walked = walk_outlines(reader, kAllRows, keep_going,
                                    [&](const SessionReader::StepRow& row,
                                        StepDecoder& decoder) -> std::expected<void, TraceError> {
                                      uses.steps.limit = std::uint64_t{row.head.id.v} + 1;
                                      if (row.head.phase == Phase::Generate)
                                        uses.count_experts(uses.plan_of(decoder), decoder);
                                      return {};
                                    });
  if (!walked) return std::unexpected(walked.error());
  return uses;
}

// The tensors of each file one after the other, from where the first one of them begins.
std::vector<std::uint64_t> offsets_by_use(std::span<const UsedTensor> tensors) {
  std::map<std::uint32_t, std::uint64_t> next;  // per file
  for (const UsedTensor& tensor : tensors) {
    const auto [at, fresh] = next.try_emplace(tensor.file.file, tensor.file.offset);
    if (!fresh) at->second = std::min(at->second, tensor.file.offset);
  }
  std::vector<std::uint64_t> offsets;
  for (const UsedTensor& tensor : tensors) {
    std::uint64_t& end = next[tensor.file.file];
    offsets.push_back(end);
    end += (tensor.file.length + kAlignment - 1) / kAlignment * kAlignment;
  }
  return offsets;
}

// Per expert, its place among those of the tensor.
std::vector<std::uint64_t> ranks_by_use(std::span<const std::uint64_t> reads) {
  std::vector<std::uint64_t> order(reads.size()), ranks(reads.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::uint64_t expert) { return reads[expert]; });
  for (std::size_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = rank;
  return ranks;
}

// Follows the reads through the files in one layout.
class LayoutWalk {
 public:
  // `offsets`: of the tensors, `ranks`: per tensor those of its experts; empty: as in the files.
  LayoutWalk(FileLayout layout, std::uint64_t gap, std::span<const UsedTensor> tensors,
             std::vector<std::uint64_t> offsets, std::vector<std::vector<std::uint64_t>> ranks)
      : tensors_(tensors), offsets_(std::move(offsets)), ranks_(std::move(ranks)), head_(gap) {
    sums_.layout = layout;
  }

  // Returns false if the step reads no mapped file.
  bool add_step(const StepPlan& plan, StepDecoder& decoder) {
    parts_.clear();
    for (const FileRead& read : plan.reads) {
      const OutlineAccess& access = *read.access;
      // Copies of weights have a range in the file, too, but are not read from it.
      if (access.source != Source::Disk) continue;
      if (access.rule == kNone) {
        take(placed(read, access.file));
      } else if (const OutlineRule& rule = plan.outline->rules[access.rule]; rule.rule.separate) {
        take_parts(read, decoder.parts_of(rule), rule.experts());
      }
    }
    std::ranges::sort(parts_, {}, place_of);
    merged_.clear();
    std::ranges::merge(fixed_of(plan), parts_, std::back_inserter(merged_), {}, place_of, place_of);
    sum_bytes();
    return !merged_.empty();
  }

  const LayoutReads& sums() const { return sums_; }

 private:
  static std::pair<std::uint32_t, std::uint64_t> place_of(const FileRange& range) {
    return {range.file, range.offset};
  }

  // The ranges that every step of a template reads, sorted.
  const std::vector<FileRange>& fixed_of(const StepPlan& plan) {
    const auto [at, fresh] = fixed_.try_emplace(&plan);
    std::vector<FileRange>& ranges = at->second;
    if (!fresh) return ranges;
    for (const FileRead& read : plan.reads)
      if (read.access->source == Source::Disk && read.access->rule == kNone)
        ranges.push_back(placed(read, read.access->file));
    std::ranges::sort(ranges, {}, place_of);
    return ranges;
  }

  FileRange placed(const FileRead& read, FileRange range) const {
    if (!offsets_.empty())
      range.offset += offsets_[read.tensor] - tensors_[read.tensor].file.offset;
    return range;
  }

  // The parts of one access, ascending in the layout.
  void take_parts(const FileRead& read, const StepDecoder::Parts& parts, bool experts) {
    const std::size_t begin = parts_.size();
    for_each_part(parts, [&](std::uint64_t part) {
      FileRange range = read.access->part_in_file(part);
      if (range.empty()) return;
      if (experts && !ranks_.empty() && part < ranks_[read.tensor].size())
        range.offset += (ranks_[read.tensor][part] - part) * read.access->stride;
      parts_.push_back(placed(read, range));
    });
    const auto added = std::span(parts_).subspan(begin);
    std::ranges::sort(added, {}, place_of);
    for (const FileRange& range : added) take(range);
  }

  void take(const FileRange& range) {
    const auto distance = head_.distance_to(range.file, range.offset);
    const bool is_first = sums_.order.reads == 0;
    const ReadOrder read = head_.read(range);
    sums_.order.add(read);
    if (is_first || read.sequential != 0) return;
    ++sums_.jumps;
    if (!distance) return;
    sums_.jump_bytes += Bytes{*distance};
    sums_.longest_jump = std::max(sums_.longest_jump, Bytes{*distance});
  }

  // The bytes that the step needs, and those of its pages and blocks.
  void sum_bytes() {
    // Where the bytes end that are counted already, in `file`.
    std::uint32_t file = 0;
    bool is_first = true;
    std::uint64_t end = 0, page_end = 0, block_end = 0;
    const auto add = [](Bytes& sum, std::uint64_t& counted, std::uint64_t from, std::uint64_t to) {
      from = std::max(from, counted);
      if (from >= to) return;
      sum += Bytes{to - from};
      counted = to;
    };
    Bytes needed{}, pages{}, blocks{};
    for (const FileRange& range : merged_) {
      if (is_first || range.file != file) end = page_end = block_end = 0;
      is_first = false;
      file = range.file;
      const std::uint64_t from = range.offset, to = from + range.length;
      add(needed, end, from, to);
      const auto whole = [&](std::uint64_t unit, Bytes& sum, std::uint64_t& counted) {
        add(sum, counted, from / unit * unit, (to + unit - 1) / unit * unit);
      };
      whole(kPageBytes, pages, page_end);
      whole(kDefaultGap, blocks, block_end);
    }
    sums_.needed += needed;
    sums_.page_unneeded += Bytes{pages.v - needed.v};
    sums_.readahead_unneeded += Bytes{blocks.v - needed.v};
  }

  const std::span<const UsedTensor> tensors_;
  const std::vector<std::uint64_t> offsets_;
  const std::vector<std::vector<std::uint64_t>> ranks_;
  ReadHead head_;
  LayoutReads sums_;
  std::map<const StepPlan*, std::vector<FileRange>> fixed_;
  std::vector<FileRange> parts_, merged_;  // of the step
};

}  // namespace

std::expected<FileOrder, TraceError> file_order(const SessionReader& reader, std::uint64_t gap,
                                                PageRange page, const ContinueCheck& keep_going) {
  auto found = uses_of(reader, keep_going);
  if (!found) return std::unexpected(found.error());
  const std::vector<UsedTensor> tensors = found->tensors();
  const std::vector<std::uint64_t> offsets = offsets_by_use(tensors);
  std::vector<std::vector<std::uint64_t>> ranks;
  for (const UsedTensor& tensor : tensors) ranks.push_back(ranks_by_use(tensor.reads));

  std::vector<LayoutWalk> walks;
  walks.emplace_back(FileLayout::Stored, gap, tensors, std::vector<std::uint64_t>(),
                     std::vector<std::vector<std::uint64_t>>());
  walks.emplace_back(FileLayout::TensorsByUse, gap, tensors, offsets,
                     std::vector<std::vector<std::uint64_t>>());
  const auto has_experts = [](const UsedTensor& tensor) { return !tensor.reads.empty(); };
  if (std::ranges::any_of(tensors, has_experts))
    walks.emplace_back(FileLayout::ExpertsByUse, gap, tensors, offsets, std::move(ranks));

  FileOrder out{.gap = gap, .steps = 0, .layouts = {}, .tensors = {}};
  Uses again;  // finds the same tensors, in the same order
  const auto walked =
      // Not those that were recorded in the meantime.
      walk_outlines(reader, found->steps, keep_going,
                    [&](const SessionReader::StepRow& row,
                        StepDecoder& decoder) -> std::expected<void, TraceError> {
                      if (row.head.phase != Phase::Generate) return {};
                      const StepPlan& plan = again.plan_of(decoder);
                      bool reads = false;
                      for (LayoutWalk& walk : walks) reads = walk.add_step(plan, decoder);
                      out.steps += reads;
                      return {};
                    });
  if (!walked) return std::unexpected(walked.error());
  for (const LayoutWalk& walk : walks) out.layouts.push_back(walk.sums());
  out.tensors.total = tensors.size();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (page.contains(i))
      out.tensors.rows.push_back(
          {.tensor = tensors[i].name, .file = tensors[i].file, .new_offset = offsets[i]});
  return out;
}

std::expected<std::vector<std::string>, TraceError> weights_by_use(
    const SessionReader& reader, const ContinueCheck& keep_going) {
  return uses_of(reader, keep_going).transform([](const Uses& uses) {
    std::vector<std::string> names;
    for (const UsedTensor& tensor : uses.tensors()) names.push_back(tensor.name);
    return names;
  });
}

static Fields<LayoutReads> fields_of(const LayoutReads*) {
  return Fields<LayoutReads>("LayoutReads")
      .add("layout",
           "stored: as in the files; tensors-by-use: the tensors in the order of their first "
           "use by a generated token, which tt gguf reorder writes; experts-by-use: also the "
           "experts of each tensor, those first that were used most, which no file can have "
           "with the same bytes",
           &LayoutReads::layout)
      .include(&LayoutReads::order)
      .add("jumps", "reads that are not sequential, without the first one", &LayoutReads::jumps)
      .add("jump_bytes",
           "sum of the distances of the jumps within a file, from the end of a read to the "
           "begin of the next one",
           &LayoutReads::jump_bytes)
      .add("longest_jump", "the longest of these distances", &LayoutReads::longest_jump)
      .add("needed", "bytes that the steps read, each once per step", &LayoutReads::needed)
      .add("page_unneeded",
           "other bytes in the pages of 4 KiB that contain needed ones, each once per step",
           &LayoutReads::page_unneeded)
      .add("readahead_unneeded",
           "the same for blocks of 128 KiB, the default readahead of the Linux kernel",
           &LayoutReads::readahead_unneeded);
}

static Fields<PlacedTensor> fields_of(const PlacedTensor*) {
  return Fields<PlacedTensor>()
      .add("tensor", "", &PlacedTensor::tensor)
      .include(&PlacedTensor::file)
      .add("new_offset", "in the file, with the layout tensors-by-use", &PlacedTensor::new_offset,
           {.unit = "bytes"});
}

Fields<FileOrder> fields_of(const FileOrder*) {
  return Fields<FileOrder>("FileOrder")
      .add("gap",
           "maximum distance from the end of a read to the start of the next, sequential one",
           &FileOrder::gap, {.unit = "bytes"})
      .add("steps", "generated steps that read a mapped model file; all sums are of these",
           &FileOrder::steps)
      .add("layouts", "", &FileOrder::layouts)
      .add("total", kTotalRows, [](const FileOrder& of) { return of.tensors.total; })
      .add("tensors", "the weights that generated tokens use, in order of first use",
           [](const FileOrder& of) { return of.tensors.rows; });
}

}  // namespace tt
