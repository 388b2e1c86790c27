// The exported access row: one table of columns that CSV, JSON, the log, Parquet
// and Arrow all write, in this order. What each means is in docs/exports.md.
//
// A column says how far its value reaches (Varies), so that a writer asks once per
// step or once per template's access and only copies from there: most of a row is
// the same in every step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/common/derived_graphs.h"
#include "tracer/format/access/access.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"

namespace tt::exchange {

// A template and what its rows take from it.
struct RowTemplate {
  std::shared_ptr<const DerivedGraph> derived;
  std::vector<std::string> op_names;  // per op; of a fused one "RMS_NORM+MUL"
  std::vector<HeadGeometry> heads;    // per access; count 0: not divided by heads
};

// One access of one step.
struct ExportRow {
  StepAccess access;
  std::uint32_t part = 0;  // which row of the template's access it is, from 0
  std::int32_t head = -1;  // with rows per head; -1: the access of all heads
};

// What the rows of a step have in common. `step` and `addresses` are absent where
// only cells are asked for that do not depend on them.
struct RowScope {
  const SessionInfo* session = nullptr;
  const RowTemplate* graph = nullptr;
  const Step* step = nullptr;
  std::span<const std::uint64_t> addresses{};  // per tensor of the template; empty: not recorded
};

enum class CellType : std::uint8_t { Text, Flag, Int32, UInt32, Int64, UInt64, Float };
// PerRow: of the row and of where its tensor lies; PerTime: and of when its op ran.
enum class Varies : std::uint8_t { PerStep, PerAccess, PerRow, PerTime };

// Monostate: null. Texts live as long as the scope, and may be no UTF-8.
using Cell =
    std::variant<std::monostate, bool, std::int64_t, std::uint64_t, float, std::string_view>;

struct AccessColumn {
  const char* name;
  CellType type;  // Int*: the cell holds int64_t; UInt*: uint64_t
  Varies varies;
  const char* unit;
  bool nullable;
  // PerStep: of the row only what any row has; PerAccess: only access.access.
  Cell (*cell)(const RowScope& scope, const ExportRow& row);
};

// Shared by every format; never changes while the program runs.
std::span<const AccessColumn> access_columns();

// Of the tensor's data as the op sees it, of an expert's slice, of a head's rows; 0: not
// recorded.
std::uint64_t address_of(const RowScope& scope, const ExportRow& row);

// The words that a text column may hold in a step, whatever the template: phases,
// timings, the session's id. Texts of other columns come from the templates.
std::vector<std::string> words_of_steps(const SessionInfo& session);

}  // namespace tt::exchange
