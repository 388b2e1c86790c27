// The session behind the tables of one connection, and the state shared by their scans: the
// reader, the graphs with their names, and the step read last.
//
// Used on the thread of the connection. It, and the names that it returns, live as long as the
// connection's tables, so SQLite need not copy the names.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "analysis/common/derived_graphs.h"
#include "analysis/common/kernel.h"
#include "analysis/common/op_info.h"
#include "analysis/common/page.h"
#include "analysis/index/session_totals.h"
#include "tracer/format/file/session_reader.h"

namespace tt::sql {

// A graph with its names as UTF-8 strings, which Output::text() can use without a copy.
struct NamedGraph {
  std::shared_ptr<const DerivedGraph> derived;
  std::vector<std::string_view> tensors;       // names, by TensorId
  std::vector<std::string_view> types;         // by TensorId
  std::vector<std::string_view> ops;           // "MUL_MAT", by OpId
  std::vector<std::string_view> devices;       // by OpId
  std::vector<OpRole> roles;                   // by OpId
  std::vector<std::optional<Kernel>> kernels;  // by OpId
  const GraphTemplate& graph() const { return *derived->graph; }
};

// Distinct names, which live as long as this object.
class NamePool {
 public:
  // Damaged: more than kMaxBytes of distinct names (untrusted file).
  std::expected<std::string_view, TraceError> intern(std::string name);

 private:
  static constexpr std::size_t kMaxBytes = 64u << 20;
  std::unordered_set<std::string> names_;
  std::size_t bytes_ = 0;
};

class SessionSource {
 public:
  // `keep_going` is called before every step. The file at `path` is opened on first use.
  explicit SessionSource(std::filesystem::path path, ContinueCheck keep_going = never_cancel)
      : path_(std::move(path)), keep_going_(std::move(keep_going)) {}

  // `names`: several sources may share one, which then outlives each of them.
  SessionSource(SessionReader reader, ContinueCheck keep_going, TotalsProvider totals_provider,
                std::shared_ptr<NamePool> names = std::make_shared<NamePool>())
      : keep_going_(std::move(keep_going)),
        totals_provider_(std::move(totals_provider)),
        reader_(std::move(reader)),
        derived_(*reader_),
        names_(std::move(names)) {}

  // For statements that are planned but not run: it can be opened, but every read is an error.
  static std::shared_ptr<SessionSource> for_planning();

  // Opens the file now, so that its errors are reported before a scan begins.
  Status open();
  std::expected<const SessionReader*, TraceError> reader();
  // The session's info at the time of the first call.
  std::expected<const SessionInfo*, TraceError> info();
  std::expected<std::shared_ptr<const Step>, TraceError> step(StepId id);
  // Null, not an error, for TemplateId{0}: a step without a template.
  std::expected<std::shared_ptr<const NamedGraph>, TraceError> graph(TemplateId id);
  std::expected<std::shared_ptr<const Allocation>, TraceError> allocation(AllocationId id);
  // Up-to-date totals over all steps. Release the pointer before the next call (see
  // TotalsProvider). Damaged: a step cannot be read.
  std::expected<std::shared_ptr<const SessionTotals>, TraceError> totals(
      SessionTotals::Times times);
  Status check_cancelled() const;
  // As SessionReader::truncate_at_damage(). No cursor may be open. Objects returned before, except
  // names, still refer to the complete session.
  std::expected<std::optional<std::uint32_t>, TraceError> truncate_at_damage();

 private:
  static constexpr std::size_t kMaxGraphs = 16;
  std::filesystem::path path_;  // empty: only for planning, unless there is a reader
  ContinueCheck keep_going_;
  TotalsProvider totals_provider_;
  std::optional<SessionReader> reader_;
  std::optional<DerivedGraphCache> derived_;
  std::optional<SessionInfo> info_;
  std::map<SessionTotals::Times, std::shared_ptr<SessionTotals>> totals_;  // without a provider
  std::map<TemplateId, std::shared_ptr<const NamedGraph>> graphs_;
  std::shared_ptr<const Step> step_;
  std::shared_ptr<const Allocation> allocation_;
  std::shared_ptr<NamePool> names_ = std::make_shared<NamePool>();
};

// Maps a database of a connection to its session.
class SessionSources {
 public:
  virtual ~SessionSources() = default;
  // `schema`: "main", or the name of an attached database.
  virtual std::expected<std::shared_ptr<SessionSource>, TraceError> of(
      sqlite3* db, const std::string& schema) = 0;
};

// Always the same session, independent of the files that the connection has opened.
class SingleSession final : public SessionSources {
 public:
  explicit SingleSession(std::shared_ptr<SessionSource> source) : source_(std::move(source)) {}
  std::expected<std::shared_ptr<SessionSource>, TraceError> of(sqlite3*,
                                                               const std::string&) override {
    return source_;
  }

 private:
  std::shared_ptr<SessionSource> source_;
};

// The session files that the connection itself has opened. Used by the loadable extension.
class OpenedSessions final : public SessionSources {
 public:
  std::expected<std::shared_ptr<SessionSource>, TraceError> of(sqlite3* db,
                                                               const std::string& schema) override;

 private:
  std::map<std::string, std::weak_ptr<SessionSource>> sources_;  // by path
};

}  // namespace tt::sql
