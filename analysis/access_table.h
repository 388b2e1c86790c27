// Accesses as rows: which tensor's bytes an op touched, where they lie in memory
// and in the model's file. One step's, numbered; or those of all steps, page by
// page with a cursor.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/access_filter.h"
#include "analysis/page.h"
#include "tracer/format/access.h"
#include "tracer/format/session_reader.h"

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
  std::uint32_t steps_derived = 0;  // what the page cost
};

// The `limit` rows that come after the row `after` (none: the first ones).
//
// A cursor names a row, so it stays good while the session grows: every row that
// was there at the first page comes exactly once; a row that is added meanwhile
// comes if its place is still ahead.
//
// Cost. By time, only the steps on the page and those between them and the next
// match; a template that cannot match is not derived. In any other order every
// step once per page, in memory for `limit` rows.
//
// NotFound: `after` names no row.
std::expected<AccessPage, TraceError> access_page(const SessionReader& reader,
                                                  const AccessQuery& query,
                                                  std::optional<AccessPlace> after,
                                                  std::size_t limit,
                                                  const KeepGoing& keep_going = always);

}  // namespace tt
