// Uses cpp-httplib to parse a request, route it and write the response on an existing
// connection.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <unordered_set>

#include "server/frontend/detail/connection.h"
#include "server/frontend/detail/connection_acceptor.h"
#include "server/frontend/handler_slot.h"

namespace tt::frontend {

struct HttpTimeouts {
  std::chrono::milliseconds idle{};  // sent to clients (Keep-Alive)
  // Time for a whole body, and total time a response may wait for its reader; each
  // kMinBytesPerSecond bytes add one second.
  std::chrono::milliseconds body{};
  std::chrono::milliseconds io{};  // also for one read or write
};

inline constexpr std::int64_t kMinBytesPerSecond = 16 * 1024;

// Request header set for handlers; the value sent by a client is removed.
inline constexpr const char* kUnauthenticatedHeader = "TT-Stranger";

class HttpServer final : public httplib::Server {
 public:
  // HttpFrontendOptions::on_status and on_complete, called on worker threads.
  HttpServer(HttpTimeouts timeouts, RejectionRenderer renderer,
             std::function<void(const RequestRecord&)> on_status,
             std::function<void(const RequestRecord&)> on_complete);

  // cpp-httplib ends streams when its listening socket is closed; pass it the real one.
  void begin(int listening_fd) { svr_sock_ = listening_fd; }
  // Streams end after the current call of their content provider, and no connection is kept
  // open.
  void begin_stop() { svr_sock_ = INVALID_SOCKET; }
  // Fails every read and write of the requests in progress.
  void abort_requests();

  // Serves the request whose head is Connection::head_begin and the next `head_bytes` of its
  // socket. Consumes that
  // request and nothing after it. `slots`: null for a request whose handler is not limited.
  ConnectionAction serve(const AcceptedRequest& request, HandlerSlots* slots);

 private:
  ConnectionAction respond(const AcceptedRequest& request, RequestRecord& record);

  const HttpTimeouts timeouts_;
  const RejectionRenderer renderer_;
  const std::function<void(const RequestRecord&)> on_status_;
  const std::function<void(const RequestRecord&)> on_complete_;
  std::mutex serving_mutex_;
  std::unordered_set<int> serving_;  // descriptors; guarded by serving_mutex_
  bool aborted_ = false;             // guarded by serving_mutex_
};

}  // namespace tt::frontend
