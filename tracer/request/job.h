// What the queue says about requests and about the model it loads: values,
// shown by the server and the command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tracer/request/generation.h"

namespace tt {

enum class JobState : std::uint8_t { Queued, Running, Done, Cancelled, Failed };
const char* to_text(JobState);
inline bool has_ended(JobState state) { return state > JobState::Running; }

struct JobStatus {
  std::string id;              // the session's
  std::string model;           // that it asks; as GenerationQueue::Options::name says
  std::uint32_t n_layers = 0;  // of the model
  JobState state = JobState::Queued;
  std::uint32_t position = 0;  // requests before it; 0: running or next
  std::uint32_t prompt_tokens = 0, prompt_done = 0, reused_tokens = 0;
  std::uint32_t generated = 0, max_tokens = 0;
  std::string text;  // so far
  StopReason stop_reason = StopReason::None;
  std::string error;
  std::chrono::steady_clock::time_point submitted;
  // Once it has ended, as far as it ran.
  std::uint32_t steps = 0;  // graphs that were evaluated
  std::int64_t prompt_ns = 0, generate_ns = 0;
  RecordingResult recording;
};

struct SubmitError {
  enum class Kind { NotReady, LoadFailed, Changed, Full, BadRequest, TooLong, Stopping };
  Kind kind;
  std::string message;
};

struct LoadState {
  enum class Phase : std::uint8_t { Loading, Ready, Failed } phase = Phase::Loading;
  float progress = 0;  // 0..1
  std::string error;
  std::string warning{};  // the library does not behave as tested
};

}  // namespace tt
