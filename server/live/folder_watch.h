// Follows sessions that other programs record into the data folder (`tt attach`, `tt record`,
// another server), so that live clients see them as they see those of this server: their steps and
// tokens are read from the files, and come when the writer has committed them, at most a second
// later.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <thread>

#include "server/live/live_hub.h"
#include "server/sessions/session_store.h"

namespace tt {

class FolderWatch {
 public:
  // `is_ours`: whether this server records the session. The references must outlive it.
  FolderWatch(SessionStore& sessions, LiveHub& hub,
              std::function<bool(const std::string& session)> is_ours);

 private:
  void look();

  SessionStore& sessions_;
  LiveHub& hub_;
  std::function<bool(const std::string& session)> is_ours_;
  std::map<std::string, SessionRowPtr> running_;  // as last published
  std::jthread thread_;
};

}  // namespace tt
