#include "server/frontend/detail/connection_acceptor.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "server/frontend/detail/request_id.h"

namespace tt::frontend {
namespace {

using namespace std::chrono_literals;

// Time for a peer to read the last response and close the connection.
constexpr auto kLinger = 2s;
// Without a free descriptor, accepting would fail repeatedly at once.
constexpr auto kAcceptPause = 100ms;
constexpr std::uint32_t kWaitEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;
constexpr std::uint32_t kLingerEvents = EPOLLIN;

bool control(int epoll, int operation, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return epoll_ctl(epoll, operation, fd, &event) == 0;
}

void signal_event(const Fd& event) {
  const std::uint64_t one = 1;
  // Fails only when the counter is at its maximum, i.e. already signalled.
  [[maybe_unused]] const auto written = write(event.get(), &one, sizeof(one));
}

// Whether unread packets occupy so much of the receive buffer that the window may close.
bool fills_receive_buffer(int fd) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
  socklen_t bytes = sizeof memory;
  return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory.data(), &bytes) == 0 &&
         memory[SK_MEMINFO_RMEM_ALLOC] > memory[SK_MEMINFO_RCVBUF] / 4;
}

RequestRecord record_of(const RequestHead& head, const Connection& connection) {
  RequestRecord record;
  record.arrival = std::chrono::steady_clock::now();
  record.request_id = request_id_of(head);
  record.peer = connection.peer.host;
  record.method = head.method;
  record.path = head.path();
  return record;
}

std::string last_error(const char* what) {
  return std::string(what) + ": " + std::generic_category().message(errno);
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(AcceptorOptions options, Authenticator& authenticator,
                                       AcceptorCallbacks callbacks)
    : options_(std::move(options)),
      authenticator_(authenticator),
      callbacks_(std::move(callbacks)) {}

std::expected<void, std::string> ConnectionAcceptor::start(Listener listener) {
  listener_ = std::move(listener.fd);
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_ || !control(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), EPOLLIN) ||
      !control(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), EPOLLIN)) {
    return std::unexpected(last_error("epoll"));
  }
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error& error) {
    return std::unexpected(std::string("thread: ") + error.what());
  }
  return {};
}

void ConnectionAcceptor::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  signal_event(wake_);
  thread_.join();
  listener_.reset();
  parked_.clear();
  Returned late;
  const std::scoped_lock lock(returned_mutex_);
  closed_ = true;
  late.swap(returned_);
}

void ConnectionAcceptor::return_request(AcceptedRequestPtr request, ConnectionAction after) {
  bool first = false;
  {
    const std::scoped_lock lock(returned_mutex_);
    if (closed_) {
      // The peer has its response, and there is no unread input: an orderly shutdown.
      shutdown(request->connection->fd.get(), SHUT_WR);
      return;
    }
    returned_.emplace_back(std::move(request), after);
    first = returned_.size() == 1;
  }
  // Without the mutex: the acceptor takes the processor from a worker of low priority at once, and
  // would wait for it.
  if (first) signal_event(wake_);
}

void ConnectionAcceptor::loop() {
  pthread_setname_np(pthread_self(), "http-accept");
  std::array<epoll_event, 64> events{};
  while (!stopping_) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms());
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.fd == listener_.get()) {
        accept_all();
      } else if (event.data.fd == wake_.get()) {
        take_returned();
      } else if (const auto at = parked_.find(event.data.fd); at != parked_.end()) {
        // A descriptor that was closed and reused within this batch may get a stale event; an
        // extra check is harmless.
        on_event(at, event.events);
      }
    }
    sweep(Clock::now());
  }
}

void ConnectionAcceptor::accept_all() {
  // Bounded, so that a flood of new connections does not starve existing ones.
  for (int i = 0; i < 64; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    Fd fd(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size,
                  SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EAGAIN) return;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        if (evict_waiting()) continue;
        return pause_accepting();
      }
      continue;  // that one connection failed (ECONNABORTED, EINTR, ...)
    }
    // A response is written in one piece; Nagle's algorithm would only delay it.
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    auto connection = std::make_unique<Connection>();
    connection->peer = to_endpoint(address);
    connection->local = local_endpoint(fd.get());
    connection->fd = std::move(fd);
    const std::string peer = peer_group(connection->peer.host);
    const bool full = parked_.size() + in_service_ >= options_.max_connections;
    const bool peer_full = slots_->count(peer) >= options_.max_connections_per_peer;
    if ((peer_full && !evict_waiting(peer)) || (full && !peer_full && !evict_waiting())) {
      const std::string response = response_to(
          {},
          reply_to(
              {.reason = RejectionReason::TooManyConnections,
               .why = peer_full
                          ? "This client has reached its maximum number of connections. Close one."
                          : "The maximum number of connections (--max-connections) is reached. Try "
                            "again later.",
               .retry_after_s = 2}),
          record_of({}, *connection));
      send(connection->fd.get(), response.data(), response.size(), MSG_NOSIGNAL);
      shutdown(connection->fd.get(), SHUT_WR);
      continue;
    }
    connection->slot = PeerSlot(slots_, peer);
    park(std::move(connection));
  }
}

void ConnectionAcceptor::pause_accepting() {
  control(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), 0);
  accept_again_ = Clock::now() + kAcceptPause;
}

// Closes the waiting connection with the earliest deadline, of `peer` if not empty. Returns
// false when none is waiting.
bool ConnectionAcceptor::evict_waiting(const std::string& peer) {
  auto oldest = parked_.end();
  for (auto at = parked_.begin(); at != parked_.end(); ++at) {
    if (!peer.empty() && at->second.connection->slot.peer() != peer) continue;
    if (oldest == parked_.end() || at->second.deadline < oldest->second.deadline) oldest = at;
  }
  if (oldest == parked_.end()) return false;
  unpark(oldest);
  return true;
}

void ConnectionAcceptor::take_returned() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(wake_.get(), &count, sizeof(count));
  {
    const std::scoped_lock lock(returned_mutex_);
    taken_.swap(returned_);
  }
  for (auto& [request, after] : taken_) {
    --in_service_;
    switch (after) {
      case ConnectionAction::KeepOpen:
        park(std::move(request->connection));
        break;
      case ConnectionAction::Linger:
        linger(std::move(request->connection));
        break;
      case ConnectionAction::Close:
        break;
    }
  }
  taken_.clear();
}

void ConnectionAcceptor::park(ConnectionPtr connection) {
  const int fd = connection->fd.get();
  // EPOLL_CTL_ADD reports data that has already arrived, so nothing is missed.
  if (!control(epoll_.get(), EPOLL_CTL_ADD, fd, kWaitEvents)) return;
  Parked& parked = parked_[fd];
  parked.connection = std::move(connection);
  set_deadline(parked, options_.idle_timeout);
}

void ConnectionAcceptor::on_event(ParkedMap::iterator at, std::uint32_t events) {
  if ((events & EPOLLERR) != 0) {
    unpark(at);
  } else if (at->second.state == State::Lingering) {
    drain(at);
  } else {
    inspect_head(at, (events & (EPOLLRDHUP | EPOLLHUP)) != 0);
  }
}

void ConnectionAcceptor::inspect_head(ParkedMap::iterator at, bool peer_ended) {
  Parked& parked = at->second;
  std::string& taken = parked.connection->head_begin;
  std::ranges::copy(taken, buffer_.begin());
  const ssize_t got = recv(at->first, buffer_.data() + taken.size(), buffer_.size() - taken.size(),
                           MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR) && !peer_ended) return;
  if (got <= 0) {
    unpark(at);
    return;
  }
  const std::string_view bytes(buffer_.data(), taken.size() + static_cast<std::size_t>(got));
  // The blank line may overlap the bytes already seen.
  const std::size_t from = parked.seen < 3 ? 0 : parked.seen - 3;
  const auto end = bytes.find("\r\n\r\n", from);
  if (end != std::string_view::npos) return decide(at, bytes.substr(0, end + 4));
  if (bytes.size() == buffer_.size()) {
    ConnectionPtr connection = unpark(at);
    const Reply reply =
        reply_to({RejectionReason::HeadTooLarge, "The request head is longer than 16 KiB."});
    const std::string response = response_to({}, reply, record_of({}, *connection));
    return respond(std::move(connection), response);
  }
  if (peer_ended) {
    unpark(at);
    return;
  }
  if (parked.seen == 0) set_deadline(parked, options_.head_timeout);
  parked.seen = bytes.size();
  // libwebsockets reads the head of an upgrade from the socket.
  if (bytes.starts_with("GET " + options_.rules.requests.websocket_path)) return;
  // As many bytes as were seen: the others of a head that has arrived meanwhile have an event.
  if (fills_receive_buffer(at->first) && recv(at->first, buffer_.data() + taken.size(),
                                              static_cast<std::size_t>(got), MSG_DONTWAIT) == got) {
    taken = bytes;
  }
}

void ConnectionAcceptor::decide(ParkedMap::iterator at, std::string_view head_text) {
  ConnectionPtr connection = unpark(at);
  const auto head = parse_request_head(head_text);
  RequestRecord record = record_of(head ? *head : RequestHead{}, *connection);
  if (!head) {
    const std::string response = response_to({}, reply_to(head.error()), std::move(record));
    return respond(std::move(connection), response);
  }
  RequestDecision decision =
      authorize(*head, options_.rules, authenticator_, connection->slot.peer(), Clock::now());
  // libwebsockets reads the head from the socket.
  if (std::holds_alternative<Upgrade>(decision) && !connection->head_begin.empty())
    decision = malformed_request("an upgrade must not be sent behind other requests");
  if (auto* upgrade = std::get_if<Upgrade>(&decision)) {
    upgrade->request_id = record.request_id;
    connection = callbacks_.on_upgrade(std::move(connection), std::move(*upgrade));
    if (!connection) {
      // The connection belongs to the WebSocket service now: log the request only.
      record.status = 101;
      log_request(record);
      return;
    }
    decision = Rejection{
        .reason = RejectionReason::TooManyConnections,
        .why =
            "The maximum number of WebSockets (--max-live-clients) is reached. Close another tab.",
        .retry_after_s = 2};
  }
  if (const auto* serve = std::get_if<Serve>(&decision)) {
    ++in_service_;
    std::string headers = headers_for(*head, record.request_id);
    const std::size_t taken = connection->head_begin.size();
    callbacks_.on_request(
        std::make_unique<AcceptedRequest>(AcceptedRequest{.connection = std::move(connection),
                                                          .head_bytes = head_text.size() - taken,
                                                          .decision = *serve,
                                                          .common_headers = std::move(headers),
                                                          .record = std::move(record)}));
    return;
  }
  const auto* rejection = std::get_if<Rejection>(&decision);
  const Reply reply = rejection != nullptr ? reply_to(*rejection) : std::get<Reply>(decision);
  const std::string response = response_to(*head, reply, std::move(record));
  respond(std::move(connection), response);
}

std::string ConnectionAcceptor::headers_for(const RequestHead& head,
                                            const std::string& request_id) const {
  const FrontendRules& rules = options_.rules.requests;
  return common_headers(rules, cors_origin_of(head, rules), request_id);
}

void ConnectionAcceptor::log_request(const RequestRecord& record) const {
  if (callbacks_.on_status) callbacks_.on_status(record);
  if (callbacks_.on_complete) callbacks_.on_complete(record);
}

// Logs the request and returns the response; only sending remains.
std::string ConnectionAcceptor::response_to(const RequestHead& head, const Reply& reply,
                                            RequestRecord record) const {
  std::string response = to_response(reply, head.method, headers_for(head, record.request_id));
  record.status = reply.status;
  record.bytes = response.size();
  record.note = reply.note;
  log_request(record);
  return response;
}

void ConnectionAcceptor::respond(ConnectionPtr connection, const std::string& response) {
  // A few hundred bytes fit into the socket buffer, unless the peer has not read earlier
  // responses; then the response is dropped.
  send(connection->fd.get(), response.data(), response.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  linger(std::move(connection));
}

// Closing a socket with unread input resets the connection and may destroy the response in
// transit. So shut down the output and discard input until the peer closes the connection or
// the deadline passes.
void ConnectionAcceptor::linger(ConnectionPtr connection) {
  const int fd = connection->fd.get();
  if (shutdown(fd, SHUT_WR) != 0) return;
  if (!control(epoll_.get(), EPOLL_CTL_ADD, fd, kLingerEvents)) return;
  Parked& parked = parked_[fd];
  parked.connection = std::move(connection);
  parked.state = State::Lingering;
  set_deadline(parked, kLinger);
}

void ConnectionAcceptor::drain(ParkedMap::iterator at) {
  const ssize_t got = recv(at->first, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  unpark(at);
}

// Also required before closing: a child process that is being started may still hold the
// descriptor, and epoll would keep reporting it under a number that the next connection
// reuses.
ConnectionPtr ConnectionAcceptor::unpark(ParkedMap::iterator at) {
  control(epoll_.get(), EPOLL_CTL_DEL, at->first, 0);
  ConnectionPtr connection = std::move(at->second.connection);
  parked_.erase(at);
  return connection;
}

void ConnectionAcceptor::set_deadline(Parked& parked, std::chrono::milliseconds from_now) {
  parked.deadline = Clock::now() + from_now;
  next_deadline_ = std::min(next_deadline_, parked.deadline);
}

void ConnectionAcceptor::sweep(Clock::time_point now) {
  if (now >= accept_again_) {
    accept_again_ = Clock::time_point::max();
    control(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), EPOLLIN);
  }
  if (now < next_deadline_) return;
  next_deadline_ = Clock::time_point::max();
  for (auto at = parked_.begin(); at != parked_.end();) {
    const auto one = at++;
    if (one->second.deadline <= now) {
      unpark(one);
    } else {
      next_deadline_ = std::min(next_deadline_, one->second.deadline);
    }
  }
}

int ConnectionAcceptor::wait_ms() const {
  const auto next = std::min(next_deadline_, accept_again_);
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace tt::frontend
