// Status of queued requests and of the loading model, as values for the server and the
// command line.
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
  std::string id;              // session id
  std::string model;           // GenerationQueue::Options::name
  std::uint32_t n_layers = 0;  // of the model
  JobState state = JobState::Queued;
  std::uint32_t position = 0;  // number of requests before it; 0: running or next
  std::uint32_t prompt_tokens = 0, prompt_done = 0, reused_tokens = 0;
  std::uint32_t generated = 0, max_tokens = 0;
  std::string text;  // so far
  // Of a request that may stop (GenerationRequest::debug): where it is stopped, empty: it runs; and
  // how often it has been.
  std::string stopped{};
  std::uint64_t stops = 0;
  std::string stopped_ahead{};  // while it is queued: where the running request is stopped
  StopReason stop_reason = StopReason::None;
  std::string error;
  std::chrono::steady_clock::time_point submitted;
  // Set when it has ended.
  std::uint32_t steps = 0;  // graphs evaluated
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
  std::string warning{};  // for the user; empty: none
  // Failed because of the file: trying again does not help.
  bool is_refused = false;
};

}  // namespace tt
