// Server-sent event streams for POST /api/v1/generate with "stream": the events of one
// session, with the messages of api/live.md as data.
//
// Each stream has a queue with a byte limit. An event that does not fit is dropped and
// counted; a `loss` event reports the count as soon as there is room. State events always fit.
// The listener callbacks only copy; the reader formats the text.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "api/live/live_events.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

class GenerationStream {
 public:
  GenerationStream(std::string session, std::chrono::milliseconds heartbeat)
      : session_(std::move(session)), heartbeat_(heartbeat) {}

  const std::string& session() const { return session_; }

  // Events queued since the last call. Waits up to `patience` for the first one; returns an
  // empty string on timeout, or an SSE comment after a long silence so that proxies keep the
  // connection open. One reader.
  std::string read(std::chrono::milliseconds timeout);
  // True when the session has ended and all events were read.
  bool ended() const;

  static constexpr std::size_t kMaxQueuedBytes = 4u << 20;

 private:
  friend class GenerationStreams;
  struct Event {
    const char* name;
    std::function<std::string()> data;  // formats the JSON; called by the reader
    std::size_t bytes = 0;              // approximate memory use; 0: never dropped
    // The counter to increment when the event is dropped; null: not counted, because a later
    // event replaces it.
    std::uint64_t LiveLosses::* loss = nullptr;
    bool last = false;
  };
  void push(Event event);

  const std::string session_;
  const std::chrono::milliseconds heartbeat_;
  // Used by the reader only.
  std::chrono::steady_clock::time_point last_read_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Event> events_;
  std::size_t bytes_ = 0;
  LiveLosses lost_, lost_reported_;
  bool final_queued_ = false;
  std::atomic<std::uint32_t> n_layers_ = 0;  // of the model; set by the first state event
  std::atomic<std::uint32_t> tokens_ = 0;    // generated so far
};

// The open streams, by session id. Any thread.
class GenerationStreams final : public SessionListener {
 public:
  explicit GenerationStreams(std::chrono::milliseconds heartbeat = std::chrono::seconds{15})
      : heartbeat_(heartbeat) {}

  // Call before submitting the session, so that the stream includes its first event. Returns
  // null when kMaxStreams streams are open: each occupies an HTTP worker thread.
  std::shared_ptr<GenerationStream> open(const std::string& session);
  void close(const std::string& session);
  static constexpr std::size_t kMaxStreams = 16;

  void on_state(const JobStatus& status) override;
  void on_progress(const JobStatus& status) override;
  void on_token(const std::string& session, const Token& token, std::string_view piece) override;
  void on_text(const std::string& session, std::string_view rest) override;
  void on_step(const std::string& session, const Step& step, const KnownGraphPtr& graph) override;

 private:
  std::shared_ptr<GenerationStream> find(const std::string& session) const;

  const std::chrono::milliseconds heartbeat_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<GenerationStream>> open_;
  std::atomic<std::size_t> count_ = 0;  // size of open_; events are not copied while it is 0
};

}  // namespace tt
