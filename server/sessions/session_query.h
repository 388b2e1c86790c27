// Which sessions a client wants to see, and in which order: a pure function over
// what is known of all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "api/json/session_json.h"

namespace tt {

enum class SessionKey : std::uint8_t { Start, Title, Model, Steps, Tokens, FileBytes };

struct SessionQuery {
  std::string words{};  // title, model or id contain each of them, in any case
  std::string state{};  // as the interface calls it; empty: any
  std::string model{};  // name of the model's file; empty: any
  SessionKey key = SessionKey::Start;
  bool descending = true;
  PageRange page{};
};

// As the interface calls the state of a session, "unreadable" included.
std::string state_of(const SessionEntry& session);
// Of the model's first file, without folders; empty when it cannot be read.
std::string model_of(const SessionEntry& session);

// Sessions that are equal in what they are sorted by come in the order of their
// ids. Bytes that are no UTF-8 match only themselves.
Page<SessionEntryPtr> select_sessions(std::vector<SessionEntryPtr> sessions,
                                      const SessionQuery& query);

}  // namespace tt
