// Reads session records that live clients need but that are no longer in memory from the
// session files. Runs on its own thread, one batch at a time, so that neither the live hub nor
// other clients wait for disk reads.
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
#include "server/frontend/websocket_handler.h"
#include "server/live/live_records.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/text/recorded_answer.h"

namespace tt {

// State of the answer text after the batches read so far; the next batch continues from here.
struct PartialAnswer {
  RecordedAnswer answer;
  std::uint32_t tokens = 0;  // tokens added to `answer`
};

struct BackfillRequest {
  ClientId client{};
  std::uint64_t request_id = 0;  // the caller's request id; returned in the result
  std::string session{};
  // The records to read: those of `kinds` from position `from` on. No kinds: only the session
  // metadata is requested.
  LiveKinds kinds{};
  LivePosition from{};
  std::shared_ptr<PartialAnswer> answer{};  // from the previous batch; null: first batch
};

struct BackfillBatch {
  ClientId client{};
  std::uint64_t request_id = 0;
  std::string session{};
  std::optional<TraceError> error{};  // if set, the fields below are empty
  SessionState state{};               // at the time of reading
  std::string session_error{};        // error message of a failed session
  // Totals. `tokens` includes the remaining answer text once it was reached.
  std::uint32_t tokens = 0, steps = 0;
  std::vector<LiveRecord> records{};  // in sending order
  bool is_last = false;               // no more records at the time of reading
  std::shared_ptr<PartialAnswer> answer{};
};

class BackfillReader {
 public:
  using Open = std::function<std::expected<SessionReader, TraceError>(const std::string& session)>;
  // `done` is called on the reader's thread.
  BackfillReader(Open open, std::function<void(BackfillBatch)> done);
  ~BackfillReader();  // drops requests that have not started

  void read(BackfillRequest request);  // any thread; never blocks

 private:
  struct Session;  // an open session file
  void run();
  std::expected<Session*, TraceError> open(const std::string& session);
  BackfillBatch read_batch(BackfillRequest& request);

  Open open_;
  std::function<void(BackfillBatch)> done_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<BackfillRequest> requests_;
  bool stopping_ = false;
  std::map<std::string, std::unique_ptr<Session>> sessions_;  // the reader's thread only
  std::thread thread_;
};

}  // namespace tt
