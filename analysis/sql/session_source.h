// The session that the tables of one connection are about, and what all of their
// scans share: the reader, the graphs with their names, the step read last.
//
// Thread: that of the connection. Lives as long as the connection's tables; the
// names it gives out live as long, so that SQLite need not copy them.
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
#include "analysis/common/page.h"
#include "analysis/index/session_totals.h"
#include "tracer/format/file/session_reader.h"

namespace tt::sql {

// A graph with its names as Out::kept() takes them, all UTF-8.
struct NamedGraph {
  std::shared_ptr<const DerivedGraph> derived;
  std::vector<std::string_view> tensors;  // names, by TensorId
  std::vector<std::string_view> types;    // by TensorId
  std::vector<std::string_view> ops;      // "MUL_MAT", by OpId
  std::vector<std::string_view> devices;  // by OpId
  const GraphTemplate& graph() const { return *derived->graph; }
};

class SessionSource {
 public:
  // `keep_going` is asked before every step. With a path it is opened when it is needed.
  explicit SessionSource(std::filesystem::path path, KeepGoing keep_going = always)
      : path_(std::move(path)), keep_going_(std::move(keep_going)) {}

  SessionSource(SessionReader reader, KeepGoing keep_going, LendTotals lend_totals)
      : keep_going_(std::move(keep_going)),
        lend_totals_(std::move(lend_totals)),
        reader_(std::move(reader)),
        derived_(*reader_) {}

  std::expected<const SessionReader*, TraceError> reader();
  // What the session says about itself, as it was when it was first asked for.
  std::expected<const SessionInfo*, TraceError> info();
  std::expected<std::shared_ptr<const Step>, TraceError> step(StepId id);
  // Null without an error: TemplateId{0}, a step without a template.
  std::expected<std::shared_ptr<const NamedGraph>, TraceError> graph(TemplateId id);
  std::expected<std::shared_ptr<const Allocation>, TraceError> allocation(AllocationId id);
  // For sums over all steps, as the session is now. To be let go of at once (LendTotals),
  // before the next call. Damaged: a step cannot be read.
  std::expected<std::shared_ptr<const SessionTotals>, TraceError> totals(
      SessionTotals::Times times);
  std::expected<void, TraceError> go_on() const;
  // As SessionReader::end_at_damage(). No cursor is open, and what was given out before,
  // but names, is of the session as it was.
  std::expected<std::optional<std::uint32_t>, TraceError> end_at_damage();

 private:
  // Damaged: more than kMostNames bytes of different names. A file may say anything.
  std::expected<std::string_view, TraceError> keep(std::string name);

  static constexpr std::size_t kGraphsKept = 16;
  static constexpr std::size_t kMostNames = 64u << 20;
  std::filesystem::path path_;
  KeepGoing keep_going_;
  LendTotals lend_totals_;
  std::optional<SessionReader> reader_;
  std::optional<DerivedGraphs> derived_;
  std::optional<SessionInfo> info_;
  std::map<SessionTotals::Times, std::shared_ptr<SessionTotals>> totals_;  // nobody lends them
  std::map<TemplateId, std::shared_ptr<const NamedGraph>> graphs_;
  std::shared_ptr<const Step> step_;
  std::shared_ptr<const Allocation> allocation_;
  std::unordered_set<std::string> names_;
  std::size_t name_bytes_ = 0;
};

// Which session the tables of a connection are about.
class SessionSources {
 public:
  virtual ~SessionSources() = default;
  // `schema`: main, or the name of an attached database.
  virtual std::expected<std::shared_ptr<SessionSource>, TraceError> of(
      sqlite3* db, const std::string& schema) = 0;
};

// One session, whatever the connection itself has opened.
class OneSession final : public SessionSources {
 public:
  explicit OneSession(std::shared_ptr<SessionSource> source) : source_(std::move(source)) {}
  std::expected<std::shared_ptr<SessionSource>, TraceError> of(sqlite3*,
                                                               const std::string&) override {
    return source_;
  }

 private:
  std::shared_ptr<SessionSource> source_;
};

// The session files that the connection itself has opened: as an extension.
class OpenedSessions final : public SessionSources {
 public:
  std::expected<std::shared_ptr<SessionSource>, TraceError> of(sqlite3* db,
                                                               const std::string& schema) override;

 private:
  std::map<std::string, std::weak_ptr<SessionSource>> sources_;  // by path
};

}  // namespace tt::sql
