// WebSocket interface of the HTTP front end: clients by id and complete messages, independent
// of libwebsockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tt {

// Identifies one WebSocket connection; never reused in a process.
enum class ClientId : std::uint64_t {};

enum class Opcode : std::uint8_t { Text, Binary };

// The HTTP upgrade request of a WebSocket.
struct Upgrade {
  std::string request_id{};  // also in the X-Request-Id response header
  std::string path;          // as sent, up to '?'
  std::string query;         // after '?', not decoded; may be empty
  // In order, names as sent; without Authorization and Cookie.
  std::vector<std::pair<std::string, std::string>> headers;
};

// Receives WebSocket events. All calls come from the WebSocket thread and must not block. Per
// client: on_open first, then on_message, then on_close once. HttpFrontend::send, close and pause
// may be called from these functions.
class WebSocketHandler {
 public:
  virtual ~WebSocketHandler() = default;
  virtual void on_open(ClientId client, const Upgrade& upgrade) = 0;
  // One complete message, reassembled from its fragments; valid during the call. Text is valid
  // UTF-8.
  virtual void on_message(ClientId client, std::span<const std::byte> message, Opcode opcode) = 0;
  // The connection has ended for any reason; the id is not valid after the call.
  virtual void on_close(ClientId client) = 0;
};

// One client's outgoing queue.
struct ClientStats {
  std::size_t queued_bytes = 0;  // without the kernel's buffers
  std::uint64_t sent = 0;        // frames passed to the socket
  std::uint64_t lost = 0;        // frames dropped because the queue was full
};

}  // namespace tt
