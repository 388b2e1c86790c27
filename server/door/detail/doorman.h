// Acceptor thread: accepts connections and holds the waiting ones. It does not consume data:
// it peeks at the bytes of a request head until the blank line has arrived, then passes the
// connection on with all bytes still in the socket.
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

#include "server/door/answered.h"
#include "server/door/detail/connection.h"
#include "server/door/detail/listener.h"
#include "server/door/detail/verdict.h"

namespace tt::door {

// What to do with a connection after a response.
enum class After {
  KeepOpen,  // wait for the next request
  Linger,    // shut down, let the peer read the response, then close
  Close,     // broken, or the response is incomplete
};

struct DoormanOptions {
  VerdictRules rules;
  RefusalRenderer renderer;  // may be empty
  std::size_t max_connections = 0;
  std::size_t max_connections_per_peer = 0;
  std::chrono::milliseconds idle_timeout{};
  std::chrono::milliseconds head_timeout{};
};

// An accepted request, whose head is complete.
struct Admitted {
  ConnectionPtr connection;
  std::size_t head_bytes = 0;
  Serve how;
  std::string standing_headers;  // for the response
  Answered told;                 // filled from the head; completed after the response
};

// on_request and on_upgrade are called on the acceptor thread and must not block.
struct DoormanCalls {
  // The callee must return the connection with give_back().
  std::function<void(Admitted)> on_request;
  // WebSocket upgrade. Takes ownership of the connection, or returns it when there is no
  // capacity.
  std::function<ConnectionPtr(ConnectionPtr, Upgrade)> on_upgrade;
  // As in DoorOptions, for requests answered by the acceptor and for WebSocket upgrades (101).
  std::function<void(const Answered&)> on_status;
  std::function<void(const Answered&)> on_answer;
};

class Doorman {
 public:
  // `access` must outlive this object.
  Doorman(DoormanOptions options, Access& access, DoormanCalls calls);
  ~Doorman() { stop(); }
  Doorman(const Doorman&) = delete;
  Doorman& operator=(const Doorman&) = delete;

  std::expected<void, std::string> start(Listener listener);

  // Closes the listening socket and all waiting connections, joins the thread. Idempotent.
  void stop();

  // Returns a connection after its response. Any thread, also after stop().
  void give_back(ConnectionPtr connection, After after);

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
  bool make_room(const std::string& peer = {});
  void take_returned();
  void park(ConnectionPtr connection);
  void on_event(ParkedMap::iterator at, std::uint32_t events);
  void look_at_head(ParkedMap::iterator at, bool peer_ended);
  void decide(ParkedMap::iterator at, std::string_view head);
  void tell(const Answered& told) const;
  std::string response_to(const RequestHead& head, const Reply& reply, Answered told) const;
  std::string headers_for(const RequestHead& head, const std::string& request_id) const;
  Reply reply_to(const Refusal& refusal) const { return reply_of(refusal, options_.renderer); }
  void answer(ConnectionPtr connection, const std::string& response);
  void linger(ConnectionPtr connection);
  void drain(ParkedMap::iterator at);
  ConnectionPtr unpark(ParkedMap::iterator at);
  void set_deadline(Parked& parked, std::chrono::milliseconds from_now);
  void sweep(Clock::time_point now);
  int wait_ms() const;

  const DoormanOptions options_;
  Access& access_;
  const DoormanCalls calls_;
  Fd epoll_;
  Fd wake_;  // eventfd: a connection was returned, or stop
  Fd listener_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;

  std::mutex returned_mutex_;
  std::vector<std::pair<ConnectionPtr, After>> returned_;  // guarded by returned_mutex_
  bool closed_ = false;                                    // guarded: the thread has ended

  const std::shared_ptr<PeerSlots> slots_ = std::make_shared<PeerSlots>();
  // Used only by the acceptor thread.
  ParkedMap parked_;
  std::size_t in_service_ = 0;                                 // held by workers
  Clock::time_point next_deadline_{Clock::time_point::max()};  // lower bound of all deadlines
  Clock::time_point accept_again_{Clock::time_point::max()};   // end of the pause in accepting
  std::array<char, kMaxHeadBytes> buffer_{};
};

}  // namespace tt::door
