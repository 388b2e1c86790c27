// LiveClients with fakes controlled by the test: a front end that can be full, a step in
// flight, and a session file that is read on demand.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "server/live/live_clients.h"
#include "tests/server/live/live_transcript.h"

namespace tt::test {

using nlohmann::json;

// A graph with one layer that routes each token to two experts.
KnownGraphPtr routed_graph();

struct LiveClientsHarness {
  explicit LiveClientsHarness(LiveLimits limits = {});

  void state(const std::string& id, JobState job_state);
  void send_command(ClientId id, const json& message) {
    clients.handle_message(id, message.dump());
  }
  // Text messages sent since the last call.
  std::vector<json> events(ClientId id);
  std::vector<std::string> types(ClientId id);
  static json event_of(const LiveMessage& message);
  // Serves up to `max_records` records of the oldest read request.
  void serve_read_request(std::size_t max_records = 3);
  // Reports a token or step, and writes it to the file at the same time.
  void token(const std::string& session);
  void step(const std::string& session, const Step& step);

  bool send_queue_full = false;
  std::map<ClientId, std::vector<LiveMessage>> outbox;
  std::map<ClientId, std::uint16_t> closed;
  std::map<ClientId, std::chrono::milliseconds> paused;
  std::map<std::string, JobStatus> statuses;
  std::optional<StepInFlight> in_flight_step;
  std::deque<BackfillRequest> requests;
  bool has_file = true;
  SessionState file_state = SessionState::Running;
  std::vector<Token> file_tokens;
  std::vector<Step> file_steps;
  LiveCallbacks::Clock::time_point now{};
  LiveClients clients;
};

// A step with routing of its one token and a distinct time for each op.
Step live_step(std::uint32_t id, std::size_t ops);

StepInFlight partial_step(const std::string& session, const Step& step, std::size_t ops);

}  // namespace tt::test
