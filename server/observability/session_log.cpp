#include "server/observability/session_log.h"

namespace tt {

void SessionLog::on_state(const JobStatus& status) {
  if (status.state == JobState::Queued) return;  // repeated whenever the queue position changes
  if (status.stops > 0 && !has_ended(status.state)) return;  // a stop begins or ends
  if (status.state == JobState::Running) {
    return log_.info("the session has started", {{"session", status.id}, {"model", status.model}});
  }
  const RecordingResult& recording = status.recording;
  const bool whole = status.error.empty() && recording.losses == LossCounters{};
  log_.write(whole ? LogLevel::Info : LogLevel::Warning, "the session has ended",
             {{"session", status.id},
              {"model", status.model},
              {"state", to_text(status.state)},
              {"reason", to_text(status.stop_reason)},
              {"prompt_tokens", status.prompt_tokens},
              {"reused_tokens", status.reused_tokens},
              {"generated", status.generated},
              {"prompt_ms", status.prompt_ns / 1'000'000},
              {"generate_ms", status.generate_ns / 1'000'000},
              {"steps", recording.steps},
              {"bytes", recording.file_bytes},
              {"steps_without_times", recording.losses.steps_without_times},
              {"steps_not_written", recording.losses.steps_not_written},
              {"error", status.error}});
}

}  // namespace tt
