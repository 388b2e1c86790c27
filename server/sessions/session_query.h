// Filters and sorts the session list: a pure function over the entries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "api/json/session_json.h"

namespace tt {

enum class SessionKey : std::uint8_t { Start, Title, Model, Steps, Tokens, FileBytes };

struct SessionQuery {
  std::string words{};  // words that title, model or id must contain, case-insensitive
  std::string state{};  // name in the API; empty: any
  std::string model{};  // file name of the model; empty: any
  SessionKey key = SessionKey::Start;
  bool descending = true;
  PageRange page{};
};

// Name of the session state in the API, including "unreadable".
std::string state_of(const SessionEntry& session);
// File name of the first model file; empty when the session cannot be read.
std::string model_of(const SessionEntry& session);

// Ties are ordered by id. Bytes that are not valid UTF-8 match only themselves.
Page<SessionEntryPtr> select_sessions(std::vector<SessionEntryPtr> sessions,
                                      const SessionQuery& query);

}  // namespace tt
