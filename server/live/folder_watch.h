// Follows the session files, while clients are connected. Those that other programs record (`tt
// attach`, `tt record`, another server) are for live clients like those of this server: their steps
// and tokens are read from the files, and come when the writer has committed them, at most a second
// later. Clients also learn that the list of sessions has changed: whoever wrote, added or removed
// the file.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

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
  std::vector<SessionRowPtr> listed_;             // at the last look
  std::jthread thread_;
};

}  // namespace tt
