// Accesses as table rows: tensor, address, range in the model file. Either the accesses of
// one step, by row number, or those of all steps, page by page with a cursor.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/accesses/access_filter.h"
#include "analysis/common/derived_graphs.h"
#include "analysis/common/page.h"
#include "analysis/common/step_facts.h"
#include "analysis/index/session_index.h"
#include "tracer/format/access/access.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Self-contained: shares the ownership of its step and template.
struct AccessRow {
  AccessId place;
  StepAccess access;
  std::shared_ptr<const StepFacts> step;
  std::shared_ptr<const DerivedGraph> derived;
  // Of the op; no duration: not recorded.
  Ns begin{};
  std::optional<Ns> duration{};
  std::uint64_t address = 0;  // address_of(); 0: not recorded
  std::uint32_t heads = 0;    // that the tensor is divided into; 0: not divided

  const GraphTemplate& graph() const { return *derived->graph; }
  const Tensor& tensor() const { return graph().tensor(access.tensor); }
};

// The rows `range` of the accesses of one step that pass the filter.
std::expected<Page<AccessRow>, TraceError> access_table(const SessionReader& reader, StepId step,
                                                        const AccessFilter& filter,
                                                        Order<AccessSort> order, PageRange range);

struct AccessQuery {
  StepId first_step{0};
  std::optional<StepId> last_step{};  // inclusive; none: the last step
  std::optional<Phase> phase{};
  LeaveOut leave_out = LeaveOut::Nothing;
  AccessFilter filter{};
  Order<AccessSort> order{};
  friend bool operator==(const AccessQuery&, const AccessQuery&) = default;
};

struct AccessPage {
  std::vector<AccessRow> rows;
  // Cursor of the next page: the last row of this page. None: this is the last page.
  std::optional<AccessId> next;
  // Cost of the page: steps read, and how many of them had their accesses derived.
  std::uint32_t steps_read = 0, steps_derived = 0;
};

// Returns the index of the queried session, valid until the query returns, or null if there
// is no index. Called at most once per query, and only if the query would be slow without it.
using IndexSource = std::function<std::expected<const SessionIndex*, TraceError>()>;
inline std::expected<const SessionIndex*, TraceError> no_index() { return nullptr; }
inline constexpr std::uint32_t kMaxReadsWithoutMatch = 64;

// Returns the `limit` rows after the row `after` (none: the first rows).
//
// A cursor identifies a row, so it stays valid while the session grows: every row that
// existed at the first page is returned exactly once; a row added later is returned if it
// sorts after the cursor.
//
// Cost. By time: reads the steps on the page and the steps without a match between them; with
// an index, at most kMaxReadsWithoutMatch of the latter. In any other order: reads every step with
// a match once per page, with memory for `limit` rows; with an index, only the steps that can
// contribute to the page, judged by the rows found so far.
//
// A damaged step in the range is an error, unless nothing in the session can match.
// NotFound: `after` is not a row of the result.
std::expected<AccessPage, TraceError> access_page(const SessionReader& reader,
                                                  const AccessQuery& query,
                                                  std::optional<AccessId> after, std::size_t limit,
                                                  const ContinueCheck& keep_going = never_cancel,
                                                  const IndexSource& index = no_index);

}  // namespace tt
