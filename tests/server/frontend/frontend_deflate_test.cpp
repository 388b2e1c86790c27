// permessage-deflate in both directions; the client side uses zlib directly.
#include <gtest/gtest.h>
#include <zlib.h>

#include <format>
#include <random>
#include <string>
#include <string_view>

#include "tests/server/frontend/raw_client.h"
#include "tests/server/frontend/test_frontend.h"
#include "tests/support/command_output.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

constexpr const char* kOffer = "Sec-WebSocket-Extensions: permessage-deflate\r\n";

HttpFrontendOptions with_deflate() {
  HttpFrontendOptions options;
  options.websocket_deflate = true;
  return options;
}

std::string negotiated_extension(const WsClient& client) {
  const auto found = client.handshake().headers.find("sec-websocket-extensions");
  return found == client.handshake().headers.end() ? "" : found->second;
}

// The client's compression state; keeps the context of both directions.
class Stream {
 public:
  Stream() {
    deflateInit2(&out_, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    inflateInit2(&in_, -15);
  }
  ~Stream() {
    deflateEnd(&out_);
    inflateEnd(&in_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  std::string compress(std::string text) {
    if (text.empty()) return std::string(1, '\0');  // RFC 7692, 7.2.3.6
    std::string bytes(text.size() + 100, '\0');
    out_.next_in = reinterpret_cast<Bytef*>(text.data());
    out_.avail_in = static_cast<uInt>(text.size());
    out_.next_out = reinterpret_cast<Bytef*>(bytes.data());
    out_.avail_out = static_cast<uInt>(bytes.size());
    EXPECT_EQ(deflate(&out_, Z_SYNC_FLUSH), Z_OK);
    bytes.resize(bytes.size() - out_.avail_out);
    EXPECT_TRUE(bytes.ends_with(std::string_view("\0\0\xff\xff", 4)));
    bytes.resize(bytes.size() - 4);
    return bytes;
  }
  std::string decompress(std::string bytes) {
    bytes += std::string_view("\0\0\xff\xff", 4);
    std::string text(1 << 22, '\0');
    in_.next_in = reinterpret_cast<Bytef*>(bytes.data());
    in_.avail_in = static_cast<uInt>(bytes.size());
    in_.next_out = reinterpret_cast<Bytef*>(text.data());
    in_.avail_out = static_cast<uInt>(text.size());
    const int done = inflate(&in_, Z_SYNC_FLUSH);
    EXPECT_TRUE(done == Z_OK || done == Z_BUF_ERROR) << done;
    EXPECT_EQ(in_.avail_in, 0u);
    text.resize(text.size() - in_.avail_out);
    return text;
  }

 private:
  z_stream out_{}, in_{};
};

std::string compressible_text(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += std::format("{{\"event\": \"token\", \"index\": {}}}\n", i);
  return text;
}
std::string random_bytes(std::size_t size) {
  std::mt19937 random(1);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(FrontendDeflate, CompressesMessagesWhenSmaller) {
  TestFrontend server(with_deflate());
  WsClient client(server.port, kOffer);
  ASSERT_EQ(client.handshake().status, 101);
  EXPECT_EQ(negotiated_extension(client), "permessage-deflate");
  Stream stream;
  for (const std::string& text :
       {compressible_text(20), compressible_text(2000), std::string(1 << 20, 'x')}) {
    // First compressed with the context of earlier messages, then plain: both may be mixed.
    client.send(kText, stream.compress(text), true, true);
    const WsFrame frame = client.read();
    EXPECT_TRUE(frame.deflated);
    EXPECT_EQ(frame.opcode, kText);
    EXPECT_LT(frame.payload.size(), text.size() / 2);
    EXPECT_TRUE(stream.decompress(frame.payload) == text);
    client.send(kText, text);
    EXPECT_TRUE(stream.decompress(client.read().payload) == text);
  }
  for (const std::string& bytes : {std::string(), std::string("short"), random_bytes(70'000)}) {
    client.send(kBinary, stream.compress(bytes), true, true);
    const WsFrame frame = client.read();
    EXPECT_FALSE(frame.deflated);
    EXPECT_TRUE(frame.payload == bytes);
  }
  // In fragments around a ping: only the first fragment has the compression bit.
  const std::string text = compressible_text(300), bytes = stream.compress(text);
  client.send(kText, bytes.substr(0, 10), false, true);
  client.send(kPing, "?");
  client.send(kContinuation, bytes.substr(10));
  EXPECT_EQ(client.read().opcode, kPong);
  EXPECT_TRUE(stream.decompress(client.read().payload) == text);
}

TEST(FrontendDeflate, NegotiatesOnlySupportedParameters) {
  TestFrontend server(with_deflate());
  const auto answer = [&](const std::string& offers) {
    WsClient client(server.port, "Sec-WebSocket-Extensions: " + offers + "\r\n");
    EXPECT_EQ(client.handshake().status, 101) << offers;
    const std::string long_text = compressible_text(100);
    client.send(kText, long_text);
    const WsFrame frame = client.read();
    EXPECT_EQ(frame.deflated, !negotiated_extension(client).empty()) << offers;
    EXPECT_EQ(frame.payload == long_text, negotiated_extension(client).empty()) << offers;
    return negotiated_extension(client);
  };
  EXPECT_EQ(answer("permessage-deflate; client_max_window_bits"), "permessage-deflate");
  EXPECT_EQ(answer("x-other, permessage-deflate; server_no_context_takeover"),
            "permessage-deflate; server_no_context_takeover");
  EXPECT_EQ(answer("permessage-deflate; server_max_window_bits=10"), "");
  EXPECT_EQ(answer("permessage-deflate; mystery"), "");
  EXPECT_EQ(answer("permessage-deflate, permessage-deflate; client_max_window_bits"), "");
  EXPECT_EQ(answer("permessage-bzip2"), "");

  TestFrontend loopback;
  EXPECT_EQ(negotiated_extension(WsClient(loopback.port, kOffer)), "");
}

TEST(FrontendDeflate, ClosesOnInvalidCompressedMessage) {
  HttpFrontendOptions options = with_deflate();
  options.websocket_message_bytes = 100'000;
  TestFrontend server(options);
  const auto code_after = [&](const std::string& payload) {
    WsClient client(server.port, kOffer);
    client.send(kText, payload, true, true);
    return client.expect_close();
  };
  EXPECT_EQ(code_after(Stream().compress(std::string(100'001, 'x'))), 1009) << "in 130 bytes";
  EXPECT_EQ(code_after(Stream().compress(std::string(50'000'000, 'x'))), 1009);
  EXPECT_EQ(code_after("not a deflate stream"), 1007);
  EXPECT_EQ(code_after(Stream().compress("\xff\xfe")), 1007) << "not UTF-8";
  {
    WsClient plain(server.port);
    plain.send(kText, Stream().compress("not agreed on"), true, true);
    EXPECT_EQ(plain.expect_close(), 1002);
  }
  WsClient good(server.port, kOffer);
  good.send(kText, "still there");
  EXPECT_EQ(good.read().payload, "still there");
}

// Node and Python's websockets offer the extension by default.
TEST(FrontendDeflate, WorksWithNodeClient) {
  TestFrontend server(with_deflate());
  EXPECT_EQ(command_output(std::format(
                "node {} {}", source_path("tests/server/frontend/node_client.mjs"), server.port)),
            "ok\n");
}

}  // namespace
}  // namespace tt::test
