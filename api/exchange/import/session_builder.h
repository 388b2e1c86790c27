// Builds a session file from exported steps. Our exports contain the recorded graphs
// (recorded_parts.h). The rows of other logs do not: their graphs are rebuilt from the accesses.
// Each op becomes nodes that produce exactly the same accesses. Accesses, bytes, times, tokens,
// experts and file ranges are then preserved; shapes, edges and views are not (docs/exports.md).
#pragma once

#include <cmath>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracer/format/access/access.h"
#include "tracer/format/file/session_writer.h"

namespace tt::exchange {

// Limits against untrusted files whose numbers would cause large allocations.
inline constexpr std::int32_t kMaxRanks = 1024;               // experts per token
inline constexpr std::uint64_t kMaxMissingTokens = 1u << 16;  // in total
inline constexpr std::uint64_t kOpsWithoutRows = 4096;        // per step, plus
inline constexpr std::uint64_t kOpsPerRow = 64;
inline constexpr std::size_t kMaxStepRows = 4u << 20;  // rows of one step are held in memory

// One access of an export; the fields are its columns.
struct ImportedRow {
  std::uint32_t op = 0;
  std::uint32_t access = kNone;  // of the template; kNone: unknown
  std::string operation_type = "NONE";
  std::string device;
  LayerId op_layer = kNoLayer;
  bool write = false;
  std::uint32_t tensor = kNone;  // kNone: identified by name only
  std::string tensor_name, tensor_type;
  TensorKind kind = TensorKind::Intermediate;
  std::uint64_t tensor_bytes = 0;  // 0: unknown
  std::uint64_t address = 0;       // 0: unknown; with an expert, of its slice
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  Role role = Role::None;
  Source source = Source::Compute;
  FileRange range;
  std::optional<std::uint64_t> tensor_file_offset{};  // base offset of rows and experts
  std::uint64_t size_bytes = 0;
  Extent extent = Extent::All;
  std::uint64_t unit_bytes = 0;
  std::int32_t expert = -1, rank = -1, head = -1;
  float score = std::numeric_limits<float>::quiet_NaN();
  std::optional<std::int64_t> begin{}, end{};  // of the op
};

// A step and its accesses, ordered by op. The builder sets the template, allocation, op ends
// and slots of `step`; its other fields are taken as given.
struct ImportedStep {
  Step step;
  std::uint32_t ops = 0;      // minimum op count of its graph; ops without accesses have no rows
  std::uint32_t ops_run = 0;  // ops with times; 0: no times
  std::optional<std::int64_t> last_op_end{};
  std::vector<ImportedRow> rows;
};

// A step as it was recorded, with what belongs to it. `step.graph` and `step.allocation` are the
// numbers of the exported session; `graph` and `addresses` are theirs.
struct RecordedStep {
  Step step;
  std::shared_ptr<const GraphTemplate> graph{};  // null: none was recorded
  std::vector<std::uint64_t> addresses{};
  std::vector<std::pair<FaultKind, StepFaults>> faults{};  // the number of the step is not set
  std::optional<StepResidency> residency{};
  std::optional<StepValues> values{};  // the number of the step is not set
  std::optional<StepSplits> splits{};  // the number of the step is not set
};

// One thread. No file remains at `path` unless finish() succeeds.
class SessionBuilder {
 public:
  static std::expected<SessionBuilder, TraceError> create(const std::filesystem::path& path,
                                                          const SessionInfo& info);
  SessionBuilder(SessionBuilder&&) noexcept;
  SessionBuilder& operator=(SessionBuilder&&) = delete;
  ~SessionBuilder();

  // Call in order; add tokens before the steps that evaluate them.
  std::expected<void, TraceError> add_tokens(std::vector<Token> tokens);
  std::expected<void, TraceError> add_step(const ImportedStep& step);
  std::expected<void, TraceError> add_step(const RecordedStep& step);
  // Steps whose graph was rebuilt.
  std::uint64_t rebuilt_steps() const { return rebuilt_steps_; }
  std::expected<void, TraceError> finish(const SessionInfo& info, const LossCounters& losses);

 private:
  SessionBuilder(std::filesystem::path path, const SessionInfo& info,
                 std::unique_ptr<SessionWriter> writer);
  void drop();
  std::expected<void, TraceError> add_missing_tokens(const Step& step);
  std::expected<void, TraceError> commit_at_times();

  std::filesystem::path path_, temp_path_;
  SessionInfo info_;
  std::unique_ptr<SessionWriter> writer_;
  std::unordered_map<std::uint64_t, TemplateId> templates_;  // by content hash
  std::unordered_map<std::uint64_t, AllocationId> allocations_;
  std::unordered_map<TemplateId, TemplateId> recorded_templates_;  // by number in the export
  std::unordered_map<AllocationId, AllocationId> recorded_allocations_;
  std::uint32_t template_count_ = 0, allocation_count_ = 0;
  std::uint64_t rebuilt_steps_ = 0;
  std::uint32_t steps_ = 0, tokens_ = 0;
  std::uint64_t missing_tokens_ = 0;  // unknown tokens
};

}  // namespace tt::exchange
