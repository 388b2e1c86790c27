// A live client of the real server, made of a plain socket: reads when the test
// says so, and acknowledges as a good client does.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/server/door/raw_client.h"
#include "tests/server/live/live_heard.h"

namespace tt::test {

class LiveListener {
 public:
  using json = nlohmann::json;

  explicit LiveListener(std::uint16_t port, int receive_buffer_bytes = 0);

  bool acknowledges = true;
  std::uint64_t received() const { return received_; }
  WsClient& socket() { return socket_; }

  void say(const json& message) { socket_.send(kText, message.dump()); }
  // The next message; opcode -1 or kClose: the connection ended.
  WsFrame read();
  // The next text message.
  json read_event();
  // Reads one message into what was heard of `session`; false: the connection ended.
  bool hear(const std::string& session, LiveHeard& heard);
  void hear_to_the_end(const std::string& session, LiveHeard& heard);

 private:
  WsClient socket_;
  std::uint64_t received_ = 0, acknowledged_ = 0;
};

}  // namespace tt::test
