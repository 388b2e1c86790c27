// cpp-httplib as what it is good at: parsing a request, routing it and writing
// the response, on a connection that is ours.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <unordered_set>

#include "server/door/detail/connection.h"
#include "server/door/detail/doorman.h"

namespace tt::door {

struct HttpTimeouts {
  std::chrono::milliseconds idle{};  // told to clients (Keep-Alive)
  // What a whole body may take, and how long a response may wait for its reader
  // in all; each kMinBytesPerSecond of them adds a second.
  std::chrono::milliseconds body{};
  std::chrono::milliseconds io{};  // also: one read or write
};

inline constexpr std::int64_t kMinBytesPerSecond = 16 * 1024;

// Set in a request's headers for handlers to see; a client's own is taken off.
inline constexpr const char* kStrangerHeader = "TT-Stranger";

class HttpServer final : public httplib::Server {
 public:
  // DoorOptions::on_status and on_answer, called on workers.
  HttpServer(HttpTimeouts timeouts, RefusalRenderer renderer,
             std::function<void(const Answered&)> on_status,
             std::function<void(const Answered&)> on_answer);

  // cpp-httplib ends streams when its listening socket is gone; ours stands in.
  void begin(int listening_fd) { svr_sock_ = listening_fd; }
  // Streams end after the call of their provider that is in progress, and no
  // connection is kept open.
  void begin_stop() { svr_sock_ = INVALID_SOCKET; }
  // Fails every read and write of the requests in progress.
  void cut_off();

  // Answers the request whose head is the next `head_bytes` of its socket.
  // Consumes that request and nothing behind it.
  After serve(const Admitted& request);

 private:
  After answer(const Admitted& request, Answered& told);

  const HttpTimeouts timeouts_;
  const RefusalRenderer renderer_;
  const std::function<void(const Answered&)> on_status_;
  const std::function<void(const Answered&)> on_answer_;
  std::mutex serving_mutex_;
  std::unordered_set<int> serving_;  // descriptors; guarded by serving_mutex_
  bool cut_off_ = false;             // guarded by serving_mutex_
};

}  // namespace tt::door
