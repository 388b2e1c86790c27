// The rows of the axes other than time, step and token, and the mapping of an op, an
// access or a part of an access to these rows.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/aggregate/axis_scale.h"
#include "analysis/aggregate/trace_axis.h"
#include "analysis/index/session_index.h"

namespace tt {

// A named section of a byte axis: a file, or an address range of a buffer.
struct AxisSection {
  std::string name;
  Range<std::int64_t> range{};
  std::uint64_t origin = 0;  // file offset or address of the first byte
  friend bool operator==(const AxisSection&, const AxisSection&) = default;
};

// Evaluates the op and access conditions of a TraceFilter.
class TraceMatcher {
 public:
  TraceMatcher(const SessionIndex& index, const TraceFilter& filter);
  bool op(const OutlineOp& op) const;
  bool access(const OutlineAccess& access) const;
  bool about_ops() const { return filter_.about_ops(); }
  bool about_accesses() const { return filter_.about_accesses(); }
  // Whether the time of the op passes.
  bool time(const TemplateOutline& outline, const OutlineOp& op) const;

 private:
  const TraceFilter& filter_;
  std::vector<bool> kinds_, ops_, tensors_;  // by number: whether the name passes
};

class AxisRows {
 public:
  // Heads or experts of a layer: rows of these axes have the key layer * kMaxPerLayer + number.
  static constexpr std::int64_t kMaxPerLayer = 1 << 16;
  // The key of the row of ops outside of layers; after all layers.
  static constexpr std::int64_t kNoLayerKey = std::numeric_limits<std::int64_t>::max() - 1;

  // All rows that contain an op or access passing `picks` and `phase`, in natural order;
  // for a byte axis, all bytes regardless of the filter.
  AxisRows(const SessionIndex& index, Axis axis, const TraceMatcher& matcher,
           std::optional<Phase> phase);

  Axis axis() const { return axis_; }
  std::int64_t size() const { return size_; }                       // rows, or bytes
  const std::vector<std::string>& names() const { return names_; }  // per row; empty: byte axis
  // The key of each row: a number of SessionNames, an enum value, a layer, or a head or expert of
  // a layer. Empty: byte axis.
  const std::vector<std::int64_t>& keys() const { return keys_; }
  const std::vector<AxisSection>& sections() const { return sections_; }

  // The rows [from, to) of an access of an op, or of part `part` of the access (kNone: the
  // complete access). `access` is null for the op itself. Empty: not on this axis.
  Range<std::int64_t> rows_of(const Series& series, const OutlineOp& op,
                              const OutlineAccess* access, std::uint32_t part) const;
  // The rows of a page fault; on a byte axis, the byte that it touched. Without a series,
  // only Axis::All has a row.
  Range<std::int64_t> rows_of(const Series* series, const IndexedFault& fault) const;
  // Whether each part of the access maps to its own rows.
  bool has_row_per_part(const TemplateOutline& outline, const OutlineAccess& access) const;

 private:
  std::int64_t key_of(const Series& series, const OutlineOp& op, const OutlineAccess* access) const;
  Range<std::int64_t> row_of(std::int64_t key) const;
  Range<std::int64_t> rows_of_heads(const OutlineAccess& access) const;
  std::string name_of(std::int64_t key) const;
  Range<std::int64_t> in_file(const FileRange& range) const;
  Range<std::int64_t> in_buffer(const Series& series, const OutlineAccess& access,
                                std::uint32_t part) const;
  Range<std::int64_t> in_sections(std::uint64_t begin, std::uint64_t length) const;
  LayerId layer_of(const OutlineAccess& access) const;
  std::int64_t key_in_layer(const OutlineAccess& access, std::int64_t number) const;
  void add_rows(const TraceMatcher& matcher, std::optional<Phase> phase);
  void add_files();
  void add_buffers();

  const SessionIndex& index_;
  const Axis axis_;
  std::int64_t size_ = 0;
  std::vector<std::string> names_;
  std::vector<std::int64_t> keys_;
  std::unordered_map<std::int64_t, std::int64_t> row_of_key_;
  std::vector<AxisSection> sections_;
};

}  // namespace tt
