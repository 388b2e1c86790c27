// Acceptor thread: accepts connections and holds the waiting ones. It does not consume data:
// it peeks at the bytes of a request head until the blank line has arrived, then passes the
// connection on with all bytes still in the socket.
//
// The exception is an incomplete head at the end of pipelined requests. The kernel keeps the memory
// of a packet (on loopback 64 KiB and more) until its last byte is taken. With a few bytes of a
// head left in such a packet, it would close the receive window, and the rest of the head could
// never arrive. So these bytes are taken (Connection::head_begin).
//
// Waiting connections are edge-triggered in epoll, so an incomplete head wakes the thread once
// per packet and does not cause a busy loop.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "server/frontend/detail/connection.h"
#include "server/frontend/detail/listener.h"
#include "server/frontend/detail/request_decision.h"
#include "server/frontend/request_record.h"

namespace tt::frontend {

// What to do with a connection after a response.
enum class ConnectionAction {
  KeepOpen,  // wait for the next request
  Linger,    // shut down, let the peer read the response, then close
  Close,     // broken, or the response is incomplete
};

struct AcceptorOptions {
  DecisionRules rules;
  RejectionRenderer renderer;  // may be empty
  std::size_t max_connections = 0;
  std::size_t max_connections_per_peer = 0;
  std::chrono::milliseconds idle_timeout{};
  std::chrono::milliseconds head_timeout{};
};

// An accepted request, whose head is complete.
struct AcceptedRequest {
  ConnectionPtr connection;
  std::size_t head_bytes = 0;  // in the socket, after Connection::head_begin
  Serve decision;
  std::string common_headers;  // for the response
  RequestRecord record;        // filled from the head; completed after the response
};

// Allocated and freed by the acceptor: a worker that frees memory of the acceptor's arena, and
// loses its processor meanwhile, would hold up the acceptor at its next allocation.
using AcceptedRequestPtr = std::unique_ptr<AcceptedRequest>;

// on_request and on_upgrade are called on the acceptor thread and must not block.
struct AcceptorCallbacks {
  // The callee must return the request, as it was, with return_request().
  std::function<void(AcceptedRequestPtr)> on_request;
  // WebSocket upgrade. Takes ownership of the connection, or returns it when there is no
  // capacity.
  std::function<ConnectionPtr(ConnectionPtr, Upgrade)> on_upgrade;
  // As in HttpFrontendOptions, for requests answered by the acceptor and for WebSocket upgrades
  // (101).
  std::function<void(const RequestRecord&)> on_status;
  std::function<void(const RequestRecord&)> on_complete;
};

class ConnectionAcceptor {
 public:
  // `access` must outlive this object.
  ConnectionAcceptor(AcceptorOptions options, Authenticator& authenticator,
                     AcceptorCallbacks callbacks);
  ~ConnectionAcceptor() { stop(); }
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  std::expected<void, std::string> start(Listener listener);

  // Closes the listening socket and all waiting connections, joins the thread. Idempotent.
  void stop();

  // Returns a request after its response. Any thread, also after stop().
  void return_request(AcceptedRequestPtr request, ConnectionAction after);

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { Waiting, Lingering };
  struct Parked {
    ConnectionPtr connection;
    State state = State::Waiting;
    std::size_t seen = 0;  // bytes of the head that were checked
    Clock::time_point deadline;
  };
  using ParkedMap = std::unordered_map<int, Parked>;  // by descriptor

  void loop();
  void accept_all();
  void pause_accepting();
  bool evict_waiting(const std::string& peer = {});
  void take_returned();
  void park(ConnectionPtr connection);
  void on_event(ParkedMap::iterator at, std::uint32_t events);
  void inspect_head(ParkedMap::iterator at, bool peer_ended);
  void decide(ParkedMap::iterator at, std::string_view head);
  void log_request(const RequestRecord& record) const;
  std::string response_to(const RequestHead& head, const Reply& reply, RequestRecord record) const;
  std::string headers_for(const RequestHead& head, const std::string& request_id) const;
  Reply reply_to(const Rejection& rejection) const {
    return reply_of(rejection, options_.renderer);
  }
  void respond(ConnectionPtr connection, const std::string& response);
  void linger(ConnectionPtr connection);
  void drain(ParkedMap::iterator at);
  ConnectionPtr unpark(ParkedMap::iterator at);
  void set_deadline(Parked& parked, std::chrono::milliseconds from_now);
  void sweep(Clock::time_point now);
  int wait_ms() const;

  const AcceptorOptions options_;
  Authenticator& authenticator_;
  const AcceptorCallbacks callbacks_;
  Fd epoll_;
  Fd wake_;  // eventfd: a request was returned, or stop
  Fd listener_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;

  std::mutex returned_mutex_;
  using Returned = std::vector<std::pair<AcceptedRequestPtr, ConnectionAction>>;
  Returned returned_;    // guarded by returned_mutex_
  bool closed_ = false;  // guarded: the thread has ended

  const std::shared_ptr<PeerSlots> slots_ = std::make_shared<PeerSlots>();
  // Used only by the acceptor thread.
  ParkedMap parked_;
  Returned taken_;  // empty; its room is exchanged with returned_, so that neither is allocated
  std::size_t in_service_ = 0;                                 // held by workers
  Clock::time_point next_deadline_{Clock::time_point::max()};  // lower bound of all deadlines
  Clock::time_point accept_again_{Clock::time_point::max()};   // end of the pause in accepting
  std::array<char, kMaxHeadBytes> buffer_{};
};

}  // namespace tt::frontend
