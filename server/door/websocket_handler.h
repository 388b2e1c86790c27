// What a user of the door sees of WebSocket: clients by number, whole messages,
// no type of the library underneath.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tt {

// Names one WebSocket connection; never reused while the process lives.
enum class ClientId : std::uint64_t {};

enum class Opcode : std::uint8_t { Text, Binary };

// The HTTP request that asked to become a WebSocket.
struct Upgrade {
  std::string request_id{};  // in the answer's X-Request-Id, too
  std::string path;          // as sent, up to '?'
  std::string query;         // after '?', not decoded; empty when there is none
  // In order, names as sent; without what the client is known by.
  std::vector<std::pair<std::string, std::string>> headers;
};

// Receives what clients do. All calls come from the one WebSocket thread, so
// they must not block; per client they are on_open, then any of the others,
// then on_close once. Door::send, close and pause may be called from inside.
class WebSocketHandler {
 public:
  virtual ~WebSocketHandler() = default;
  virtual void on_open(ClientId client, const Upgrade& upgrade) = 0;
  // One whole message, put together from its fragments; valid during the call.
  // Text is valid UTF-8.
  virtual void on_message(ClientId client, std::span<const std::byte> message, Opcode opcode) = 0;
  // Gone, for whatever reason; the id is not valid any more after the call.
  virtual void on_close(ClientId client) = 0;
};

// One client's outgoing queue.
struct ClientStats {
  std::size_t queued_bytes = 0;  // waiting here; the kernel's buffers not counted
  std::uint64_t sent = 0;        // frames given to the socket
  std::uint64_t lost = 0;        // frames refused because the queue was full
};

}  // namespace tt
