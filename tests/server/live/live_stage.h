// LiveClients with everything around it played by the test: a door with as much
// room as it says, a step in flight, and files that are read when it says.
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

// A graph with as many ops as anyone needs here and one layer that routes each
// token to two experts.
KnownGraphPtr routed_graph();

struct LiveStage {
  explicit LiveStage(LiveLimits limits = {});

  void state(const std::string& id, JobState job_state);
  void say(ClientId id, const json& message) { clients.said(id, message.dump()); }
  // What came since; text only.
  std::vector<json> events(ClientId id);
  std::vector<std::string> types(ClientId id);
  static json event_of(const LiveMessage& message);
  // Reads as much of the oldest request as the test says is a piece.
  void read_one(std::size_t most_records = 3);
  // A token or step happens, and is written at the same moment.
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

// With routing of its one token, and times that say which op it is.
Step live_step(std::uint32_t id, std::size_t ops);

StepInFlight part_of(const std::string& session, const Step& step, std::size_t ops);

}  // namespace tt::test
