// Clients made of plain sockets, so that a test decides which bytes travel when
// and a malformed or rude peer is as easy as a good one.
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
  int status = 0;                              // 0: the connection ended instead
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;
};

class RawClient {
 public:
  RawClient();  // a socket, not connected yet
  explicit RawClient(std::uint16_t port, int receive_buffer_bytes = 0);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient& operator=(RawClient&&) = delete;

  // One that comes from this address: 127.0.0.2 is another peer than 127.0.0.1.
  static RawClient from(const std::string& address, std::uint16_t port);
  void connect(std::uint16_t port, const std::string& host = "127.0.0.1");
  void send(std::string_view bytes);  // a broken connection is not an error here
  // The next response, 1xx ones left out. For HEAD there is no body.
  RawResponse read_response(std::string_view method = "GET");
  RawResponse exchange(std::string_view bytes) {
    send(bytes);
    return read_response();
  }
  // Exactly `count` bytes, fewer when the peer ends or 10 s pass.
  std::string read(std::size_t count);
  std::string read_until(std::string_view end);
  // True when the peer ends the connection within the time; input is discarded.
  bool ended_within(std::chrono::milliseconds time);
  void end_output();  // half-close
  void reset();       // close so that the peer gets an RST

 private:
  bool receive(std::chrono::milliseconds time);

  int fd_ = -1;
  std::string input_;
};

// "GET /path HTTP/1.1" with a Host that the door accepts, and more headers.
std::string get_request(std::string_view path, std::string_view more_headers = "");
std::string upgrade_request(std::string_view path = "/api/v1/live",
                            std::string_view more_headers = "");

struct WsFrame {
  int opcode = -1;  // -1: the connection ended
  bool fin = true;
  bool deflated = false;  // the first of the reserved bits (RFC 7692)
  std::string payload;
};

inline constexpr int kContinuation = 0;
inline constexpr int kText = 1;
inline constexpr int kBinary = 2;
inline constexpr int kClose = 8;
inline constexpr int kPing = 9;
inline constexpr int kPong = 10;

// A RawClient after the 101.
class WsClient {
 public:
  explicit WsClient(std::uint16_t port, std::string_view more_headers = "",
                    int receive_buffer_bytes = 0);
  explicit WsClient(RawClient raw) : raw_(std::move(raw)) {}

  const RawResponse& handshake() const { return handshake_; }
  void send(int opcode, std::string_view payload, bool fin = true, bool deflated = false);
  WsFrame read();
  // Answers a close with a close; the code that the peer gave, 0 for none.
  int expect_close();
  RawClient& raw() { return raw_; }

 private:
  RawClient raw_;
  RawResponse handshake_;
};

}  // namespace tt::test
