// cpp-httplib as what it is good at: parsing a request, routing it and writing
// the response, on a connection that is ours.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <unordered_set>

#include "server/door/detail/connection.h"
#include "server/door/detail/doorman.h"

namespace tt::door {

struct HttpTimeouts {
  std::chrono::milliseconds idle{};  // told to clients (Keep-Alive)
  std::chrono::milliseconds body{};  // a request's whole body
  std::chrono::milliseconds io{};    // one read or write
};

class HttpServer final : public httplib::Server {
 public:
  explicit HttpServer(HttpTimeouts timeouts);

  // cpp-httplib ends streams when its listening socket is gone; ours stands in.
  void begin(int listening_fd) { svr_sock_ = listening_fd; }
  // Streams end after the call of their provider that is in progress, and no
  // connection is kept open.
  void begin_stop() { svr_sock_ = INVALID_SOCKET; }
  // Fails every read and write of the requests in progress.
  void cut_off();

  // Answers the request whose head is the next `head_bytes` of the socket.
  // Consumes that request and nothing behind it.
  After serve(const Connection& connection, std::size_t head_bytes, bool then_close);

 private:
  After answer(const Connection& connection, std::size_t head_bytes, bool then_close);

  const HttpTimeouts timeouts_;
  std::mutex serving_mutex_;
  std::unordered_set<int> serving_;  // descriptors; guarded by serving_mutex_
  bool cut_off_ = false;             // guarded by serving_mutex_
};

}  // namespace tt::door
