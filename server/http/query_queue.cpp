#include "server/http/query_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <format>
#include <system_error>
#include <thread>

#include "api/json/problem.h"
#include "server/http/responses.h"
#include "server/http/session_query_handler.h"

namespace tt {

namespace {

constexpr std::chrono::milliseconds kConnectedCheckInterval{50};
// Of computing threads: other requests and inference come first. A thread cannot raise its priority
// again, so each computation has a thread of its own.
constexpr int kNice = 10;

Problem busy() {
  return {ErrorCode::TooManyQueries,
          "Too many expensive queries are running or waiting. Try again in a moment."};
}

}  // namespace

bool QueryQueue::wait_for_turn(Lock& lock, Lane& lane, const Flight& flight,
                               const ContinueCheck& keep_going) {
  lane.queue.push_back(&flight);
  bool wanted = true;
  while (wanted && (lane.queue.front() != &flight || lane.running >= limits_.running)) {
    changed_.wait_for(lock, kConnectedCheckInterval);
    wanted = keep_going();
  }
  std::erase(lane.queue, &flight);
  changed_.notify_all();  // the next one may run, too
  return wanted;
}

bool QueryQueue::wait_for_end(Lock& lock, Flight& flight, const ContinueCheck& connected) {
  ++sharing_;
  ++flight.sharing;
  bool wanted = true;
  while (wanted && !flight.ended) {
    changed_.wait_for(lock, kConnectedCheckInterval);
    wanted = flight.ended || connected();
  }
  --flight.sharing;
  --sharing_;
  return wanted;
}

std::exception_ptr QueryQueue::run(Lock& lock, Lane& lane, Flight& flight,
                                   const ContinueCheck& connected, const Compute& compute) {
  std::atomic<bool> cancelled = false;
  const ContinueCheck keep_going = [&] {
    if (stopping_ || (!connected() && flight.sharing == 0)) cancelled = true;
    return !cancelled;
  };
  if (!wait_for_turn(lock, lane, flight, keep_going)) {
    tt::respond(flight.response, problem_of(cancelled_error()));
    return nullptr;
  }
  ++lane.running;
  std::exception_ptr thrown;
  const auto compute_in_background = [&] {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
    try {
      compute(flight.response, keep_going);
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  lock.unlock();
  try {
    std::thread(compute_in_background).join();
  } catch (const std::system_error&) {  // no more threads
    thrown = std::current_exception();
  }
  lock.lock();
  --lane.running;
  flight.complete = !cancelled && !thrown;
  return thrown;
}

void QueryQueue::respond(const httplib::Request& request, httplib::Response& response,
                         const Subject& subject, const Compute& compute) {
  const ContinueCheck connected = while_connected(request);
  const auto& version = subject.version;
  const std::string key = version ? std::format("{} {}", *version, request.target) : "";
  const auto reject = [&] {
    ++rejected_;
    tt::respond(response, busy());
  };
  Lock lock(mutex_);
  for (auto same = shared_.find(key); version && same != shared_.end(); same = shared_.find(key)) {
    const std::shared_ptr<Flight> flight = same->second;
    if (sharing_ >= limits_.sharing) return reject();
    if (!wait_for_end(lock, *flight, connected))
      return tt::respond(response, problem_of(cancelled_error()));
    // Not complete: its clients had disconnected just before this one came.
    if (!flight->complete) continue;
    response = flight->response;
    return;
  }
  if (stopping_) return tt::respond(response, problem_of(cancelled_error()));
  Lane& lane = subject.small ? small_ : large_;
  if (lane.running >= limits_.running && lane.queue.size() >= limits_.waiting) return reject();
  const auto flight = std::make_shared<Flight>();
  flight->response = response;
  if (version) shared_[key] = flight;
  const std::exception_ptr thrown = run(lock, lane, *flight, connected, compute);
  flight->ended = true;
  if (version) shared_.erase(key);
  changed_.notify_all();
  if (thrown) std::rethrow_exception(thrown);
  response = flight->response;
}

void QueryQueue::stop() {
  stopping_ = true;
  changed_.notify_all();
}

QueryQueue::Stats QueryQueue::stats() const {
  const std::scoped_lock lock(mutex_);
  return {.running = large_.running + small_.running,
          .waiting = large_.queue.size() + small_.queue.size(),
          .sharing = sharing_,
          .rejected = rejected_};
}

}  // namespace tt
