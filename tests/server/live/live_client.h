// A live client of the real server on a plain socket. Reads only when called, and acknowledges
// received bytes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/live/live_transcript.h"

namespace tt::test {

class LiveClient {
 public:
  using json = nlohmann::json;

  explicit LiveClient(std::uint16_t port, int receive_buffer_bytes = 0);

  bool acknowledges = true;
  std::uint64_t received() const { return received_; }
  WsClient& socket() { return socket_; }

  void send_command(const json& message) { socket_.send(kText, message.dump()); }
  // The next message; opcode -1 or kClose: the connection was closed.
  WsFrame read();
  // The next text message.
  json read_event();
  // Reads one message and adds it when it belongs to `session`. False: the connection was closed.
  bool receive(const std::string& session, LiveTranscript& transcript);
  void receive_all(const std::string& session, LiveTranscript& transcript);

 private:
  WsClient socket_;
  std::uint64_t received_ = 0, acknowledged_ = 0;
};

}  // namespace tt::test
