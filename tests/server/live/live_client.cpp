#include "tests/server/live/live_client.h"

#include <gtest/gtest.h>

namespace tt::test {

LiveClient::LiveClient(std::uint16_t port, int receive_buffer_bytes)
    : socket_(port, "", receive_buffer_bytes) {
  EXPECT_EQ(socket_.handshake().status, 101);
}

WsFrame LiveClient::read() {
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
        send_command({{"type", "ack"}, {"bytes", received_}});
      }
    }
    return frame;
  }
}

LiveClient::json LiveClient::read_event() {
  for (;;) {
    const WsFrame frame = read();
    if (frame.opcode == kText) return json::parse(frame.payload);
    if (frame.opcode != kBinary) {
      ADD_FAILURE() << "the connection was closed with opcode " << frame.opcode;
      return {};
    }
  }
}

bool LiveClient::receive(const std::string& session, LiveTranscript& transcript) {
  const WsFrame frame = read();
  if (frame.opcode == kBinary) {
    transcript.add_frame(frame.payload);
  } else if (frame.opcode == kText) {
    const json event = json::parse(frame.payload);
    EXPECT_NE(event["type"], "error") << event;
    if (event.value("session", "") == session) transcript.add(event);
  } else {
    return false;
  }
  return true;
}

void LiveClient::receive_all(const std::string& session, LiveTranscript& transcript) {
  while (!transcript.ended() && !::testing::Test::HasFatalFailure()) {
    if (!receive(session, transcript)) {
      ADD_FAILURE() << "the connection was closed before the session ended";
      return;
    }
  }
}

}  // namespace tt::test
