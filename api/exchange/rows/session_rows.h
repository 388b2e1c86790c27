// Iterates over the steps of a session, each with its accesses as rows; used by every export.
// Memory holds one step and the most recently used templates.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "api/exchange/rows/export_columns.h"
#include "tracer/format/file/session_reader.h"

namespace tt::exchange {

struct ExportRange {
  StepId first{0};
  std::optional<StepId> last{};  // nullopt: the latest recorded step
  // One row per query head if a Q, K, V or O weight is read as a whole and each byte belongs to
  // exactly one head of the weight: the same bytes in more rows. Query heads that share a head of K
  // and V have equal parts of its bytes.
  bool per_head = false;
  // The rows of a step with several tokens are repeated for each token; token_id is the token and
  // token_count the number of tokens that share the access. Bytes and time are divided among them,
  // so that columns may be summed. For formats of rows, and the run folder.
  bool per_token = false;
};

// Describes what is wrong with this range for a session of `steps` steps; nullopt if valid. A
// last step that is not recorded yet is allowed.
std::optional<std::string> range_error(const ExportRange& range, std::uint32_t steps);

struct StepRows {
  RowScope scope;  // scope.graph is null for a step without a template: no rows
  std::span<const ExportRow> rows;
  std::uint32_t done = 0, steps = 0;  // this is step `done` of `steps` in the range, from 1
  // Rows per token arrive in several parts. scope.step is the step as the rows show it: its first
  // token is that of the rows, its number of tokens that of the tokens that share them.
  bool last_part = true;
  bool repeated = false;       // an earlier part had these rows, for another token
  const Step* step = nullptr;  // as it was recorded
};

using WriteResult = std::expected<void, TraceError>;

// One thread. The reader must outlive it.
class SessionRows {
 public:
  static std::expected<SessionRows, TraceError> open(const SessionReader& reader,
                                                     ExportRange range);
  const SessionInfo& session() const { return session_; }
  bool per_token() const { return per_token_; }
  const SessionReader& reader() const { return *reader_; }
  StepId first() const { return first_; }
  std::uint32_t steps() const { return steps_; }  // number of steps in the range

  // Reads all templates once, for the possible values of text columns.
  WriteResult for_each_template(const std::function<void(TemplateId, const RowTemplate&)>& row);

  // An error of `step` ends the iteration. Returns Cancelled if `keep_going` returns false.
  WriteResult for_each_step(const std::function<WriteResult(const StepRows&)>& step,
                            const ContinueCheck& keep_going = never_cancel);

 private:
  SessionRows(const SessionReader& reader, SessionInfo session)
      : reader_(&reader), session_(std::move(session)) {}
  std::expected<std::shared_ptr<const RowTemplate>, TraceError> row_template(TemplateId id);
  WriteResult derive(const Step& step);
  void add_self_times(const Step& step);
  void add_heads(const RowTemplate& graph, const StepAccess& access);
  WriteResult write_per_token(const StepRows& rows,
                              const std::function<WriteResult(const StepRows&)>& step) const;

  const SessionReader* reader_;
  SessionInfo session_;
  StepId first_{};
  std::uint32_t steps_ = 0;
  bool per_head_ = false, per_token_ = false;
  std::map<TemplateId, std::shared_ptr<const RowTemplate>> templates_;  // cache
  std::shared_ptr<const RowTemplate> current_;
  Allocation allocation_;
  std::vector<ExportRow> rows_;
};

}  // namespace tt::exchange
