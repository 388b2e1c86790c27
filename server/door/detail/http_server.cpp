#include "server/door/detail/http_server.h"

#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "server/door/detail/request_head.h"
#include "server/door/range_field.h"

namespace tt::door {
namespace {

// The library counts a line's CRLF.
static_assert(kMaxFieldBytes + 2 <= CPPHTTPLIB_HEADER_MAX_LENGTH);
static_assert(kMaxFields <= CPPHTTPLIB_HEADER_MAX_COUNT);
static_assert(kMaxHeadBytes <= CPPHTTPLIB_MAX_LINE_LENGTH);

using Clock = std::chrono::steady_clock;

// False on a timeout and on an error.
bool wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// Takes brotli off the encodings that a client accepts. The library compresses
// with its slowest level: 70 ms for 50 KB, where zstd and gzip need 0.2.
void leave_out_brotli(httplib::Request& request) {
  const std::string accepted = request.get_header_value("Accept-Encoding");
  if (accepted.empty()) return;
  std::string kept;
  for (std::size_t at = 0; at < accepted.size();) {
    const std::size_t end = std::min(accepted.find(',', at), accepted.size());
    std::string_view one = std::string_view(accepted).substr(at, end - at);
    at = end + 1;
    while (one.starts_with(' ') || one.starts_with('\t')) one.remove_prefix(1);
    const std::string_view name = one.substr(0, one.find_first_of("; \t"));
    if (name == "br" || name == "*") continue;
    if (!kept.empty()) kept += ", ";
    kept += one;
  }
  request.headers.erase("Accept-Encoding");
  request.set_header("Accept-Encoding", kept.empty() ? "identity" : kept);
}

// A request that announces no body has none. The library waits for the body of a
// DELETE all the same, and then does not keep the connection.
void say_that_no_body_follows(std::string& head) {
  const auto parsed = parse_request_head(head);
  if (!parsed || parsed->method == "GET" || parsed->method == "HEAD" ||
      parsed->count("Content-Length") > 0 || parsed->count("Transfer-Encoding") > 0) {
    return;
  }
  constexpr std::string_view kLineEnd = "\r\n";
  head.insert(head.size() - kLineEnd.size(), "Content-Length: 0\r\n");
}

// See range_field.h. The fields are views into `head`.
void rename_range(std::string& head) {
  const auto parsed = parse_request_head(head);
  if (!parsed) return;
  for (const auto& field : parsed->fields) {
    if (field.name.size() == 5 && strncasecmp(field.name.data(), "Range", 5) == 0)
      head.replace(static_cast<std::size_t>(field.name.data() - head.data()), 5, kRangeField);
  }
}

// What cpp-httplib reads a request from and writes its response to. The head
// comes from memory, the body straight from the socket and never more of it
// than asked for: what follows belongs to the next request.
class RequestStream final : public httplib::Stream {
 public:
  RequestStream(const Connection& connection, std::string head, HttpTimeouts timeouts)
      : connection_(connection),
        head_(std::move(head)),
        timeouts_(timeouts),
        body_deadline_(started_ + timeouts.body) {}

  bool is_readable() const override { return at_ < head_.size(); }
  bool wait_readable() const override {
    return is_readable() || wait_for(fd(), POLLIN, std::min(io_deadline(), body_deadline_));
  }
  bool wait_writable() const override { return wait_for(fd(), POLLOUT, io_deadline()); }
  bool is_peer_alive() const override {
    char byte = 0;
    const ssize_t got = recv(fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }

  ssize_t read(char* out, std::size_t size) override {
    if (is_readable()) {
      const std::size_t count = std::min(size, head_.size() - at_);
      std::memcpy(out, head_.data() + at_, count);
      at_ += count;
      return static_cast<ssize_t>(count);
    }
    for (;;) {
      if (!wait_readable()) return no_input(httplib::Error::Timeout, -1);
      const ssize_t got = recv(fd(), out, size, 0);
      if (got > 0) return got;
      if (got == 0) return no_input(httplib::Error::ConnectionClosed, 0);
      if (errno != EAGAIN && errno != EINTR) return no_input(httplib::Error::Read, -1);
    }
  }

  ssize_t write(const char* data, std::size_t size) override {
    note_status({data, size});
    for (;;) {
      if (!output_failed_ && wait_writable()) {
        const ssize_t sent = send(fd(), data, size, MSG_NOSIGNAL);
        if (sent >= 0) return sent;
        if (errno == EAGAIN || errno == EINTR) continue;
      }
      output_failed_ = true;
      error_ = httplib::Error::Write;
      return -1;
    }
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = connection_.peer.host;
    port = connection_.peer.port;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip = connection_.local.host;
    port = connection_.local.port;
  }
  socket_t socket() const override { return fd(); }
  time_t duration() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_).count();
  }

  bool output_failed() const { return output_failed_; }
  // The body did not come, so nobody knows where the next request begins.
  bool input_failed() const { return input_failed_; }
  int status() const { return status_; }  // of the final response; 0 before it

 private:
  int fd() const { return connection_.fd.get(); }
  Clock::time_point io_deadline() const { return Clock::now() + timeouts_.io; }

  ssize_t no_input(httplib::Error error, ssize_t result) {
    input_failed_ = true;
    error_ = error;
    return result;
  }

  // The library says "Connection: close" with every error status but does not
  // tell its caller; so the status is read off what it writes. A head is
  // written in one piece.
  void note_status(std::string_view data) {
    constexpr std::string_view kVersion = "HTTP/1.1 ";
    if (status_ >= 200 || !data.starts_with(kVersion)) return;
    data.remove_prefix(kVersion.size());
    std::from_chars(data.data(), data.data() + std::min<std::size_t>(3, data.size()), status_);
  }

  const Connection& connection_;
  const std::string head_;
  const HttpTimeouts timeouts_;
  const Clock::time_point started_ = Clock::now();
  const Clock::time_point body_deadline_;
  std::size_t at_ = 0;
  int status_ = 0;
  bool input_failed_ = false;
  bool output_failed_ = false;
};

}  // namespace

HttpServer::HttpServer(HttpTimeouts timeouts) : timeouts_(timeouts) {
  set_keep_alive_timeout(
      std::max<time_t>(1, std::chrono::floor<std::chrono::seconds>(timeouts.idle).count()));
}

void HttpServer::cut_off() {
  const std::scoped_lock lock(serving_mutex_);
  cut_off_ = true;
  for (const int fd : serving_) shutdown(fd, SHUT_RDWR);
}

After HttpServer::serve(const Connection& connection, std::size_t head_bytes, bool then_close) {
  {
    const std::scoped_lock lock(serving_mutex_);
    if (cut_off_) return After::Close;
    serving_.insert(connection.fd.get());
  }
  const After after = answer(connection, head_bytes, then_close);
  const std::scoped_lock lock(serving_mutex_);
  serving_.erase(connection.fd.get());
  return after;
}

After HttpServer::answer(const Connection& connection, std::size_t head_bytes, bool then_close) {
  std::string head(head_bytes, '\0');
  const ssize_t got = recv(connection.fd.get(), head.data(), head.size(), 0);
  // The doorman saw them all, and nobody else reads.
  if (got != static_cast<ssize_t>(head_bytes)) return After::Close;

  say_that_no_body_follows(head);
  rename_range(head);
  RequestStream stream(connection, std::move(head), timeouts_);
  then_close = then_close || svr_sock_ == INVALID_SOCKET;
  bool closed = false;
  bool complete = false;
  try {
    complete =
        process_request(stream, connection.peer.host, connection.peer.port, connection.local.host,
                        connection.local.port, then_close, closed, &leave_out_brotli);
  } catch (...) {
    // Handlers' exceptions become a 500 in there; this is a content provider's,
    // in the middle of the body. A connection cut short tells the client.
    return After::Close;
  }
  if (stream.output_failed()) return After::Close;
  const bool done =
      !complete || closed || then_close || stream.input_failed() || stream.status() >= 400;
  return done ? After::Linger : After::KeepOpen;
}

}  // namespace tt::door
