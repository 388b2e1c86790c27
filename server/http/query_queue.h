// Bounded queue for expensive queries: those that read every step of a session and can take a
// minute. Equal queries share one computation. A few are computed at a time, and some wait for
// their turn, in order; beyond that, clients get a 503 with Retry-After. Queries of small sessions
// have a queue of their own, so that they do not wait for those of large sessions.
//
//   queue.respond(request, response, {sessions.tag(id), size}, [&](auto& out, auto& keep_going) {
//     ...
//     respond(out, to_json(found));
//   });
//
// A query is computed at low priority, while the worker threads of its clients wait. It continues
// while any of them is connected.
//
// Any thread.
#pragma once

#include <httplib.h>

#include <atomic>
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

#include "analysis/common/page.h"

namespace tt {

class QueryQueue {
 public:
  struct Limits {
    std::size_t running = 2;  // of large and of small sessions each
    std::size_t waiting = 8;  // likewise
    // Clients that wait for a computation of another client; each occupies a worker thread.
    std::size_t sharing = 32;
  };
  // The data of a query.
  struct Subject {
    // Of the session files. Requests are equal if they have the same version and target. Without
    // a version (the session is being recorded) they are never equal.
    std::optional<std::string> version;
    bool small = false;
  };
  struct Stats {
    std::size_t running = 0, waiting = 0, sharing = 0;
    std::uint64_t rejected = 0;  // in total
  };
  using Compute = std::function<void(httplib::Response&, const ContinueCheck& keep_going)>;

  QueryQueue() : QueryQueue(Limits()) {}
  explicit QueryQueue(const Limits& limits) : limits_(limits) {}

  // Sends what `compute` responds; it gets a copy of `response` as it is now.
  void respond(const httplib::Request& request, httplib::Response& response, const Subject& subject,
               const Compute& compute);

  // Cancels all queries, also later ones: their clients get a 503.
  void stop();

  Stats stats() const;

 private:
  // One computation and its clients.
  struct Flight {
    std::atomic<std::size_t> sharing = 0;  // clients except the one that computes
    bool ended = false;
    bool complete = false;  // `response` is valid for every client
    httplib::Response response;
  };
  struct Lane {
    std::deque<const Flight*> queue;
    std::size_t running = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  // Called with mutex_ locked. Both return false when the clients have disconnected.
  bool wait_for_turn(Lock& lock, Lane& lane, const Flight& flight, const ContinueCheck& keep_going);
  bool wait_for_end(Lock& lock, Flight& flight, const ContinueCheck& connected);
  // Waits for its turn and computes. Returns the exception that `compute` threw.
  std::exception_ptr run(Lock& lock, Lane& lane, Flight& flight, const ContinueCheck& connected,
                         const Compute& compute);

  const Limits limits_;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;  // guards the members below and those of all flights
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Flight>> shared_;  // not ended yet, by version and target
  Lane large_, small_;
  std::size_t sharing_ = 0;
  std::uint64_t rejected_ = 0;
};

}  // namespace tt
