// The exported access row: the columns of analysis/columns/access_columns.h in this order, for
// CSV, JSON, the log, Parquet and Arrow.
//
// Each column declares how its value varies (Varies), so that a writer evaluates it once per
// step or once per access of a template and copies it otherwise: most of a row is the same in
// every step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/columns/column.h"
#include "analysis/common/derived_graphs.h"
#include "tracer/format/access/access.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"

namespace tt::exchange {

// A template and the data that its rows need.
struct RowTemplate {
  std::shared_ptr<const DerivedGraph> derived;
  std::vector<std::string> op_names;  // per op; for fused ops "RMS_NORM+MUL"
  std::vector<HeadGeometry> heads;    // per access; count 0: not divided into heads
};

// One access of one step.
struct ExportRow {
  StepAccess access;
  std::uint32_t part = 0;  // row index within the template's access, from 0
  // With rows per head: the query head, and which part of the tensor it uses. Query heads that
  // share a key-value head use the same part. -1: access of all heads.
  std::int32_t head = -1, slice = -1;
  std::optional<Ns> self{};  // part of the duration of the op that counts for this row
};

// Data shared by the rows of a step. `step` and `addresses` may be absent if only cells that
// do not use them are evaluated.
struct RowScope {
  const SessionInfo* session = nullptr;
  const RowTemplate* graph = nullptr;
  const Step* step = nullptr;
  std::span<const std::uint64_t> addresses{};  // per tensor of the template; empty: not recorded
};

using CellType = columns::Type;
using columns::Varies;

// Monostate: null. Texts live as long as the scope, those of PerRow columns until the next one of
// the thread; they may be invalid UTF-8.
using Cell =
    std::variant<std::monostate, bool, std::int64_t, std::uint64_t, float, std::string_view>;

// A cell of type Int* holds an int64_t, one of type UInt* a uint64_t.
struct AccessColumn : columns::ColumnInfo {
  // For a PerStep column, `row` may be empty; for a PerAccess column only its access.access is
  // used.
  Cell (*cell)(const RowScope& scope, const ExportRow& row);
};

// Shared by all formats; constant. With rows per token, each column can be read without the others:
// `tensor_name` of an expert is the name of its part, and `qkv_type` is a number that is never
// null.
std::span<const AccessColumn> access_columns(bool per_token = false);

// Address of the accessed data: the tensor as the op sees it, the expert slice, or the rows of
// a head. 0: not recorded.
std::uint64_t address_of(const RowScope& scope, const ExportRow& row);

// All values that a PerStep text column can have. Texts of other columns come from the
// templates.
std::vector<std::string> step_text_values(const AccessColumn& column, const SessionInfo& session);

}  // namespace tt::exchange
