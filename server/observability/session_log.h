// Logs sessions: one line when a session starts, and one when it ends with its totals, its
// error, and what is missing from its file.
#pragma once

#include "server/observability/log.h"
#include "tracer/engine/generation_queue.h"

namespace tt {

class SessionLog final : public SessionListener {
 public:
  explicit SessionLog(Log log) : log_(std::move(log)) {}

  void on_state(const JobStatus& status) override;
  void on_progress(const JobStatus&) override {}
  void on_token(const std::string&, const Token&, std::string_view) override {}
  void on_step(const std::string&, const Step&, const KnownGraphPtr&) override {}

 private:
  const Log log_;
};

}  // namespace tt
