// Answers of POST /api/v1/generate with "stream": what happens to one session,
// as server-sent events whose data are the messages of api/live.md.
//
// Each stream has a queue that is bounded in bytes: what does not fit is not
// told, is counted, and a `loss` event says how many as soon as there is room.
// States always fit. Listening only copies; the text is made by who reads.
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

  // The events that came since the last call, waiting for some until `patience`
  // has passed: then empty, or after a long silence a comment, so that no proxy
  // gives up on it. One reader.
  std::string read(std::chrono::milliseconds patience);
  // The session has ended and everything was read.
  bool ended() const;

  static constexpr std::size_t kMostBytes = 4u << 20;

 private:
  friend class GenerationStreams;
  struct Event {
    const char* name;
    std::function<std::string()> data;  // JSON, made by the reader
    std::size_t bytes = 0;              // about what waiting costs; 0: there is always room
    // Where it is counted when there is none; null: nowhere, the next one says more.
    std::uint64_t LiveLosses::* loss = nullptr;
    bool last = false;
  };
  void push(Event event);

  const std::string session_;
  const std::chrono::milliseconds heartbeat_;
  std::chrono::steady_clock::time_point last_read_ = std::chrono::steady_clock::now();  // reader's
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Event> events_;
  std::size_t bytes_ = 0;
  LiveLosses lost_, lost_told_;
  bool last_came_ = false;
  std::atomic<std::uint32_t> n_layers_ = 0;  // of the model, from the first state on
  std::atomic<std::uint32_t> tokens_ = 0;    // so far
};

// The open ones, by session. Any thread.
class GenerationStreams final : public SessionListener {
 public:
  explicit GenerationStreams(std::chrono::milliseconds heartbeat = std::chrono::seconds{15})
      : heartbeat_(heartbeat) {}

  // Before the session is submitted: so its first event is in it. Null when
  // kMost are open: each holds a worker of the door.
  std::shared_ptr<GenerationStream> open(const std::string& session);
  void close(const std::string& session);
  static constexpr std::size_t kMost = 16;

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
  std::atomic<std::size_t> count_ = 0;  // nothing is copied while it is 0
};

}  // namespace tt
