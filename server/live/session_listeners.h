// Forwards session events to several listeners.
#pragma once

#include <utility>
#include <vector>

#include "tracer/engine/generation_queue.h"

namespace tt {

// Calls the listeners in the given order. They must outlive it.
class SessionListeners final : public SessionListener {
 public:
  explicit SessionListeners(std::vector<SessionListener*> listeners)
      : listeners_(std::move(listeners)) {}

  void on_state(const JobStatus& status) override {
    for (SessionListener* each : listeners_) each->on_state(status);
  }
  void on_progress(const JobStatus& status) override {
    for (SessionListener* each : listeners_) each->on_progress(status);
  }
  void on_token(const std::string& session, const Token& token, std::string_view piece) override {
    for (SessionListener* each : listeners_) each->on_token(session, token, piece);
  }
  void on_text(const std::string& session, std::string_view rest) override {
    for (SessionListener* each : listeners_) each->on_text(session, rest);
  }
  void on_step(const std::string& session, const Step& step, const KnownGraphPtr& graph) override {
    for (SessionListener* each : listeners_) each->on_step(session, step, graph);
  }

 private:
  std::vector<SessionListener*> listeners_;
};

}  // namespace tt
