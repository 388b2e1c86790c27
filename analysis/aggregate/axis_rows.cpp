#include "analysis/aggregate/axis_rows.h"

#include <algorithm>
#include <filesystem>
#include <format>
#include <limits>
#include <span>

#include "analysis/common/tensor_filter.h"

namespace tt {

namespace {

constexpr std::int64_t kNoKey = std::numeric_limits<std::int64_t>::max();  // not on the axis
constexpr std::int64_t kUnknownKernelKey = kNoKey - 1;                     // after all kernels
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 60;  // maximum size of an axis
constexpr std::size_t kMaxRowsOfLayers = 1 << 16;

Range<std::int64_t> one(std::int64_t row) { return {row, row + 1}; }

// Rows of the heads or experts of layers. A layer has either all of its own or none.
void add_numbered(std::set<std::int64_t>& keys, const std::map<LayerId, std::uint32_t>& counts) {
  for (const auto& [layer, count] : counts) {
    const std::int64_t here = std::min<std::int64_t>(count, AxisRows::kMaxPerLayer);
    if (keys.size() + static_cast<std::size_t>(here) > kMaxRowsOfLayers) return;
    for (std::int64_t i = 0; i < here; ++i) keys.insert(layer.v * AxisRows::kMaxPerLayer + i);
  }
}

bool has_experts(const TemplateOutline& outline, const OutlineAccess& access) {
  return access.rule != kNone && outline.rules[access.rule].experts();
}

}  // namespace

TraceMatcher::TraceMatcher(const SessionIndex& index, const TraceFilter& filter) : filter_(filter) {
  const SessionNames& names = index.names();
  for (const std::string& kind : names.kinds()) kinds_.push_back(matches_pattern(kind, filter.op));
  for (const SessionOp& op : names.ops()) ops_.push_back(matches_pattern(op.output, filter.op));
  for (const SessionTensor& t : names.tensors())
    tensors_.push_back(matches_pattern(t.name, filter.tensor) &&
                       (!filter.kind || t.kind == *filter.kind));
}

bool TraceMatcher::op(const OutlineOp& op) const {
  return (filter_.layers.empty() ||
          std::ranges::find(filter_.layers, op.layer) != filter_.layers.end()) &&
         (!filter_.component || op.component == *filter_.component) &&
         (!filter_.kernel || op.kernel == *filter_.kernel) && (kinds_[op.kind] || ops_[op.op]);
}

bool TraceMatcher::access(const OutlineAccess& access) const {
  return (!filter_.source || access.source == *filter_.source) && tensors_[access.tensor];
}

bool TraceMatcher::time(const TemplateOutline& outline, const OutlineOp& of) const {
  if (!op(of)) return false;
  if (!filter_.about_accesses()) return true;
  return of.main != kNone && access(outline.accesses[of.main]);
}

AxisRows::AxisRows(const SessionIndex& index, Axis axis, const TraceMatcher& matcher,
                   std::optional<Phase> phase)
    : index_(index), axis_(axis) {
  if (axis == Axis::File) {
    add_files();
  } else if (axis == Axis::Buffer) {
    add_buffers();
  } else {
    add_rows(matcher, phase);
  }
}

void AxisRows::add_rows(const TraceMatcher& matcher, std::optional<Phase> phase) {
  std::set<std::int64_t> keys;
  std::map<LayerId, std::uint32_t> numbered;  // heads or experts
  std::set<const TemplateOutline*> seen;      // series share outlines
  for (const Series& series : index_.series()) {
    if (phase && series.phase != *phase) continue;
    const TemplateOutline& outline = *series.outline;
    if (axis_ != Axis::Phase && !seen.insert(&outline).second) continue;
    for (const OutlineOp& op : outline.ops) {
      if (!matcher.op(op)) continue;
      if (matcher.time(outline, op)) keys.insert(key_of(series, op, nullptr));
      for (const OutlineAccess& access :
           std::span(outline.accesses).subspan(op.first_access, op.accesses)) {
        if (!matcher.access(access)) continue;
        if (axis_ != Axis::Head && axis_ != Axis::Expert) {
          keys.insert(key_of(series, op, &access));
        } else if (axis_ == Axis::Head || has_experts(outline, access)) {
          std::uint32_t& most = numbered[layer_of(access)];
          const auto count =
              axis_ == Axis::Head
                  ? access.heads
                  : static_cast<std::uint32_t>(outline.rules[access.rule].rule.limit);
          most = std::max(most, count);
        }
      }
    }
  }
  keys.erase(kNoKey);
  add_numbered(keys, numbered);
  for (const std::int64_t key : keys) {
    row_of_key_[key] = size_++;
    keys_.push_back(key);
    names_.push_back(name_of(key));
  }
}

LayerId AxisRows::layer_of(const OutlineAccess& access) const {
  return index_.names().tensors()[access.tensor].layer;
}

std::int64_t AxisRows::key_in_layer(const OutlineAccess& access, std::int64_t number) const {
  return layer_of(access).v * kMaxPerLayer + number;
}

std::int64_t AxisRows::key_of(const Series& series, const OutlineOp& op,
                              const OutlineAccess* access) const {
  switch (axis_) {
    case Axis::Layer:
      return op.layer == kNoLayer ? kNoLayerKey : op.layer.v;
    case Axis::Component:
      return static_cast<std::int64_t>(op.component);
    case Axis::OpKind:
      return op.kind;
    case Axis::Op:
      return op.op;
    case Axis::Kernel:
      return op.kernel ? static_cast<std::int64_t>(*op.kernel) : kUnknownKernelKey;
    case Axis::Phase:
      return static_cast<std::int64_t>(series.phase);
    case Axis::Tensor:
      return access == nullptr ? kNoKey : access->tensor;
    case Axis::Source:
      return access == nullptr ? kNoKey : static_cast<std::int64_t>(access->source);
    case Axis::Type:
      return access == nullptr ? kNoKey : index_.names().tensors()[access->tensor].type_number;
    case Axis::All:
      return 0;
    default:
      return kNoKey;
  }
}

std::string AxisRows::name_of(std::int64_t key) const {
  const auto at = static_cast<std::size_t>(key);
  switch (axis_) {
    case Axis::Layer:
      return key == kNoLayerKey ? "none" : std::to_string(key);
    case Axis::Component:
      return to_text(static_cast<Component>(key));
    case Axis::OpKind:
      return index_.names().kinds()[at];
    case Axis::Op:
      return index_.names().ops()[at].output;
    case Axis::Kernel:
      return key == kUnknownKernelKey ? "unknown" : to_text(static_cast<Kernel>(key));
    case Axis::Phase:
      return to_text(static_cast<Phase>(key));
    case Axis::Tensor:
      return index_.names().tensors()[at].name;
    case Axis::Source:
      return to_text(static_cast<Source>(key));
    case Axis::Type:
      return index_.names().types()[at];
    case Axis::Head:
    case Axis::Expert: {
      const char* what = axis_ == Axis::Head ? "head" : "expert";
      // kNoLayer is negative: rounded down.
      const std::int64_t number = key & (kMaxPerLayer - 1), layer = (key - number) / kMaxPerLayer;
      return layer == kNoLayer.v ? std::format("{} {}", what, number)
                                 : std::format("blk.{} {} {}", layer, what, number);
    }
    case Axis::All:
      return "all";
    default:
      return std::to_string(key);
  }
}

void AxisRows::add_files() {
  std::vector<std::uint64_t> sizes;
  for (const ModelFile& file : index_.info().model_files) {
    sizes.push_back(file.size);
    sections_.push_back({.name = std::filesystem::path(file.path).filename().string()});
  }
  // Tensors of files that the session does not list.
  for (const SessionTensor& tensor : index_.names().tensors()) {
    const FileRange& file = tensor.file;
    if (file.empty() || file.file > 4096) continue;
    while (sizes.size() <= file.file) {
      sections_.push_back({.name = std::to_string(sizes.size())});
      sizes.push_back(0);
    }
    if (file.offset + file.length > file.offset)
      sizes[file.file] = std::max(sizes[file.file], file.offset + file.length);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto left = static_cast<std::uint64_t>(kMaxBytes - size_);
    sections_[i].range.from = size_;
    sections_[i].range.to = size_ += static_cast<std::int64_t>(std::min(sizes[i], left));
  }
}

void AxisRows::add_buffers() {
  for (const auto& [place, end] : index_.buffers()) {
    const std::uint64_t bytes =
        std::min(end - place.second, static_cast<std::uint64_t>(kMaxBytes - size_));
    sections_.push_back({.name = place.first,
                         .range = {size_, size_ + static_cast<std::int64_t>(bytes)},
                         .origin = place.second});
    size_ += static_cast<std::int64_t>(bytes);
  }
}

Range<std::int64_t> AxisRows::in_file(const FileRange& range) const {
  if (range.empty() || range.file >= sections_.size()) return {};
  const Range<std::int64_t>& file = sections_[range.file].range;
  const auto size = static_cast<std::uint64_t>(file.to - file.from);
  if (range.offset >= size || range.length > size - range.offset) return {};
  const std::int64_t from = file.from + static_cast<std::int64_t>(range.offset);
  return {from, from + static_cast<std::int64_t>(range.length)};
}

Range<std::int64_t> AxisRows::in_buffer(const Series& series, const OutlineAccess& access,
                                        std::uint32_t part) const {
  if (access.source == Source::Disk) return {};
  const auto addresses = index_.addresses(series.allocation);
  if (access.view.v >= addresses.size() || addresses[access.view.v] == 0) return {};
  const std::uint64_t begin = addresses[access.view.v] + (part == kNone ? 0 : part * access.stride);
  const std::uint64_t length = part == kNone ? access.span : access.unit.v;
  return in_sections(begin, length);
}

Range<std::int64_t> AxisRows::in_sections(std::uint64_t begin, std::uint64_t length) const {
  const auto section = std::ranges::find_if(sections_, [&](const AxisSection& s) {
    const auto size = static_cast<std::uint64_t>(s.range.to - s.range.from);
    return begin >= s.origin && begin - s.origin < size && length <= size - (begin - s.origin);
  });
  if (section == sections_.end() || length == 0) return {};
  const std::int64_t from =
      section->range.from + static_cast<std::int64_t>(begin - section->origin);
  return {from, from + static_cast<std::int64_t>(length)};
}

bool AxisRows::has_row_per_part(const TemplateOutline& outline, const OutlineAccess& access) const {
  if (access.rule == kNone || !outline.rules[access.rule].rule.separate) return false;
  return is_byte_axis(axis_) || (axis_ == Axis::Expert && has_experts(outline, access));
}

Range<std::int64_t> AxisRows::rows_of(const Series& series, const OutlineOp& op,
                                      const OutlineAccess* access, std::uint32_t part) const {
  if (is_byte_axis(axis_)) {
    if (access == nullptr) return {};
    if (axis_ == Axis::Buffer) return in_buffer(series, *access, part);
    return in_file(part == kNone ? access->file : access->part_in_file(part));
  }
  if (axis_ == Axis::Head)
    return access == nullptr ? Range<std::int64_t>{} : rows_of_heads(*access);
  std::int64_t key = key_of(series, op, access);
  if (axis_ == Axis::Expert) {
    const bool is_expert =
        part != kNone && access != nullptr && has_experts(*series.outline, *access);
    key = is_expert ? key_in_layer(*access, part) : kNoKey;
  }
  return row_of(key);
}

Range<std::int64_t> AxisRows::row_of(std::int64_t key) const {
  const auto row = row_of_key_.find(key);
  return row == row_of_key_.end() ? Range<std::int64_t>{} : one(row->second);
}

// The heads of a layer are adjacent rows.
Range<std::int64_t> AxisRows::rows_of_heads(const OutlineAccess& access) const {
  if (access.heads == 0) return {};
  const auto first = row_of_key_.find(key_in_layer(access, 0));
  if (first == row_of_key_.end()) return {};
  return {first->second, first->second + access.heads};
}

Range<std::int64_t> AxisRows::rows_of(const Series* series, const IndexedFault& fault) const {
  const auto& [op, access, part] = fault.place;
  if (axis_ == Axis::All) return row_of(0);
  if (series == nullptr) return {};
  const OutlineAccess* touched = access == kNone ? nullptr : &series->outline->accesses[access];
  if (axis_ == Axis::File) {
    if (touched == nullptr) return {};
    return in_file(
        tt::in_file(*touched, index_.addresses(series->allocation), fault.fault.address));
  }
  if (axis_ == Axis::Buffer) {
    const bool mapped = touched != nullptr && touched->source == Source::Disk;
    return fault.has_details && !mapped ? in_sections(fault.fault.address, 1)
                                        : Range<std::int64_t>{};
  }
  const bool of_access = axis_ == Axis::Tensor || axis_ == Axis::Source || axis_ == Axis::Type ||
                         axis_ == Axis::Expert || axis_ == Axis::Head;
  if (axis_ == Axis::Phase) return row_of(static_cast<std::int64_t>(series->phase));
  if (of_access ? touched == nullptr : op == kNone) return {};
  // Attributes of an access do not depend on the op.
  return rows_of(*series, series->outline->ops[op == kNone ? 0 : op], touched, part);
}

}  // namespace tt
