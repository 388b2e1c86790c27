#include "server/http/query_queue.h"

#include <pthread.h>

#include <algorithm>
#include <format>
#include <system_error>

#include "api/json/problem.h"
#include "server/frontend/arrival.h"
#include "server/frontend/background_thread.h"
#include "server/frontend/handler_slot.h"
#include "server/http/responses.h"
#include "server/http/session_query_handler.h"

namespace tt {

namespace {

constexpr std::chrono::milliseconds kConnectedCheckInterval{50};

Problem busy() {
  return {ErrorCode::TooManyQueries,
          "Too many queries are running or waiting. Try again in a moment."};
}

Problem late(const QueryQueue::Progress* progress) {
  Problem problem{ErrorCode::TooManyQueries,
                  "The query is still being computed. Repeat the request to get its result; it is "
                  "kept for a minute."};
  if (progress != nullptr)
    problem.progress = {.read_bytes = progress->read_bytes, .all_bytes = progress->all_bytes};
  return problem;
}

}  // namespace

QueryQueue::QueryQueue(CacheRoom& room, const Limits& limits)
    : room_(room), limits_(limits), large_(limits.large), small_(limits.small) {}

bool QueryQueue::is_wanted(const Flight& flight) const {
  return !stopping_ && (flight.clients > 0 || Clock::now() < flight.wanted_until.load());
}

QueryQueue::FlightPtr QueryQueue::find(const std::string& key) {
  if (const auto found = flights_.find(key); found != flights_.end()) {
    if (!found->second->cancelled) return found->second;
    flights_.erase(found);  // its computation is about to end without a result
  }
  return std::static_pointer_cast<Flight>(room_.find({this, key}));
}

bool QueryQueue::start_thread(Lane& lane) {
  if (lane.threads.size() >= lane.limits.running) return true;
  try {
    lane.threads.emplace_back([this, &lane] { work(lane); });
  } catch (const std::system_error&) {
    return !lane.threads.empty();  // an existing one will run it
  }
  return true;
}

void QueryQueue::cancel_unwanted(Lane& lane) {
  std::erase_if(lane.queue, [this](const FlightPtr& flight) {
    if (is_wanted(*flight)) return false;
    end(flight);
    return true;
  });
}

QueryQueue::FlightPtr QueryQueue::begin(Lane& lane, const std::string& key,
                                        const httplib::Response& response, const Subject& subject,
                                        const Compute& compute) {
  const bool is_full =
      lane.running + lane.queue.size() >= lane.limits.running + lane.limits.waiting;
  if (is_full) cancel_unwanted(lane);
  if (lane.running + lane.queue.size() >= lane.limits.running + lane.limits.waiting) return nullptr;
  const bool all_work = lane.running + lane.queue.size() >= lane.threads.size();
  if (all_work && !start_thread(lane)) return nullptr;
  auto flight = std::make_shared<Flight>(lane, key, response, compute, subject.progress);
  lane.queue.push_back(flight);
  lane.ready.notify_one();
  return flight;
}

QueryQueue::Outcome QueryQueue::wait(Lock& lock, const FlightPtr& flight,
                                     Clock::time_point deadline, const ContinueCheck& connected) {
  ++flight->lane.clients;
  ++flight->clients;
  auto outcome = Outcome::Ended;
  while (!flight->ended) {
    const auto now = Clock::now();
    if (now >= deadline) {
      outcome = Outcome::Late;
      break;
    }
    flight->changed.wait_until(lock, std::min(deadline, now + kConnectedCheckInterval));
    if (!flight->ended && !connected()) {
      outcome = Outcome::Disconnected;
      break;
    }
  }
  if (outcome == Outcome::Late) {
    flight->told = true;
    flight->wanted_until = Clock::now() + limits_.until_return;
    flights_.try_emplace(flight->key, flight);
  }
  --flight->lane.clients;
  --flight->clients;
  if (outcome == Outcome::Disconnected) {
    // It will not come back. Another client that got a 503 comes back soon.
    flight->wanted_until = std::min(flight->wanted_until.load(), Clock::now() + limits_.patience);
    cancel_unwanted(flight->lane);
  }
  return outcome;
}

void QueryQueue::end(const FlightPtr& flight) {
  flight->ended = true;
  flight->compute = nullptr;
  const auto found = flights_.find(flight->key);
  const bool is_shared = found != flights_.end() && found->second == flight;
  if (is_shared) flights_.erase(found);
  if (is_shared && flight->told && flight->complete) {
    const CacheRoom::Key key{this, flight->key};
    room_.entry(key, [&] { return flight; });
    room_.grew(flight, static_cast<std::int64_t>(flight->response.body.size()));
    kept_.emplace_back(Clock::now() + limits_.kept, flight->key);
  }
  flight->changed.notify_all();
}

void QueryQueue::remove_expired() {
  for (; !kept_.empty() && kept_.front().first <= Clock::now(); kept_.pop_front())
    room_.remove({this, kept_.front().second});
}

void QueryQueue::work(Lane& lane) {
  pthread_setname_np(pthread_self(), "query");
  run_in_background();
  Lock lock(mutex_);
  for (;;) {
    lane.ready.wait(lock, [&] { return stopping_ || !lane.queue.empty(); });
    if (lane.queue.empty()) return;
    const FlightPtr flight = std::move(lane.queue.front());
    lane.queue.pop_front();
    if (is_wanted(*flight)) {
      ++lane.running;
      lock.unlock();
      const ContinueCheck keep_going = [this, &flight] {
        if (!is_wanted(*flight)) flight->cancelled = true;
        return !flight->cancelled;
      };
      try {
        flight->compute(flight->response, keep_going);
      } catch (...) {
        flight->thrown = std::current_exception();
      }
      lock.lock();
      --lane.running;
      flight->complete = !flight->cancelled;
    }
    end(flight);
  }
}

void QueryQueue::respond(const httplib::Request& request, httplib::Response& response,
                         const Subject& subject, Compute compute) {
  const HandlerWait wait_for_others;
  const ContinueCheck connected = while_connected(request);
  const auto deadline = arrival_of(request) + limits_.patience;
  const std::string key =
      std::format("{} {} {}", subject.version.value_or(""), request.target, subject.body);
  Lane& lane = subject.small ? small_ : large_;
  Lock lock(mutex_);
  const auto refuse = [&](const Problem& problem) {
    lock.unlock();
    tt::respond(response, problem);
  };
  remove_expired();
  for (;;) {
    if (stopping_) return refuse(problem_of(cancelled_error()));
    FlightPtr flight = find(key);
    if (!flight || !flight->ended) {
      if (lane.clients < lane.limits.clients && !flight) {
        flight = begin(lane, key, response, subject, compute);
        if (flight && subject.version) flights_[key] = flight;
      }
      if (!flight || lane.clients >= lane.limits.clients) {
        ++rejected_;
        return refuse(busy());
      }
    }
    const Outcome outcome = wait(lock, flight, deadline, connected);
    if (outcome == Outcome::Disconnected) return refuse(problem_of(cancelled_error()));
    if (outcome == Outcome::Late) return refuse(late(flight->progress.get()));
    if (!flight->complete) continue;  // cancelled just before this client came
    if (!subject.version) room_.remove({this, key});
    lock.unlock();
    if (flight->thrown) std::rethrow_exception(flight->thrown);
    if (flight.use_count() == 1) {
      response = std::move(flight->response);
    } else {
      response = flight->response;
    }
    return;
  }
}

void QueryQueue::stop() {
  const std::scoped_lock lock(mutex_);
  stopping_ = true;
  large_.ready.notify_all();
  small_.ready.notify_all();
}

void QueryQueue::join() {
  stop();
  for (Lane* lane : {&large_, &small_})
    for (std::thread& thread : std::exchange(lane->threads, {})) thread.join();
}

QueryQueue::Stats QueryQueue::stats() const {
  const std::scoped_lock lock(mutex_);
  return {.running = large_.running + small_.running,
          .waiting = large_.queue.size() + small_.queue.size(),
          .clients = large_.clients + small_.clients,
          .rejected = rejected_};
}

}  // namespace tt
