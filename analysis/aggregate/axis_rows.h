// The axes that say where: which rows there are, and which of them an op, an
// access or a part of one falls into.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/aggregate/axis_scale.h"
#include "analysis/aggregate/trace_axis.h"
#include "analysis/index/session_index.h"

namespace tt {

// A named stretch of an axis of bytes: a file, or a stretch of a buffer.
struct AxisSection {
  std::string name;
  Stretch<std::int64_t> range{};
  std::uint64_t origin = 0;  // offset in the file, or address, of its first byte
  friend bool operator==(const AxisSection&, const AxisSection&) = default;
};

// What passes the filters on ops and accesses, of a series.
class TracePicks {
 public:
  TracePicks(const SessionIndex& index, const TraceFilter& filter);
  bool op(const OutlineOp& op) const;
  bool access(const OutlineAccess& access) const;
  bool about_ops() const { return filter_.about_ops(); }
  bool about_accesses() const { return filter_.about_accesses(); }
  // Whether the op's time passes.
  bool time(const TemplateOutline& outline, const OutlineOp& op) const;

 private:
  const TraceFilter& filter_;
  std::vector<bool> kinds_, ops_, tensors_;  // whose name passes
};

class AxisRows {
 public:
  // All rows that something in the series falls into that `picks` and `phase` let
  // pass, in their natural order; of an axis of bytes everything there is.
  AxisRows(const SessionIndex& index, Axis axis, const TracePicks& picks,
           std::optional<Phase> phase);

  Axis axis() const { return axis_; }
  std::int64_t size() const { return size_; }                       // rows, or bytes
  const std::vector<std::string>& names() const { return names_; }  // of rows; empty: bytes
  // What the rows are numbered by: SessionNames' numbers, or the enum's, layer's or
  // expert's. Empty: bytes.
  const std::vector<std::int64_t>& keys() const { return keys_; }
  const std::vector<AxisSection>& sections() const { return sections_; }

  // The rows [from, to) of an access of an op, of its part `part` where it consists
  // of parts (kNone: as a whole). `access` is null for an op as such. Empty: on no
  // row of this axis.
  Stretch<std::int64_t> rows_of(const Series& series, const OutlineOp& op,
                                const OutlineAccess* access, std::uint32_t part) const;
  // Of a page fault; of bytes, the one that it touched. Without a series only `all` has a row.
  Stretch<std::int64_t> rows_of(const Series* series, const IndexedFault& fault) const;
  // Whether the parts of an access fall into rows of their own.
  bool divides(const TemplateOutline& outline, const OutlineAccess& access) const;

 private:
  std::int64_t key_of(const Series& series, const OutlineOp& op, const OutlineAccess* access) const;
  Stretch<std::int64_t> row_of(std::int64_t key) const;
  std::string name_of(std::int64_t key) const;
  Stretch<std::int64_t> in_file(const FileRange& range) const;
  Stretch<std::int64_t> in_buffer(const Series& series, const OutlineAccess& access,
                                  std::uint32_t part) const;
  Stretch<std::int64_t> in_sections(std::uint64_t begin, std::uint64_t length) const;
  void add_rows(const TracePicks& picks, std::optional<Phase> phase);
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
