#include "server/frontend/detail/http_server.h"

#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <format>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/frontend/arrival.h"
#include "server/frontend/detail/chunk_framing.h"
#include "server/frontend/detail/request_head.h"
#include "server/frontend/detail/request_id.h"
#include "server/frontend/frontend.h"
#include "server/frontend/handler_slot.h"
#include "server/frontend/range_field.h"

namespace tt::frontend {
namespace {

// cpp-httplib includes the CRLF in the line length.
static_assert(kMaxFieldBytes + 2 <= CPPHTTPLIB_HEADER_MAX_LENGTH);
static_assert(kMaxFields <= CPPHTTPLIB_HEADER_MAX_COUNT);
static_assert(kMaxHeadBytes <= CPPHTTPLIB_MAX_LINE_LENGTH);

using Clock = std::chrono::steady_clock;

// Returns false on timeout or error.
bool wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// Removes brotli from the accepted encodings. cpp-httplib uses the slowest level: 70 ms for 50
// KB, where zstd and gzip take 0.2 ms.
void remove_brotli(httplib::Request& request) {
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

// cpp-httplib would decompress the body to any size. The body is measured and passed on as
// sent; a compressed body is neither valid JSON nor a valid session.
void remove_content_encoding(httplib::Request& request) {
  request.headers.erase("Content-Encoding");
}

// Removes credentials that have been checked, so that no handler can log or echo them.
void remove_credentials(httplib::Request& request) {
  request.headers.erase("Authorization");
  request.headers.erase("Cookie");
  request.headers.erase(kUnauthenticatedHeader);
}

// Sets the request id for handlers.
void set_request_id(httplib::Request& request, const std::string& id) {
  request.headers.erase(kRequestIdField);
  request.set_header(kRequestIdField, id);
}

// The request that this worker thread serves now; a worker serves one at a time. cpp-httplib
// reports the matched route in a callback without context.
thread_local RequestRecord* current_record = nullptr;
thread_local HandlerSlots* current_slots = nullptr;  // null: the request needs none

// A request without Content-Length and Transfer-Encoding has no body. cpp-httplib waits for
// the body of a DELETE nevertheless and then does not keep the connection open.
void add_zero_content_length(std::string& head) {
  const auto parsed = parse_request_head(head);
  if (!parsed || parsed->method == "GET" || parsed->method == "HEAD" ||
      parsed->count("Content-Length") > 0 || parsed->count("Transfer-Encoding") > 0) {
    return;
  }
  constexpr std::string_view kLineEnd = "\r\n";
  head.insert(head.size() - kLineEnd.size(), "Content-Length: 0\r\n");
}

// cpp-httplib does not know the absolute form, "GET http://host/path HTTP/1.1".
void use_origin_form(std::string& head) {
  const auto parsed = parse_request_head(head);
  if (!parsed || parsed->authority.empty()) return;
  const std::string target(parsed->target);
  const auto first = head.find(' '), last = head.rfind(' ', head.find("\r\n"));
  head.replace(first + 1, last - first - 1, target);
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

// Stream from which cpp-httplib reads a request and to which it writes the response. The head
// comes from memory, the body directly from the socket and never beyond the requested size,
// because further bytes belong to the next request.
class RequestStream final : public httplib::Stream {
 public:
  // `on_status` is called with the final status before any byte of the response is sent.
  RequestStream(const AcceptedRequest& request, std::string head, HttpTimeouts timeouts,
                const RejectionRenderer& renderer, std::function<void(int)> on_status)
      : request_(request),
        connection_(*request.connection),
        head_(std::move(head)),
        timeouts_(timeouts),
        renderer_(renderer),
        on_status_(std::move(on_status)) {
    const auto parsed = parse_request_head(head_);
    if (parsed && parsed->count("Transfer-Encoding") > 0) chunks_.emplace();
  }

  bool is_readable() const override { return at_ < head_.size(); }
  bool wait_readable() const override {
    return is_readable() || wait_for(fd(), POLLIN, std::min(io_deadline(), body_deadline()));
  }
  // A client may pause reading, but not after every byte.
  bool wait_writable() const override {
    const auto began = Clock::now();
    const Clock::duration left = timeouts_.io + time_allowance(sent_bytes_) - waited_;
    const bool ready =
        wait_for(fd(), POLLOUT, began + std::min<Clock::duration>(timeouts_.io, left));
    waited_ += Clock::now() - began;
    return ready;
  }
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
    if (body_bytes_ > request_.decision.max_body + kChunkLines) return fail_too_large();
    for (;;) {
      if (!wait_readable()) {
        failure_ =
            Rejection{RejectionReason::Timeout, "The request body was not received in time."};
        return fail_input(httplib::Error::Timeout, -1);
      }
      const ssize_t got = recv(fd(), out, size, 0);
      if (got > 0) {
        body_bytes_ += static_cast<std::uint64_t>(got);
        if (chunks_) {
          const auto wrong = chunks_->take({out, static_cast<std::size_t>(got)});
          if (!wrong.empty()) {
            failure_ = malformed_request(wrong);
            return fail_input(httplib::Error::Read, -1);
          }
          if (chunks_->data_bytes() > request_.decision.max_body) return fail_too_large();
        }
        return got;
      }
      if (got == 0) return fail_input(httplib::Error::ConnectionClosed, 0);
      if (errno != EAGAIN && errno != EINTR) return fail_input(httplib::Error::Read, -1);
    }
  }

  ssize_t write(const char* data, std::size_t size) override {
    const std::string_view text(data, size);
    if (output_replaced_) return static_cast<ssize_t>(size);
    if (!begins_response(text)) return write_some(text);
    // The head is written in one call. Add the common response headers here.
    const auto line_end = text.find("\r\n");
    if (line_end == std::string_view::npos) return write_some(text);
    std::string head;
    if (failure_) {
      // cpp-httplib does not know why its input ended.
      const Reply reply = reply_of(*failure_, renderer_);
      status_ = reply.status;
      output_replaced_ = true;
      head = to_response(reply, "", request_.common_headers);
    } else {
      head.append(text.substr(0, line_end + 2));
      head += common_headers_for(text);
      head.append(text.substr(line_end + 2));
    }
    on_status_(status_);
    for (std::string_view rest = head; !rest.empty();) {
      const ssize_t sent = write_some(rest);
      if (sent < 0) return -1;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    return static_cast<ssize_t>(size);
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
  // The body is incomplete, so the start of the next request is unknown.
  bool input_failed() const { return input_failed_; }
  int status() const { return status_; }  // of the final response; 0 before it
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  const std::optional<Rejection>& failure() const { return failure_; }

 private:
  // Chunk sizes and delimiters are added to the body size.
  static constexpr std::uint64_t kChunkLines = 64 * 1024;

  int fd() const { return connection_.fd.get(); }
  Clock::time_point io_deadline() const { return Clock::now() + timeouts_.io; }
  static std::chrono::milliseconds time_allowance(std::uint64_t bytes) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(bytes) * 1000 / kMinBytesPerSecond);
  }
  Clock::time_point body_deadline() const {
    return started_ + timeouts_.body + time_allowance(body_bytes_);
  }

  ssize_t fail_input(httplib::Error error, ssize_t result) {
    input_failed_ = true;
    error_ = error;
    return result;
  }

  ssize_t fail_too_large() {
    failure_ =
        Rejection{RejectionReason::BodyTooLarge,
                  std::format("The body is larger than {} bytes.", request_.decision.max_body)};
    return fail_input(httplib::Error::ExceedMaxPayloadSize, -1);
  }

  // A handler may set its own policy; with two a browser would apply both.
  std::string_view common_headers_for(std::string_view head) const {
    std::string_view lines = request_.common_headers;
    if (head.contains("\r\nContent-Security-Policy: ")) {
      lines.remove_prefix(lines.find("\r\n") + 2);
    }
    return lines;
  }

  // Writes once, as many bytes as the socket accepts.
  ssize_t write_some(std::string_view text) {
    while (!output_failed_) {
      const ssize_t sent = send(fd(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        sent_bytes_ += static_cast<std::uint64_t>(sent);
        return sent;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) break;
      if (!wait_writable()) break;
    }
    output_failed_ = true;
    error_ = httplib::Error::Write;
    return -1;
  }

  // Returns true when `data` is the head of the final response (not of a 100), and stores its
  // status: cpp-httplib sends "Connection: close" with every error status but does not report
  // this to the caller.
  bool begins_response(std::string_view data) {
    constexpr std::string_view kVersion = "HTTP/1.1 ";
    if (status_ >= 200 || !data.starts_with(kVersion)) return false;
    data.remove_prefix(kVersion.size());
    std::from_chars(data.data(), data.data() + std::min<std::size_t>(3, data.size()), status_);
    return status_ >= 200;
  }

  const AcceptedRequest& request_;
  const Connection& connection_;
  const std::string head_;
  const HttpTimeouts timeouts_;
  const RejectionRenderer& renderer_;
  const std::function<void(int)> on_status_;
  const Clock::time_point started_ = Clock::now();
  std::optional<ChunkFraming> chunks_;  // of a chunked body
  std::size_t at_ = 0;
  std::uint64_t body_bytes_ = 0;
  std::uint64_t sent_bytes_ = 0;
  mutable Clock::duration waited_{};  // total time waiting for the client
  int status_ = 0;
  std::optional<Rejection> failure_;  // why the input ended, if decided here
  bool output_replaced_ = false;      // further output of cpp-httplib is discarded
  bool input_failed_ = false;
  bool output_failed_ = false;
};

}  // namespace

HttpServer::HttpServer(HttpTimeouts timeouts, RejectionRenderer renderer,
                       std::function<void(const RequestRecord&)> on_status,
                       std::function<void(const RequestRecord&)> on_complete)
    : timeouts_(timeouts),
      renderer_(std::move(renderer)),
      on_status_(std::move(on_status)),
      on_complete_(std::move(on_complete)) {
  set_pre_routing_handler([](const httplib::Request& request, httplib::Response&) {
    constexpr std::chrono::seconds kPatience{3};
    // Reading a body may take long.
    const bool has_body = request.has_header("Transfer-Encoding") ||
                          request.get_header_value_u64("Content-Length") > 0;
    if (current_slots != nullptr && !has_body)
      current_slots->take(current_record->arrival + kPatience);
    return HandlerResponse::Unhandled;
  });
  // Called before the head of each response is written, when its body is compressed.
  set_post_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    HandlerSlots::give_back();
    if (current_record == nullptr) return;
    current_record->route = request.matched_route;
    if (const auto* note = response.user_data.get<std::string>(kLogNote))
      current_record->note = *note;
  });
  // The path-dependent limits of the front end apply instead.
  set_payload_max_length(std::numeric_limits<std::size_t>::max());
  set_keep_alive_timeout(
      std::max<time_t>(1, std::chrono::floor<std::chrono::seconds>(timeouts.idle).count()));
}

void HttpServer::abort_requests() {
  const std::scoped_lock lock(serving_mutex_);
  aborted_ = true;
  for (const int fd : serving_) shutdown(fd, SHUT_RDWR);
}

ConnectionAction HttpServer::serve(const AcceptedRequest& request, HandlerSlots* slots) {
  const int fd = request.connection->fd.get();
  {
    const std::scoped_lock lock(serving_mutex_);
    if (aborted_) return ConnectionAction::Close;
    serving_.insert(fd);
  }
  RequestRecord record = request.record;
  current_slots = slots;
  const ConnectionAction after = respond(request, record);
  HandlerSlots::give_back();
  if (record.status == 0 && on_status_) on_status_(record);  // no response was sent
  if (on_complete_) {
    record.time =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - record.arrival);
    on_complete_(record);
  }
  const std::scoped_lock lock(serving_mutex_);
  serving_.erase(fd);
  return after;
}

ConnectionAction HttpServer::respond(const AcceptedRequest& request, RequestRecord& record) {
  const Connection& connection = *request.connection;
  std::string head = std::exchange(request.connection->head_begin, {});
  const std::size_t taken = head.size();
  head.resize(taken + request.head_bytes);
  const ssize_t got = recv(connection.fd.get(), head.data() + taken, request.head_bytes, 0);
  // The acceptor saw all of these bytes, and there is no other reader.
  if (got != static_cast<ssize_t>(request.head_bytes)) return ConnectionAction::Close;

  add_zero_content_length(head);
  rename_range(head);
  use_origin_form(head);
  RequestStream stream(request, std::move(head), timeouts_, renderer_, [&](int status) {
    record.status = status;
    if (on_status_) on_status_(record);
  });
  const bool close_after = request.decision.close_after || svr_sock_ == INVALID_SOCKET;
  bool closed = false;
  bool complete = false;
  bool thrown = false;
  current_record = &record;
  try {
    complete =
        process_request(stream, connection.peer.host, connection.peer.port, connection.local.host,
                        connection.local.port, close_after, closed, [&](httplib::Request& parsed) {
                          remove_brotli(parsed);
                          remove_content_encoding(parsed);
                          remove_credentials(parsed);
                          set_request_id(parsed, record.request_id);
                          set_arrival(parsed, record.arrival);
                          if (request.decision.unauthenticated)
                            parsed.set_header(kUnauthenticatedHeader, "1");
                        });
  } catch (...) {
    // process_request() converts exceptions of handlers to 500. This one is from a content
    // provider during the body; closing the connection signals the error to the client.
    thrown = true;
  }
  current_record = nullptr;
  record.status = stream.status();
  record.bytes = stream.sent_bytes();
  if (const auto& failure = stream.failure()) record.note = failure->why;
  if (thrown || stream.output_failed()) return ConnectionAction::Close;
  const bool done =
      !complete || closed || close_after || stream.input_failed() || stream.status() >= 400;
  return done ? ConnectionAction::Linger : ConnectionAction::KeepOpen;
}

}  // namespace tt::frontend
