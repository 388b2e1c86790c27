// A live client of the real server, made of a plain socket: reads when the test
// says so, and acknowledges as a good client does.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/server/live_heard.h"
#include "tests/server_door/raw_client.h"

namespace tt::test {

class LiveListener {
 public:
  using json = nlohmann::json;

  explicit LiveListener(std::uint16_t port, int receive_buffer_bytes = 0)
      : socket_(port, "", receive_buffer_bytes) {
    EXPECT_EQ(socket_.handshake().status, 101);
  }

  bool acknowledges = true;
  std::uint64_t received() const { return received_; }
  WsClient& socket() { return socket_; }

  void say(const json& message) { socket_.send(kText, message.dump()); }
  // The next message; opcode -1 or kClose: the connection ended.
  WsFrame read() {
    for (;;) {
      WsFrame frame = socket_.read();
      if (frame.opcode == kPing) {
        socket_.send(kPong, frame.payload);
        continue;
      }
      if (frame.opcode == kText || frame.opcode == kBinary) {
        received_ += frame.payload.size();
        if (acknowledges && received_ - acknowledged_ >= 128 << 10) {
          acknowledged_ = received_;
          say({{"type", "ack"}, {"bytes", received_}});
        }
      }
      return frame;
    }
  }
  // The next text message.
  json read_event() {
    for (;;) {
      const WsFrame frame = read();
      if (frame.opcode == kText) return json::parse(frame.payload);
      if (frame.opcode != kBinary) {
        ADD_FAILURE() << "the connection ended with frame " << frame.opcode;
        return {};
      }
    }
  }
  // Reads one message into what was heard of `session`; false: the connection ended.
  bool hear(const std::string& session, Heard& heard) {
    const WsFrame frame = read();
    if (frame.opcode == kBinary) {
      heard.add_frame(frame.payload);
    } else if (frame.opcode == kText) {
      const json event = json::parse(frame.payload);
      EXPECT_NE(event["type"], "error") << event;
      if (event.value("session", "") == session) heard.add(event);
    } else {
      return false;
    }
    return true;
  }
  void hear_to_the_end(const std::string& session, Heard& heard) {
    while (!heard.ended() && !::testing::Test::HasFatalFailure()) {
      if (!hear(session, heard)) {
        ADD_FAILURE() << "the connection ended before the session";
        return;
      }
    }
  }

 private:
  WsClient socket_;
  std::uint64_t received_ = 0, acknowledged_ = 0;
};

}  // namespace tt::test
