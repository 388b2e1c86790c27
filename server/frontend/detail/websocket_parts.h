// Internal types of the WebSocket service: clients, frames and the libwebsockets
// configuration. Private to websocket_service.cpp (clients, queues, thread) and
// websocket_library.cpp (options and callbacks of the library).
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

#include "server/frontend/detail/websocket_service.h"

namespace tt::frontend {

// Reserved bit RSV1 of a frame: the message is compressed.
inline constexpr unsigned char kDeflated = 0x40;

struct WebSocketService::Frame {
  Opcode opcode;
  std::vector<unsigned char> bytes;  // LWS_PRE bytes for the library, then the message

  // Fixed cost per frame, so that a queue of empty frames is bounded, too.
  static constexpr std::size_t kOverhead = 64;

  std::size_t message_size() const { return bytes.size() - LWS_PRE; }
  std::size_t cost() const { return message_size() + kOverhead; }
};

struct WebSocketService::Client {
  ClientId id;
  Upgrade upgrade;
  std::string peer;          // peer_group()
  ConnectionPtr connection;  // until libwebsockets owns the descriptor

  // Used only by the service thread.
  lws* wsi = nullptr;   // set by the handshake
  bool opened = false;  // on_open was called
  std::vector<std::byte> inbox;
  Opcode inbox_opcode = Opcode::Binary;
  bool inbox_deflated = false;
  std::unique_ptr<Inflater> inflater;  // if compression was negotiated
  bool sends_deflated = false;         // of the frame being written
  std::chrono::steady_clock::time_point paused_until{};

  // Guarded by WebSocketService::mutex_.
  bool accepts = false;  // send() may queue
  bool write_requested = false;
  std::uint16_t close_code = 0;       // code to close with; 0: open
  std::chrono::milliseconds pause{};  // requested, not started yet
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

}  // namespace tt::frontend
