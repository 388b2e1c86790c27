// A simulated live client for unit tests of LiveClients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/server/live/live_clients_harness.h"

namespace tt::test {

inline constexpr ClientId kMe{1}, kOther{2};
inline const json kAllKinds = {"token", "step", "op", "routing", "progress"};

inline json subscribe(const json& kinds, const json& more = json::object()) {
  json command = {{"type", "subscribe"}, {"session", "a"}, {"kinds", kinds}};
  command.update(more);
  return command;
}

// A client with several successive connections; reads when called.
struct SimulatedLiveClient {
  LiveClientsHarness& harness;
  std::uint32_t connections;  // id of the current connection; its start value is unique per client
  ClientId id{};
  bool batches = false;  // receives the text messages of a turn as one array
  bool connected = false;
  std::uint64_t received = 0;
  LiveTranscript transcript{};

  void connect(const json& kinds, const json& more) {
    id = ClientId{++connections};
    connected = true;
    received = 0;
    harness.clients.opened(id, {.batches = batches});
    json command = subscribe(kinds, more);
    if (!transcript.at.is_null()) command["from"] = transcript.at;
    harness.send_command(id, command);
  }
  // Receives up to `most` of the sent messages.
  void read(std::size_t max_messages) {
    auto& box = harness.outbox[id];
    const std::size_t count = std::min(max_messages, box.size());
    for (std::size_t i = 0; i < count; ++i) {
      received += box[i].bytes.size();
      if (box[i].opcode == Opcode::Binary) {
        transcript.add_frame(box[i].bytes);
      } else if (const json message = LiveClientsHarness::event_of(box[i]); batches) {
        for (const json& event : message) transcript.add(event);
      } else {
        transcript.add(message);
      }
    }
    box.erase(box.begin(), box.begin() + static_cast<std::ptrdiff_t>(count));
  }
  void acknowledge() { harness.send_command(id, {{"type", "ack"}, {"bytes", received}}); }
  // Drops the connection and all messages in transit.
  void disconnect() {
    harness.clients.closed(id);
    harness.outbox.erase(id);
    connected = false;
  }
};

}  // namespace tt::test
