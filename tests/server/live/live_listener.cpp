#include "tests/server/live/live_listener.h"

#include <gtest/gtest.h>

namespace tt::test {

LiveListener::LiveListener(std::uint16_t port, int receive_buffer_bytes)
    : socket_(port, "", receive_buffer_bytes) {
  EXPECT_EQ(socket_.handshake().status, 101);
}

WsFrame LiveListener::read() {
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

LiveListener::json LiveListener::read_event() {
  for (;;) {
    const WsFrame frame = read();
    if (frame.opcode == kText) return json::parse(frame.payload);
    if (frame.opcode != kBinary) {
      ADD_FAILURE() << "the connection was closed with opcode " << frame.opcode;
      return {};
    }
  }
}

bool LiveListener::hear(const std::string& session, LiveHeard& heard) {
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

void LiveListener::hear_to_the_end(const std::string& session, LiveHeard& heard) {
  while (!heard.ended() && !::testing::Test::HasFatalFailure()) {
    if (!hear(session, heard)) {
      ADD_FAILURE() << "the connection was closed before the session ended";
      return;
    }
  }
}

}  // namespace tt::test
