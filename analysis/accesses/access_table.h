// Accesses as rows: which tensor's bytes an op touched, where they lie in memory
// and in the model's file. One step's, numbered; or those of all steps, page by
// page with a cursor.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/accesses/access_filter.h"
#include "analysis/common/page.h"
#include "analysis/index/session_index.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Understood without the template that it comes from.
struct AccessRow {
  AccessPlace place;
  StepAccess access;
  // Of the tensor's data as the op sees it, of an expert's slice with Experts; 0: not recorded.
  std::uint64_t address = 0;
  Category category = Category::Layer;
  // Of the tensor.
  std::string name;
  TensorKind kind = TensorKind::Intermediate;
  Source source = Source::Compute;
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  Role role = Role::None;
};

// Accesses `range` of one step, of those that pass the filter.
std::expected<Page<AccessRow>, TraceError> access_table(const SessionReader& reader, StepId step,
                                                        const AccessFilter& filter,
                                                        Order<AccessSort> order, PageRange range);

struct AccessQuery {
  StepId first_step{0};
  std::optional<StepId> last_step{};  // none: the last there is
  std::optional<Phase> phase{};
  AccessFilter filter{};
  Order<AccessSort> order{};
  friend bool operator==(const AccessQuery&, const AccessQuery&) = default;
};

struct AccessPage {
  std::vector<AccessRow> rows;
  // Cursor of the page behind: the last row of this one. None: there is no row behind.
  std::optional<AccessPlace> next;
  // What the page cost: steps read, and those of them whose accesses were derived.
  std::uint32_t steps_read = 0, steps_derived = 0;
};

// Gives the index of the session that is asked about, valid until the answer is there;
// null: there is none. Asked once, and only for what it would take long to read.
using IndexSource = std::function<std::expected<const SessionIndex*, TraceError>()>;
inline std::expected<const SessionIndex*, TraceError> no_index() { return nullptr; }
inline constexpr std::uint32_t kMostReadInVain = 64;

// The `limit` rows that come after the row `after` (none: the first ones).
//
// A cursor names a row, so it stays good while the session grows: every row that
// was there at the first page comes exactly once; a row that is added meanwhile
// comes if its place is still ahead.
//
// Cost. By time, the steps on the page are read, and those between them that hold no
// match: kMostReadInVain at most where `index` has the session's, which knows them.
// In any other order every step with a match once per page, in memory for `limit` rows;
// with an index only those whose rows can be on the page, as far as it is found by then.
//
// A damaged step on the way is an error, unless nothing in the session can match.
// NotFound: `after` names no row.
std::expected<AccessPage, TraceError> access_page(
    const SessionReader& reader, const AccessQuery& query, std::optional<AccessPlace> after,
    std::size_t limit, const KeepGoing& keep_going = always, const IndexSource& index = no_index);

}  // namespace tt
