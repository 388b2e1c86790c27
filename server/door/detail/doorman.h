// The thread that accepts connections and keeps all that wait. It reads nothing
// for good: it looks at the bytes of a request head until the blank line is
// there, then hands the connection on with every byte still in the socket.
//
// Waiting without spinning: descriptors of connections that wait for (more of)
// a head are edge triggered, so an incomplete head wakes the thread once per
// packet, not for as long as it lies there.
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

// What becomes of a connection after a response.
enum class After {
  KeepOpen,  // the next request may come
  Linger,    // we are done: tell the peer, let it read, then close
  Close,     // broken, or the response could not be finished
};

struct DoormanOptions {
  VerdictRules rules;
  RefusalRenderer renderer;  // may be empty
  std::size_t max_connections = 0;
  std::size_t max_connections_per_peer = 0;
  std::chrono::milliseconds idle_timeout{};
  std::chrono::milliseconds head_timeout{};
};

// A request that was let in, complete up to its blank line.
struct Admitted {
  ConnectionPtr connection;
  std::size_t head_bytes = 0;
  Serve how;
  std::string standing_headers;  // for its response
  Answered told;                 // of its head; the rest is filled in when it is answered
};

// Both are called on the doorman's thread and must not block.
struct DoormanCalls {
  // Whoever takes the connection gives it back with give_back().
  std::function<void(Admitted)> on_request;
  // An upgrade to WebSocket. The connection is taken for good, or given back as
  // the result when there is no room.
  std::function<ConnectionPtr(ConnectionPtr, Upgrade)> on_upgrade;
  // DoorOptions', of what was answered here, or became a WebSocket (101).
  std::function<void(const Answered&)> on_status;
  std::function<void(const Answered&)> on_answer;
};

class Doorman {
 public:
  // `access` outlives the doorman.
  Doorman(DoormanOptions options, Access& access, DoormanCalls calls);
  ~Doorman() { stop(); }
  Doorman(const Doorman&) = delete;
  Doorman& operator=(const Doorman&) = delete;

  std::expected<void, std::string> start(Listener listener);

  // Closes the listening socket and what waits, joins. Safe to repeat.
  void stop();

  // From a worker, any thread, also after stop().
  void give_back(ConnectionPtr connection, After after);

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { Waiting, Lingering };
  struct Parked {
    ConnectionPtr connection;
    State state = State::Waiting;
    std::size_t seen = 0;  // bytes of the head that were looked at
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
  Fd wake_;  // eventfd: something was given back, or stop
  Fd listener_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;

  std::mutex returned_mutex_;
  std::vector<std::pair<ConnectionPtr, After>> returned_;  // guarded by returned_mutex_
  bool closed_ = false;                                    // guarded: nobody takes any more

  const std::shared_ptr<PeerSlots> slots_ = std::make_shared<PeerSlots>();
  // The thread's own.
  ParkedMap parked_;
  std::size_t in_service_ = 0;                                 // handed to workers, not yet back
  Clock::time_point next_deadline_{Clock::time_point::max()};  // not after the earliest
  Clock::time_point accept_again_{Clock::time_point::max()};   // set while accepting pauses
  std::array<char, kMaxHeadBytes> buffer_{};
};

}  // namespace tt::door
