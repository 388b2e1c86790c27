#include "server/frontend/detail/websocket_parts.h"

#include <libwebsockets.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <system_error>
#include <utility>

#include "tracer/text/utf8.h"

namespace tt::frontend {
namespace {

constexpr std::uint16_t kGoingAway = 1001, kInvalidData = 1007, kTooLarge = 1009;
constexpr std::chrono::milliseconds kPauseCheckInterval{20};

std::string_view text_of(std::span<const std::byte> message) {
  return {reinterpret_cast<const char*>(message.data()), message.size()};
}

ClientId next_client_id() {
  static std::atomic<std::uint64_t> last{0};
  return ClientId{++last};
}

}  // namespace

WebSocketService::WebSocketService(WebSocketOptions options, WebSocketHandler& handler)
    : options_(std::move(options)), handler_(handler) {}

WebSocketService::~WebSocketService() {
  begin_stop();
  finish_stop(std::chrono::steady_clock::now());
}

std::expected<void, std::string> WebSocketService::start() {
  assert(context_ == nullptr);
  // Log lines without a context would go to stderr; the level is global to the process, and
  // there is no other way to silence them.
  lws_set_log_level(0, nullptr);
  library_ = std::make_unique<Library>(*this);
  lws_context* context = lws_create_context(&library_->info);
  if (context == nullptr) return std::unexpected("libwebsockets could not be set up");
  library_->vhost = lws_create_vhost(context, &library_->info);
  if (library_->vhost == nullptr) {
    lws_context_destroy(context);
    return std::unexpected("libwebsockets could not be set up");
  }
  context_ = context;
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error& error) {
    context_ = nullptr;
    lws_context_destroy(context);
    return std::unexpected(std::string("thread: ") + error.what());
  }
  return {};
}

ConnectionPtr WebSocketService::adopt(ConnectionPtr connection, Upgrade upgrade) {
  const std::scoped_lock lock(mutex_);
  if (stopping_ || context_ == nullptr || clients_.size() >= options_.max_clients) {
    return connection;
  }
  const std::string& peer = connection->slot.peer();
  const auto of_peer = std::ranges::count_if(
      clients_, [&](const auto& entry) { return entry.second->peer == peer; });
  if (static_cast<std::size_t>(of_peer) >= options_.max_clients_per_peer) return connection;
  auto client = std::make_unique<Client>();
  client->id = next_client_id();
  client->upgrade = std::move(upgrade);
  client->peer = peer;
  client->connection = std::move(connection);
  to_adopt_.push_back(client->id);
  clients_.emplace(client->id, std::move(client));
  wake();
  return nullptr;
}

bool WebSocketService::send(ClientId id, Opcode opcode, std::span<const std::byte> message) {
  // Copied before locking, so that the service thread does not wait for the copy.
  Frame frame{.opcode = opcode, .bytes = std::vector<unsigned char>(LWS_PRE + message.size())};
  if (!message.empty()) std::memcpy(&frame.bytes[LWS_PRE], message.data(), message.size());

  const std::scoped_lock lock(mutex_);
  const auto at = clients_.find(id);
  if (at == clients_.end() || !at->second->accepts) return false;
  Client& client = *at->second;
  if (client.stats.queued_bytes + frame.cost() > options_.queue_bytes) {
    ++client.stats.lost;
    return false;
  }
  client.stats.queued_bytes += frame.cost();
  client.queue.push_back(std::move(frame));
  request_write(client);
  return true;
}

void WebSocketService::close(ClientId id, std::uint16_t code) {
  const std::scoped_lock lock(mutex_);
  const auto at = clients_.find(id);
  if (at == clients_.end() || !at->second->accepts) return;
  at->second->accepts = false;
  at->second->close_code = code;
  request_write(*at->second);
}

void WebSocketService::pause(ClientId id, std::chrono::milliseconds time) {
  const std::scoped_lock lock(mutex_);
  const auto at = clients_.find(id);
  if (at == clients_.end() || !at->second->accepts) return;
  // When called from a handler, the pause starts without a wake-up.
  if (at->second->pause == std::chrono::milliseconds{}) {
    to_pause_.push_back(id);
    wake();
  }
  at->second->pause = std::max(at->second->pause, time);
}

std::optional<ClientStats> WebSocketService::stats(ClientId id) const {
  const std::scoped_lock lock(mutex_);
  const auto at = clients_.find(id);
  if (at == clients_.end()) return std::nullopt;
  return at->second->stats;
}

// request_write() and wake() require mutex_.
void WebSocketService::request_write(Client& client) {
  if (std::exchange(client.write_requested, true)) return;
  to_write_.push_back(client.id);
  wake();
}

void WebSocketService::wake() {
  if (context_ != nullptr && !std::exchange(woken_, true)) lws_cancel_service(context_);
}

void WebSocketService::begin_stop() {
  const std::scoped_lock lock(mutex_);
  stopping_ = true;
  for (auto& [id, client] : clients_) {
    if (!client->accepts) continue;
    client->accepts = false;
    client->close_code = kGoingAway;
    request_write(*client);
  }
}

void WebSocketService::finish_stop(std::chrono::steady_clock::time_point deadline) {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    no_clients_.wait_until(lock, deadline, [this] { return clients_.empty(); });
    quit_ = true;
    woken_ = false;
    wake();
  }
  thread_.join();
}

void WebSocketService::loop() {
  pthread_setname_np(pthread_self(), "websocket");
  lws_context* const context = context_;
  for (;;) {
    process_requests();
    {
      const std::scoped_lock lock(mutex_);
      if (quit_) break;
    }
    // Returns after each round of events; it has its own timers.
    if (lws_service(context, 0) < 0) break;
  }
  {
    const std::scoped_lock lock(mutex_);
    context_ = nullptr;  // no more wake-ups
    stopping_ = true;
  }
  // Closes the remaining clients (on_close). libwebsockets 4.3.5 does not close the eventfd of
  // the context: it leaks one descriptor per context, so one per process.
  lws_context_destroy(context);
  const std::scoped_lock lock(mutex_);
  clients_.clear();  // those that were never adopted
  no_clients_.notify_all();
}

void WebSocketService::process_requests() {
  std::vector<Client*> adopted;
  std::vector<Client*> writers;
  std::vector<Client*> paused;
  {
    const std::scoped_lock lock(mutex_);
    woken_ = false;
    for (const ClientId id : std::exchange(to_adopt_, {})) {
      if (const auto at = clients_.find(id); at != clients_.end()) {
        adopted.push_back(at->second.get());
      }
    }
    for (const ClientId id : std::exchange(to_write_, {})) {
      if (const auto at = clients_.find(id); at != clients_.end()) {
        at->second->write_requested = false;
        writers.push_back(at->second.get());
      }
    }
    for (const ClientId id : std::exchange(to_pause_, {})) {
      if (const auto at = clients_.find(id); at != clients_.end()) {
        paused.push_back(at->second.get());
      }
    }
  }
  for (Client* client : paused) start_pause(*client);
  for (Client* client : writers) lws_callback_on_writable(client->wsi);
  for (Client* client : adopted) {
    lws_adopt_desc_t description{};
    description.vh = library_->vhost;
    // Combined flags, as libwebsockets itself uses them.
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange)
    description.type = static_cast<lws_adoption_type>(LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP);
    description.fd.sockfd =
        client->connection->fd.release();  // owned by the library, even on error
    description.opaque = client;
    client->connection.reset();
    const ClientId id = client->id;
    if (lws_adopt_descriptor_vhost_via_info(&description) == nullptr) {
      // The callback may have removed the client already.
      const std::scoped_lock lock(mutex_);
      clients_.erase(id);
    }
  }
}

int WebSocketService::on_established(Client& client) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) {
      client.close_code = kGoingAway;
      request_write(client);
    } else {
      client.accepts = true;
    }
  }
  client.opened = true;
  handler_.on_open(client.id, client.upgrade);
  return 0;
}

int WebSocketService::on_received(Client& client, std::span<const std::byte> part) {
  if (lws_is_first_fragment(client.wsi) != 0) {
    client.inbox.clear();
    client.inbox_opcode = lws_frame_is_binary(client.wsi) != 0 ? Opcode::Binary : Opcode::Text;
    client.inbox_deflated = (lws_get_reserved_bits(client.wsi) & kDeflated) != 0;
  }
  std::uint16_t error_code = 0;
  if (client.inbox.size() + part.size() > options_.message_bytes) {
    error_code = kTooLarge;
  } else {
    client.inbox.insert(client.inbox.end(), part.begin(), part.end());
    if (lws_is_final_fragment(client.wsi) == 0 || lws_remaining_packet_payload(client.wsi) != 0)
      return 0;
    error_code = deliver(client);
  }
  if (error_code != 0) {
    lws_close_reason(client.wsi, static_cast<lws_close_status>(error_code), nullptr, 0);
    return -1;
  }
  client.inbox.clear();
  start_pause(client);
  return 0;
}

std::uint16_t WebSocketService::deliver(Client& client) {
  if (client.inbox_deflated) {
    auto inflated = client.inflater->inflate(client.inbox, options_.message_bytes);
    if (!inflated)
      return inflated.error() == Inflater::Failure::TooLarge ? kTooLarge : kInvalidData;
    client.inbox = *std::move(inflated);
  }
  if (client.inbox_opcode == Opcode::Text && !is_utf8(text_of(client.inbox))) return kInvalidData;
  handler_.on_message(client.id, client.inbox, client.inbox_opcode);
  return 0;
}

// Data that was already read stays in the buffer of libwebsockets, the rest in the socket
// buffers and then at the client.
void WebSocketService::start_pause(Client& client) {
  std::chrono::milliseconds pause{};
  {
    const std::scoped_lock lock(mutex_);
    std::swap(pause, client.pause);
  }
  if (pause == std::chrono::milliseconds{}) return;
  const auto now = std::chrono::steady_clock::now();
  client.paused_until = std::max(client.paused_until, now + pause);
  lws_rx_flow_control(client.wsi, 0);
  continue_pause(client, now);
}

void WebSocketService::continue_pause(Client& client, std::chrono::steady_clock::time_point now) {
  const auto left =
      std::min<std::chrono::steady_clock::duration>(client.paused_until - now, kPauseCheckInterval);
  lws_set_timer_usecs(client.wsi, std::chrono::ceil<std::chrono::microseconds>(left).count());
}

// A disconnect is not noticed while reading is paused, so check for it here. Otherwise unread
// data would keep the client slot in use.
int WebSocketService::on_pause_timer(Client& client) {
  pollfd hangup{.fd = lws_get_socket_fd(client.wsi), .events = POLLRDHUP, .revents = 0};
  if (poll(&hangup, 1, 0) > 0) return -1;
  const auto now = std::chrono::steady_clock::now();
  if (now < client.paused_until) {
    continue_pause(client, now);
  } else {
    lws_rx_flow_control(client.wsi, 1);
  }
  return 0;
}

// One write per call, as libwebsockets requires.
int WebSocketService::on_writable(Client& client) {
  std::optional<Frame> frame;
  std::uint16_t close_code = 0;
  bool more = false;
  {
    const std::scoped_lock lock(mutex_);
    close_code = client.close_code;
    if (!client.queue.empty()) {
      frame = std::move(client.queue.front());
      client.queue.pop_front();
      client.stats.queued_bytes -= frame->cost();
      ++client.stats.sent;
      more = !client.queue.empty();
    }
  }
  if (!frame) {
    if (close_code == 0) return 0;
    lws_close_reason(client.wsi, static_cast<lws_close_status>(close_code), nullptr, 0);
    return -1;
  }
  client.sends_deflated = false;
  if (client.inflater && frame->message_size() >= kMinDeflateBytes) {
    auto smaller = deflater_.deflate(std::span(frame->bytes).subspan(LWS_PRE), LWS_PRE);
    client.sends_deflated = !smaller.empty();
    if (client.sends_deflated) frame->bytes = std::move(smaller);
  }
  const auto kind = frame->opcode == Opcode::Text ? LWS_WRITE_TEXT : LWS_WRITE_BINARY;
  if (lws_write(client.wsi, &frame->bytes[LWS_PRE], frame->message_size(), kind) < 0) return -1;
  if (more || close_code != 0) lws_callback_on_writable(client.wsi);
  return 0;
}

void WebSocketService::remove_client(Client& client) {
  {
    const std::scoped_lock lock(mutex_);
    client.accepts = false;
  }
  if (client.opened) handler_.on_close(client.id);
  const std::scoped_lock lock(mutex_);
  clients_.erase(client.id);
  if (clients_.empty()) no_clients_.notify_all();
}

}  // namespace tt::frontend
