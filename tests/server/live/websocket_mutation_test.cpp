// 10,000 mutated WebSocket frames of real commands: each connection closes, the server sends
// only frames and messages of api/live.md, and it still works afterwards.
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <print>
#include <set>
#include <thread>
#include <vector>

#include "tests/server/http/mutator.h"
#include "tests/server/support/test_server.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

constexpr std::size_t kFrames = 10'000;
constexpr std::size_t kSockets = 4;

// The parts of a frame that mutations change.
struct FrameParts {
  int opcode = kText;
  bool fin = true, masked = true;
  std::size_t reserved = 0;      // the three RSV bits
  std::size_t length_bytes = 0;  // extended length: 2 or 8; 0: the shortest form
  std::uint64_t longer_by = 0;   // bytes announced, but not sent
  std::string payload{};

  std::string text(std::uint32_t mask) const {
    const std::uint64_t length = payload.size() + longer_by;
    const std::size_t extra = length_bytes != 0 ? length_bytes
                              : length < 126    ? 0
                              : length < 65536  ? 2
                                                : 8;
    const auto byte = [](std::uint64_t value) { return static_cast<char>(value & 0xff); };
    std::string out(1, byte((fin ? 0x80u : 0u) | reserved << 4 | static_cast<std::size_t>(opcode)));
    out += byte((masked ? 0x80u : 0u) | (extra == 0 ? length : extra == 2 ? 126u : 127u));
    for (std::size_t i = extra; i > 0; --i) out += byte(length >> (8 * (i - 1)));
    if (!masked) return out + payload;
    for (int shift = 24; shift >= 0; shift -= 8) out += byte(mask >> shift);
    for (std::size_t i = 0; i < payload.size(); ++i) {
      out += static_cast<char>(payload[i] ^ byte(mask >> (24 - 8 * (i % 4))));
    }
    return out;
  }
};

std::string mutated_payload(Mutator& mutator, std::string_view command) {
  constexpr std::array<std::string_view, 6> kPayloads = {
      "", "\xc3\x28", "\xed\xa0\x80", "{}", "[[[[", "{\"type\":\"subscribe\"}"};
  if (mutator.once_in(200)) return std::string((1u << 20) + mutator.below(3), ' ');
  if (mutator.once_in(30)) return std::string(mutator.below(70'000), '[');
  if (mutator.once_in(8)) {
    return std::string(mutator.one_of(std::span<const std::string_view>(kPayloads)));
  }
  if (mutator.once_in(3)) return mutator.bytes(std::string(command), "{\"kinds\":[\"op\"]}");
  return mutator.document(json::parse(command))
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

// The bytes of one mutated frame or of its fragments.
std::string mutated_frame(Mutator& mutator, std::string_view command) {
  FrameParts frame;
  frame.payload = mutator.once_in(3) ? command : mutated_payload(mutator, command);
  const auto mask = static_cast<std::uint32_t>(mutator.below(std::size_t{1} << 32));
  switch (mutator.below(12)) {
    case 0:
      frame.opcode = static_cast<int>(mutator.below(16));
      break;
    case 1:
      frame.reserved = 1 + mutator.below(7);
      break;
    case 2:
      frame.masked = false;
      break;
    case 3:
      frame.length_bytes = mutator.once_in(2) ? 2 : 8;
      break;
    case 4:
      frame.longer_by = mutator.once_in(2) ? 1 + mutator.below(64) : std::uint64_t{1} << 62;
      break;
    case 5:
      frame.opcode = mutator.once_in(2) ? kPing : kPong;
      if (!mutator.once_in(3)) frame.payload.resize(mutator.below(130));
      break;
    case 6: {
      // Any close code, with or without its second byte and a reason.
      const std::size_t code = mutator.once_in(2) ? 1000 + mutator.below(20) : mutator.below(65536);
      frame.opcode = kClose;
      frame.payload = {static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
      if (mutator.once_in(2)) frame.payload += mutator.once_in(2) ? "why" : "\xff\xfe";
      if (mutator.once_in(4)) frame.payload.resize(1);
      break;
    }
    case 7: {
      // Fragments, sometimes with a control frame or a new message between them.
      FrameParts rest{.opcode = mutator.once_in(4) ? kText : kContinuation};
      const std::size_t cut = mutator.below(frame.payload.size() + 1);
      rest.payload = frame.payload.substr(cut);
      frame.payload.resize(cut);
      frame.fin = false;
      const FrameParts between{.opcode = kPing};
      return frame.text(mask) + (mutator.once_in(2) ? between.text(mask) : "") + rest.text(mask);
    }
    case 8:
      frame.fin = false;  // never finished
      break;
    default:
      break;
  }
  const std::string text = frame.text(mask);
  return mutator.once_in(6) ? mutator.bytes(text, text) : text;
}

std::string live_protocol() {
  std::ifstream file(source_path("api/live.md"));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Decompresses one message of the server without context; "" when it is damaged.
std::string decompress(std::string bytes) {
  bytes += std::string_view("\0\0\xff\xff", 4);
  std::string text(1 << 20, '\0');
  z_stream stream{};
  inflateInit2(&stream, -15);
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  const bool valid = inflate(&stream, Z_SYNC_FLUSH) == Z_OK && stream.avail_in == 0;
  text.resize(valid ? text.size() - stream.avail_out : 0);
  inflateEnd(&stream);
  return text;
}

// How a frame of the server violates the protocol; empty: it conforms.
std::string protocol_violation(const WsFrame& frame, std::string_view protocol) {
  const auto described = [&](const std::string& word) {
    return protocol.contains("`" + word + "`") || protocol.contains("\"" + word + "\"");
  };
  switch (frame.opcode) {
    case kText: {
      const json message = json::parse(frame.payload, nullptr, false);
      if (!message.is_object() || !message.value("type", json()).is_string()) {
        return "a message without a type: " + frame.payload.substr(0, 100);
      }
      if (!described(message["type"])) return "an undocumented message: " + message.dump();
      if (message["type"] == "error" && !described(message.value("code", "none"))) {
        return "an undocumented error: " + message.dump();
      }
      return {};
    }
    case kBinary:
      return frame.payload.starts_with("TTF1") ? "" : "a frame without the magic number";
    case kClose: {
      if (frame.payload.empty()) return {};
      if (frame.payload.size() < 2) return "incomplete close code";
      const int code = static_cast<unsigned char>(frame.payload[0]) << 8 |
                       static_cast<unsigned char>(frame.payload[1]);
      // Codes that may be sent (RFC 6455, 7.4); 3000 and above are echoed.
      const std::set<int> known = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011};
      return known.contains(code) || code >= 3000 ? "" : std::format("close code {}", code);
    }
    case kPing:
    case kPong:
      return frame.payload.size() <= 125 ? "" : "a control frame that is too long";
    default:
      return std::format("opcode {}", frame.opcode);
  }
}

TEST(WebSocketMutation, EveryConnectionClosesAndServerKeepsRunning) {
  ensure_backends_loaded();
  TestServerOptions options;
  options.context = {.context = 512, .batch = 512, .ubatch = 512, .threads = 1};
  options.frontend.websocket_deflate = true;
  TestServer server(options);
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string protocol = live_protocol();
  ASSERT_TRUE(protocol.contains("subscribed"));
  const char* given = std::getenv("TT_SEED");
  const std::uint64_t seed = given == nullptr ? 20261121 : std::strtoull(given, nullptr, 10);
  std::println("TT_SEED={}", seed);
  const auto began = std::chrono::steady_clock::now();

  std::atomic<bool> over = false;
  // Produces events for the subscribed clients.
  std::jthread generating([&] {
    while (!over) {
      server.wait_for_end(server.generate({{"prompt", "Once"}, {"max_tokens", 8}}));
    }
  });

  std::mutex mutex;
  std::map<std::string, std::size_t> violations;
  std::map<int, std::size_t> answers;  // by opcode
  std::atomic<std::size_t> made = 0;
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::size_t> compressed = 0;
  const auto note = [&](const std::string& text) {
    const std::scoped_lock lock(mutex);
    ++violations[text];
  };
  // All commands: for all sessions, for a recorded one and for an unknown one.
  const std::string recorded = server.generate({{"prompt", "Once"}, {"max_tokens", 8}});
  ASSERT_EQ(server.wait_for_end(recorded)["state"], "done");
  const std::array<std::string, 7> messages = {
      R"({"type":"subscribe","session":"*","kinds":["token","step","op","progress"]})",
      R"({"type":"subscribe","session":")" + recorded +
          R"(","kinds":["step","op","routing"],"thin":"latest",)"
          R"("from":{"token":0,"step":1,"op":2,"routing":0}})",
      R"({"type":"subscribe","session":"20261121-000000-abcdef","kinds":[]})",
      R"({"type":"ack","bytes":4096})",
      R"({"type":"unsubscribe","session":"*"})",
      R"({"type":"unsubscribe","session":")" + recorded + R"("})",
      R"({"type":"unsubscribe","session":"x"})"};
  const std::vector<std::string_view> commands(messages.begin(), messages.end());

  const auto one_connection = [&](Mutator& mutator) {
    ++connections;
    RawClient raw(server.port);
    std::string handshake = upgrade_request(
        "/api/v1/live",
        mutator.once_in(2) ? "Sec-WebSocket-Extensions: permessage-deflate\r\n" : "");
    const bool damaged = mutator.once_in(10);
    if (damaged) handshake = mutator.bytes(handshake, handshake);
    std::string sent;
    for (std::size_t left = 1 + mutator.below(6); left > 0 && made < kFrames; --left, ++made) {
      const auto command = mutator.one_of(std::span<const std::string_view>(commands));
      if (mutator.once_in(2)) sent += FrameParts{.payload = std::string(command)}.text(0x1234);
      sent += mutated_frame(mutator, command);
    }
    // The frames are sent with the handshake, after it, or in two parts. An incomplete handshake
    // gets a response only after the client has closed its side.
    const std::size_t cut = damaged              ? sent.size()
                            : mutator.once_in(3) ? mutator.below(sent.size() + 1)
                                                 : 0;
    raw.send(handshake + sent.substr(0, cut));
    if (damaged) raw.shutdown_write();
    const RawResponse answer = raw.read_response();
    raw.send(std::string_view(sent).substr(cut));
    raw.shutdown_write();
    if (answer.status == 101) {
      WsClient socket(std::move(raw));
      for (WsFrame frame = socket.read(); frame.opcode != -1; frame = socket.read()) {
        if (frame.deflated) {
          frame.payload = decompress(frame.payload);
          ++compressed;
        }
        const std::string wrong = protocol_violation(frame, protocol);
        if (!wrong.empty()) note(wrong);
        const std::scoped_lock lock(mutex);
        ++answers[frame.opcode];
      }
      if (!socket.raw().closed_within(20s)) note("a connection is not closed");
    } else if (!raw.closed_within(20s)) {
      note(std::format("a connection rejected with {} is not closed", answer.status));
    }
  };

  std::vector<std::jthread> clients;
  for (std::size_t number = 0; number < kSockets; ++number) {
    clients.emplace_back([&, number] {
      Mutator mutator(seed + number);
      while (made < kFrames) one_connection(mutator);
    });
  }
  clients.clear();
  over = true;
  generating.join();

  for (const auto& [opcode, count] : answers) std::println("{:6} x opcode {}", count, opcode);
  std::println("{} frames on {} connections ({} answers compressed) in {:.1f} s", made.load(),
               connections.load(), compressed.load(),
               std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  for (const auto& [wrong, count] : violations) ADD_FAILURE() << count << " x " << wrong;

  EXPECT_EQ(server.get("/api/v1/health").status, 200);
  LiveClient listener(server.port);
  EXPECT_EQ(listener.read_event()["type"], "hello");
  const std::string id = server.generate({{"prompt", "Once"}, {"max_tokens", 3}});
  EXPECT_EQ(server.wait_for_end(id)["state"], "done");
}

}  // namespace
}  // namespace tt::test
