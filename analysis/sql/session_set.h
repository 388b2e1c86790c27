// The sessions behind the tables of a connection that queries several at once. Each table has the
// rows of all sessions and one more column, `session` (virtual_table.h).
//
// Used on the thread of the connection. Only a few sessions are open at a time.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/sql/session_source.h"
#include "analysis/sql/virtual_table.h"
#include "tracer/format/file/session_reader.h"

namespace tt::sql {

// Names of sessions, valid UTF-8, sorted, no two equal; and what opens the session of a name.
struct SessionNames {
  std::vector<std::string> names;
  std::function<std::expected<SessionReader, TraceError>(std::size_t)> open;
};

class SessionSet {
 public:
  // `max_open`: sessions that are kept open.
  SessionSet(SessionNames sessions, ContinueCheck keep_going, std::size_t max_open)
      : sessions_(std::move(sessions)), keep_going_(std::move(keep_going)), max_open_(max_open) {}

  const std::vector<std::string>& names() const { return sessions_.names; }
  // Opens the session if it is not open. Errors begin with its name.
  std::expected<std::shared_ptr<SessionSource>, TraceError> source(std::size_t i);
  TraceError named(std::size_t i, TraceError error) const;

 private:
  SessionNames sessions_;
  ContinueCheck keep_going_;
  std::size_t max_open_;
  std::shared_ptr<NamePool> pool_ = std::make_shared<NamePool>();
  std::list<std::pair<std::size_t, std::shared_ptr<SessionSource>>> open_;  // last used first
};

// The rows of `table`, whose first column is `session`, in all sessions of `set`.
std::unique_ptr<Cursor> open_set_cursor(const Table& table, SessionSet& set);

}  // namespace tt::sql
