// A session file made from exported rows. Graphs are not in an export, so they are
// rebuilt from what was touched: each op becomes nodes that make exactly its
// accesses again. Accesses, bytes, times, tokens, experts and file ranges come out
// equal; shapes, edges and views do not (docs/exports.md has the list).
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
#include <vector>

#include "tracer/format/access/access.h"
#include "tracer/format/file/session_writer.h"

namespace tt::exchange {

// What no model has, and a file may say: it would cost what it says.
inline constexpr std::int32_t kMostRanks = 1024;              // experts of a token
inline constexpr std::uint64_t kMostUntoldTokens = 1u << 16;  // in all
inline constexpr std::uint64_t kOpsWithoutRows = 4096;        // of a step, and
inline constexpr std::uint64_t kOpsPerRow = 64;
inline constexpr std::size_t kMostStepRows = 4u << 20;  // importers hold them

// One access as an export has it; the fields are its columns.
struct ImportedRow {
  std::uint32_t op = 0;
  std::string operation_type = "NONE";
  std::string device;
  LayerId op_layer = kNoLayer;
  bool write = false;
  std::uint32_t tensor = kNone;  // kNone: told by the name alone
  std::string tensor_name, tensor_type;
  TensorKind kind = TensorKind::Intermediate;
  std::uint64_t tensor_bytes = 0;  // 0: not told
  std::uint64_t address = 0;       // 0: not told; with an expert, of its slice
  LayerId layer = kNoLayer;
  Component component = Component::Other;
  Role role = Role::None;
  Source source = Source::Compute;
  FileRange range;
  std::optional<std::uint64_t> tensor_file_offset{};  // where rows and experts count from
  std::uint64_t size_bytes = 0;
  Extent extent = Extent::All;
  std::uint64_t unit_bytes = 0;
  std::int32_t expert = -1, rank = -1;
  float score = std::numeric_limits<float>::quiet_NaN();
  std::optional<std::int64_t> begin{}, end{};  // of the op
};

// A step and its accesses, by op, as they were made. `step` has what it says of
// itself; template, allocation, op ends and slots are the builder's.
struct ImportedStep {
  Step step;
  std::uint32_t ops = 0;      // of its graph, at least; ops without an access have no row
  std::uint32_t ops_run = 0;  // with a time; 0: without times
  std::optional<std::int64_t> last_op_end{};
  std::vector<ImportedRow> rows;
};

// One thread. Nothing is left at `path` unless finish() went well.
class SessionBuilder {
 public:
  static std::expected<SessionBuilder, TraceError> create(const std::filesystem::path& path,
                                                          const SessionInfo& info);
  SessionBuilder(SessionBuilder&&) noexcept;
  SessionBuilder& operator=(SessionBuilder&&) = delete;
  ~SessionBuilder();

  // In order; tokens before the steps that evaluate them.
  std::expected<void, TraceError> add_tokens(std::vector<Token> tokens);
  std::expected<void, TraceError> add_step(const ImportedStep& step);
  std::expected<void, TraceError> finish(const SessionInfo& info, const LossCounters& losses);

 private:
  SessionBuilder(std::filesystem::path path, const SessionInfo& info,
                 std::unique_ptr<SessionWriter> writer);
  void drop();

  std::filesystem::path path_, making_;
  SessionInfo info_;
  std::unique_ptr<SessionWriter> writer_;
  std::unordered_map<std::uint64_t, TemplateId> templates_;  // by what they hold
  std::unordered_map<std::uint64_t, AllocationId> allocations_;
  std::uint32_t steps_ = 0, tokens_ = 0;
  std::uint64_t untold_ = 0;  // of the tokens
};

}  // namespace tt::exchange
