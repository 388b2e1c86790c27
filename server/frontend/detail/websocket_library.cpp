#include <string>
#include <string_view>

#include "server/frontend/detail/request_head.h"
#include "server/frontend/detail/request_id.h"
#include "server/frontend/detail/websocket_parts.h"

namespace tt::frontend {

WebSocketService::Library::Library(WebSocketService& owner) {
  log.u.emit_cx = &log_line;
  log.opaque = &owner;
  log.lll_flags = LLLF_LOG_CONTEXT_AWARE;
  if (owner.options_.log) log.lll_flags |= LLL_ERR | LLL_WARN;

  const auto ping = static_cast<std::uint16_t>(owner.options_.ping_interval.count());
  keep_alive.secs_since_valid_ping = ping;
  keep_alive.secs_since_valid_hangup = static_cast<std::uint16_t>(ping * 3);

  protocols[0].name = "tensor-trace";
  protocols[0].callback = &callback;

  info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
  info.protocols = protocols.data();
  extensions[0] = {.name = "permessage-deflate", .callback = &extension, .client_offer = nullptr};
  if (owner.options_.deflate) info.extensions = extensions.data();
  info.user = &owner;
  info.log_cx = &log;
  info.retry_and_idle_policy = &keep_alive;
  state_link.notify_cb = &hold_state;
  state_link.name = "frontend";
  info.register_notifier_list = state_links.data();
  info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
  // libwebsockets needs a few descriptors besides those of the clients.
  info.fd_limit_per_thread = static_cast<unsigned>(owner.options_.max_clients + 16);
  info.max_http_header_data2 = static_cast<unsigned>(kMaxHeadBytes + 1024);
  // Upgrades parsed at a time; each head is complete, so it is released quickly.
  info.max_http_header_pool = 4;
  info.pt_serv_buf_size = 16 * 1024;
}

// libwebsockets follows the routing table of the system and closes established connections
// whose peer has no route, sometimes wrongly (warmcat/libwebsockets#3199, #2603). It starts to
// do so in this state, which a server without outgoing connections does not need.
int WebSocketService::Library::hold_state(lws_state_manager_t* /*manager*/,
                                          lws_state_notify_link_t* /*link*/, int /*current*/,
                                          int target) {
  return target == LWS_SYSTATE_IFACE_COLDPLUG ? 1 : 0;
}

void WebSocketService::Library::log_line(lws_log_cx* log, int /*level*/, const char* line,
                                         std::size_t size) {
  const auto& owner = *static_cast<WebSocketService*>(log->opaque);
  std::string_view text(line, size);
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (owner.options_.log) owner.options_.log(text);
}

// libwebsockets passes payloads unchanged and marks compressed ones.
int WebSocketService::Library::extension(lws_context* /*context*/,
                                         const lws_extension* /*extension*/, lws* wsi,
                                         lws_extension_callback_reasons reason, void* /*user*/,
                                         void* in, std::size_t /*size*/) {
  static constexpr lws_ext_options kEchoed[] = {{"server_no_context_takeover", EXTARG_NONE},
                                                {"client_no_context_takeover", EXTARG_NONE},
                                                {nullptr, EXTARG_NONE}};
  auto* client = wsi == nullptr ? nullptr : static_cast<Client*>(lws_get_opaque_user_data(wsi));
  if (client == nullptr) return 0;
  if (reason == LWS_EXT_CB_CONSTRUCT) {
    client->inflater = std::make_unique<Inflater>();
    *static_cast<const lws_ext_options**>(in) = kEchoed;
  }
  if (reason == LWS_EXT_CB_PACKET_TX_PRESEND && client->sends_deflated) {
    unsigned char& head = *static_cast<lws_tokens*>(in)->token;
    constexpr unsigned char kControl = 0x08;
    if ((head & kControl) == 0) head |= kDeflated;
  }
  return 0;
}

// Adds headers to the 101 response, which libwebsockets writes.
int WebSocketService::Library::add_headers(lws* wsi, const Client& client,
                                           lws_process_html_args& answer) {
  const std::string name = std::string(kRequestIdField) + ":";
  const std::string& id = client.upgrade.request_id;
  auto* at = reinterpret_cast<unsigned char*>(answer.p);
  const int failed =
      lws_add_http_header_by_name(wsi, reinterpret_cast<const unsigned char*>(name.c_str()),
                                  reinterpret_cast<const unsigned char*>(id.data()),
                                  static_cast<int>(id.size()), &at, at + answer.max_len);
  answer.p = reinterpret_cast<char*>(at);
  return failed;
}

int WebSocketService::Library::callback(lws* wsi, lws_callback_reasons reason, void* /*user*/,
                                        void* in, std::size_t size) {
  auto* client = wsi == nullptr ? nullptr : static_cast<Client*>(lws_get_opaque_user_data(wsi));
  if (client == nullptr) return 0;  // internal event of libwebsockets
  auto& owner = *static_cast<WebSocketService*>(lws_context_user(lws_get_context(wsi)));
  switch (reason) {
    case LWS_CALLBACK_ADD_HEADERS:
      return add_headers(wsi, *client, *static_cast<lws_process_html_args*>(in));
    case LWS_CALLBACK_CONFIRM_EXTENSION_OKAY: {
      std::string offers;
      for (const auto& [name, value] : client->upgrade.headers)
        if (equals_ignore_case(name, "Sec-WebSocket-Extensions")) offers += value + ",";
      return offers_deflate(offers) ? 0 : 1;
    }
    case LWS_CALLBACK_ESTABLISHED:
      client->wsi = wsi;
      return owner.on_established(*client);
    case LWS_CALLBACK_RECEIVE:
      return owner.on_received(*client, {static_cast<const std::byte*>(in), size});
    case LWS_CALLBACK_SERVER_WRITEABLE:
      return owner.on_writable(*client);
    case LWS_CALLBACK_TIMER:
      return owner.on_pause_timer(*client);
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      // libwebsockets echoes the received code; a code of one byte is invalid (RFC 6455,
      // 5.5.1).
      if (size != 1) return 0;
      lws_close_reason(wsi, LWS_CLOSE_STATUS_PROTOCOL_ERR, nullptr, 0);
      return -1;
    case LWS_CALLBACK_HTTP:
      return -1;  // only upgrades are passed to it
    case LWS_CALLBACK_CLOSED:
    case LWS_CALLBACK_WSI_DESTROY:
      lws_set_opaque_user_data(wsi, nullptr);
      owner.remove_client(*client);
      return 0;
    default:
      return 0;
  }
}

}  // namespace tt::frontend
