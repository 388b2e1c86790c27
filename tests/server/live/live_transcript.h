// Everything one live client received of one session over all of its connections: the rows,
// assembled as api/live.md specifies, and the position for resuming. Fails the test for a gap,
// a duplicate or a wrong order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "api/live/live_frames.h"

namespace tt::test {

struct ReceivedOps {
  std::vector<Ns> begin, end;
  bool complete = false;
  friend bool operator==(const ReceivedOps&, const ReceivedOps&) = default;
};
// Layer, token, expert, rank, score; -1 when the score was not recorded.
using ReceivedRoute = std::tuple<std::int32_t, std::uint32_t, std::uint32_t, std::uint32_t, float>;

class LiveTranscript {
 public:
  using json = nlohmann::json;

  // All rows; equal for two clients that received the same.
  std::vector<json> tokens, steps;  // without "type"
  std::string text;                 // the generated text
  std::map<std::uint32_t, ReceivedOps> ops;
  std::map<std::uint32_t, std::vector<ReceivedRoute>> routing;

  std::vector<std::string> states;
  std::vector<json> progress;
  json lost = json::object();  // the last loss
  std::uint32_t number = 0;    // of the subscription
  json at;                     // position for resuming
  int partial_frames = 0, withdrawn = 0;
  bool gaps_allowed = false;  // the client subscribed with "thin"

  bool ended() const;
  bool same_rows(const LiveTranscript& other) const;

  void add(const json& event);

  void add_frame(std::span<const std::byte> bytes);
  void add_frame(const std::string& payload) { add_frame(std::as_bytes(std::span(payload))); }

 private:
  void expect_next(const char* place, std::uint32_t index);
  void advance_to(std::uint32_t step);

  void add(const OpsFrame& frame);

  void add(const RoutingFrame& frame);
};

}  // namespace tt::test
