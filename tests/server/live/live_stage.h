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
#include "tests/server/live/live_heard.h"

namespace tt::test {

using nlohmann::json;

// A graph with one layer that routes each token to two experts.
KnownGraphPtr routed_graph();

struct LiveStage {
  explicit LiveStage(LiveLimits limits = {});

  void state(const std::string& id, JobState job_state);
  void say(ClientId id, const json& message) { clients.said(id, message.dump()); }
  // Text messages sent since the last call.
  std::vector<json> events(ClientId id);
  std::vector<std::string> types(ClientId id);
  static json event_of(const LiveMessage& message);
  // Serves up to `most_records` records of the oldest read request.
  void read_one(std::size_t most_records = 3);
  // Reports a token or step, and writes it to the file at the same time.
  void token(const std::string& session);
  void step(const std::string& session, const Step& step);

  bool door_is_full = false;
  std::map<ClientId, std::vector<LiveMessage>> outbox;
  std::map<ClientId, std::uint16_t> closed;
  std::map<ClientId, std::chrono::milliseconds> paused;
  std::map<std::string, JobStatus> statuses;
  std::optional<StepInFlight> flight;
  std::deque<ArchiveRequest> requests;
  bool has_file = true;
  SessionState file_state = SessionState::Running;
  std::vector<Token> file_tokens;
  std::vector<Step> file_steps;
  LivePorts::Clock::time_point now{};
  LiveClients clients;
};

// A step with routing of its one token and a distinct time for each op.
Step live_step(std::uint32_t id, std::size_t ops);

StepInFlight part_of(const std::string& session, const Step& step, std::size_t ops);

}  // namespace tt::test
