// Computes the queries of sessions on a few threads of low priority, and answers every client in
// time.
//
//   queue.respond(request, response, {sessions.tag(id), is_small}, [=](auto& out, auto& keep_going)
//   {
//     ...
//     respond(out, to_json(found));
//   });
//
// A query that is not computed in time (Limits::patience) is answered with 503 and Retry-After, and
// computed further: a client that repeats its request finds it again, and gets the result at once
// when it is ready. If no client repeats it, it is cancelled: soon, if the last one closed its
// connection while it waited. Results that such a client has not received yet are kept for a
// minute, in the CacheRoom.
//
// Equal queries share one computation. A few are computed at a time, and some wait for their turn,
// in order; beyond that, clients get a 503 at once. Small queries, which take less than a second,
// have threads of their own, so that they do not wait for large ones.
//
// Any thread.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "analysis/common/page.h"
#include "server/sessions/cache_room.h"

namespace tt {

class QueryQueue {
 public:
  struct LaneLimits {
    std::size_t running = 0;  // computations at a time
    std::size_t waiting = 0;  // computations that wait for their turn
    std::size_t clients = 0;  // that wait for an answer; each occupies a worker thread
  };
  struct Limits {
    LaneLimits large{.running = 2, .waiting = 8, .clients = 40};
    LaneLimits small{.running = 4, .waiting = 64, .clients = 64};
    std::chrono::milliseconds patience{3000};  // from the arrival of a request to its answer
    // How long a query is computed for clients that got a 503 and may repeat their request.
    std::chrono::milliseconds until_return{15'000};
    std::chrono::milliseconds kept{60'000};  // results for such clients
  };
  // The progress of a computation, which writes `read_bytes`. It is in the 503 of clients that
  // wait.
  struct Progress {
    explicit Progress(std::uint64_t all) : all_bytes(all) {}
    const std::uint64_t all_bytes;
    std::atomic<std::uint64_t> read_bytes = 0;
  };
  // The data of a query.
  struct Subject {
    // Of the session files. Requests are equal if they have the same version, target and body.
    // Without a version (the session is being recorded) a result is shared only by clients that got
    // a 503, and given once: a later request wants the steps recorded since.
    std::optional<std::string> version;
    bool small = false;
    std::string body{};                          // of a POST
    std::shared_ptr<const Progress> progress{};  // of `compute`; null: not known
  };
  struct Stats {
    std::size_t running = 0, waiting = 0;  // computations
    std::size_t clients = 0;               // that wait for an answer
    std::uint64_t rejected = 0;            // in total, because too many were waiting
  };
  // Owns what it needs: it may run after the request was answered.
  using Compute = std::function<void(httplib::Response&, const ContinueCheck& keep_going)>;

  // `room` must outlive the queue.
  explicit QueryQueue(CacheRoom& room) : QueryQueue(room, Limits()) {}
  QueryQueue(CacheRoom& room, const Limits& limits);
  ~QueryQueue() { join(); }
  QueryQueue(const QueryQueue&) = delete;
  QueryQueue& operator=(const QueryQueue&) = delete;

  // Sends what `compute` responds; it gets a copy of `response` as it is now. Throws what
  // `compute` throws.
  void respond(const httplib::Request& request, httplib::Response& response, const Subject& subject,
               Compute compute);

  // Cancels all queries, also later ones: their clients get a 503.
  void stop();
  // stop(), and waits until no query is computed.
  void join();

  Stats stats() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  struct Lane;
  // One computation and its clients.
  struct Flight final : CacheEntry {
    Flight(Lane& of, std::string version_and_target, httplib::Response begun, Compute work,
           std::shared_ptr<const Progress> far)
        : lane(of),
          key(std::move(version_and_target)),
          response(std::move(begun)),
          compute(std::move(work)),
          progress(std::move(far)) {}
    Lane& lane;
    const std::string key;
    httplib::Response response;  // not changed when `ended`
    Compute compute;
    const std::shared_ptr<const Progress> progress;
    std::condition_variable changed;
    // Read by the computation without the mutex.
    std::atomic<std::size_t> clients = 0;
    std::atomic<Clock::time_point> wanted_until = Clock::time_point::min();
    std::atomic<bool> cancelled = false;
    bool told = false;  // a client got a 503
    bool ended = false;
    bool complete = false;  // `response` or `thrown` is valid for every client
    std::exception_ptr thrown;
  };
  using FlightPtr = std::shared_ptr<Flight>;
  struct Lane {
    explicit Lane(const LaneLimits& of) : limits(of) {}
    const LaneLimits limits;
    std::deque<FlightPtr> queue;
    std::condition_variable ready;
    std::size_t running = 0, clients = 0;
    std::vector<std::thread> threads;  // started on demand, idle until stop()
  };
  enum class Outcome : std::uint8_t { Ended, Disconnected, Late };

  bool is_wanted(const Flight& flight) const;
  void work(Lane& lane);
  // The functions below require mutex_.
  FlightPtr find(const std::string& key);
  // Null when too many are running and waiting.
  FlightPtr begin(Lane& lane, const std::string& key, const httplib::Response& response,
                  const Subject& subject, const Compute& compute);
  bool start_thread(Lane& lane);
  Outcome wait(Lock& lock, const FlightPtr& flight, Clock::time_point deadline,
               const ContinueCheck& connected);
  void cancel_unwanted(Lane& lane);  // those that wait for their turn
  void end(const FlightPtr& flight);
  void remove_expired();

  CacheRoom& room_;
  const Limits limits_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;  // guards the members below and those of all flights
  Lane large_, small_;
  // Not ended, by key (version and target); those that can be found.
  std::map<std::string, FlightPtr> flights_;
  std::deque<std::pair<Clock::time_point, std::string>> kept_;  // ended, in the room; oldest first
  std::uint64_t rejected_ = 0;
};

}  // namespace tt
