// Clients on plain sockets: a test controls which bytes are sent and when, so that malformed
// and misbehaving peers can be tested.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tt::test {

struct RawResponse {
  int status = 0;                              // 0: the connection was closed
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;
};

class RawClient {
 public:
  RawClient();  // not connected
  explicit RawClient(std::uint16_t port, int receive_buffer_bytes = 0);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient& operator=(RawClient&&) = delete;

  // A client with this source address: 127.0.0.2 is another peer than 127.0.0.1.
  static RawClient from(const std::string& address, std::uint16_t port);
  void connect(std::uint16_t port, const std::string& host = "127.0.0.1");
  void send(std::string_view bytes);  // errors of the connection are ignored
  // The next response except 1xx. A response to HEAD has no body.
  RawResponse read_response(std::string_view method = "GET");
  RawResponse exchange(std::string_view bytes) {
    send(bytes);
    return read_response();
  }
  // Exactly `count` bytes; fewer when the peer closes or after 10 s.
  std::string read(std::size_t count);
  std::string read_until(std::string_view end);
  // Received bytes that this class has not read from the socket yet.
  std::size_t unread_bytes() const;
  // Whether the peer's program has read every sent byte (peeking does not count). The peer must
  // run in the same network namespace.
  bool peer_has_read_all() const;
  // True when the peer closes the connection within `time`. Discards input.
  bool closed_within(std::chrono::milliseconds time);
  void shutdown_write();  // half-close
  void reset();           // closes with an RST

 private:
  bool receive(std::chrono::milliseconds time);

  int fd_ = -1;
  std::string input_;
};

// "GET /path HTTP/1.1" with an accepted Host and `more_headers`.
std::string get_request(std::string_view path, std::string_view more_headers = "");
std::string upgrade_request(std::string_view path = "/api/v1/live",
                            std::string_view more_headers = "");

bool accepts_connections(std::uint16_t port);

// Returns when the front end has handled everything that clients sent before. It handles input
// in the order of arrival, so this makes a request on a new connection.
void wait_until_input_handled(std::uint16_t port);

struct WsFrame {
  int opcode = -1;  // -1: the connection was closed
  bool fin = true;
  bool deflated = false;  // RSV1 (RFC 7692)
  std::string payload;
};

inline constexpr int kContinuation = 0;
inline constexpr int kText = 1;
inline constexpr int kBinary = 2;
inline constexpr int kClose = 8;
inline constexpr int kPing = 9;
inline constexpr int kPong = 10;

// A RawClient after the WebSocket handshake.
class WsClient {
 public:
  explicit WsClient(std::uint16_t port, std::string_view more_headers = "",
                    int receive_buffer_bytes = 0);
  explicit WsClient(RawClient raw) : raw_(std::move(raw)) {}

  const RawResponse& handshake() const { return handshake_; }
  void send(int opcode, std::string_view payload, bool fin = true, bool deflated = false);
  WsFrame read();
  // Reads a close frame and replies with one. Returns the peer's close code; 0: none.
  int expect_close();
  RawClient& raw() { return raw_; }

 private:
  RawClient raw_;
  RawResponse handshake_;
};

}  // namespace tt::test
