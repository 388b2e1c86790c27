// What live clients lack and memory does not hold any more, from the files of the
// sessions: on a thread of its own, one piece after the other, so that neither
// the live hub nor the other clients wait for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/live/live_events.h"
#include "server/door/websocket_handler.h"
#include "server/live/live_records.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/text/recorded_answer.h"

namespace tt {

// The answer's text as far as it was told from the file: a piece goes on where
// the one before it ended.
struct AnswerSoFar {
  RecordedAnswer answer;
  std::uint32_t tokens = 0;  // pushed
};

struct ArchiveRequest {
  ClientId client{};
  std::uint64_t ticket = 0;  // the asker's; comes back
  std::string session{};
  // The records to read: from `from` on, of kinds that this names. None of them:
  // only what the session says about itself is asked for.
  LiveKinds kinds{};
  LivePosition from{};
  std::shared_ptr<AnswerSoFar> answer{};  // of the piece before; null: there was none
};

struct ArchivePiece {
  ClientId client{};
  std::uint64_t ticket = 0;
  std::string session{};
  std::optional<TraceError> error{};  // it cannot be read: nothing below
  SessionState state{};               // when the records were read
  std::string session_error{};        // why it failed
  // How many there are; tokens with the rest of the answer, once it was reached.
  std::uint32_t tokens = 0, steps = 0;
  std::vector<LiveRecord> records{};  // in the order to send them in
  bool at_end = false;                // there are no more, now
  std::shared_ptr<AnswerSoFar> answer{};
};

class LiveArchive {
 public:
  using Open = std::function<std::expected<SessionReader, TraceError>(const std::string& session)>;
  // `done` is called on the archive's thread.
  LiveArchive(Open open, std::function<void(ArchivePiece)> done);
  ~LiveArchive();  // what is not begun is not read any more

  void read(ArchiveRequest request);  // any thread; never blocks

 private:
  struct Session;  // a file that is open
  void run();
  std::expected<Session*, TraceError> open(const std::string& session);
  ArchivePiece piece_of(ArchiveRequest& request);

  Open open_;
  std::function<void(ArchivePiece)> done_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<ArchiveRequest> requests_;
  bool stopping_ = false;
  std::map<std::string, std::unique_ptr<Session>> sessions_;  // the archive's thread
  std::thread thread_;
};

}  // namespace tt
