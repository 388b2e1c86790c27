// What the WebSocket service keeps of a client, and what libwebsockets is told. Private
// to websocket_service.cpp (clients, queues, the thread) and websocket_library.cpp (the
// library: its options, what it calls).
#pragma once

#include <libwebsockets.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "server/door/detail/websocket_service.h"

namespace tt::door {

// The first of a frame's reserved bits: its message is compressed.
inline constexpr unsigned char kDeflated = 0x40;

struct WebSocketService::Frame {
  Opcode opcode;
  std::vector<unsigned char> bytes;  // LWS_PRE bytes for the library, then the message

  // Its own cost, so that a queue of empty frames is bounded too.
  static constexpr std::size_t kOverhead = 64;

  std::size_t message_size() const { return bytes.size() - LWS_PRE; }
  std::size_t cost() const { return message_size() + kOverhead; }
};

struct WebSocketService::Client {
  ClientId id;
  Upgrade upgrade;
  std::string peer;          // peer_group()
  ConnectionPtr connection;  // until the library has its descriptor

  // The service thread's own.
  lws* wsi = nullptr;   // from the handshake on
  bool opened = false;  // the handler knows it
  std::vector<std::byte> inbox;
  Opcode inbox_opcode = Opcode::Binary;
  bool inbox_deflated = false;
  std::unique_ptr<Inflater> inflater;  // where it was agreed on
  bool sends_deflated = false;         // the frame that is being written
  std::chrono::steady_clock::time_point paused_until{};

  // Guarded by WebSocketService::mutex_.
  bool accepts = false;  // send() may queue
  bool write_ordered = false;
  std::uint16_t close_code = 0;       // say goodbye with it; 0: stay
  std::chrono::milliseconds pause{};  // ordered, and not begun
  std::deque<Frame> queue;
  ClientStats stats;
};

struct WebSocketService::Library {
  explicit Library(WebSocketService& owner);

  static int callback(lws* wsi, lws_callback_reasons reason, void* user, void* in,
                      std::size_t size);
  static int extension(lws_context* context, const lws_extension* extension, lws* wsi,
                       lws_extension_callback_reasons reason, void* user, void* in,
                       std::size_t size);
  static int add_headers(lws* wsi, const Client& client, lws_process_html_args& answer);
  static int hold_state(lws_state_manager_t* manager, lws_state_notify_link_t* link, int current,
                        int target);
  static void log_line(lws_log_cx* log, int level, const char* line, std::size_t size);

  lws_log_cx_t log{};
  lws_retry_bo_t keep_alive{};
  lws_state_notify_link_t state_link{};
  std::array<lws_state_notify_link_t*, 2> state_links{&state_link, nullptr};
  std::array<lws_protocols, 2> protocols{};
  std::array<lws_extension, 2> extensions{};
  lws_context_creation_info info{};
  lws_vhost* vhost = nullptr;
};

}  // namespace tt::door
