#include "server/live_hub.h"

#include <chrono>
#include <utility>

namespace tt {

namespace {

constexpr std::size_t kMostQueuedBytes = 16u << 20;
constexpr std::chrono::milliseconds kLookEvery{20};

std::size_t cost_of(const Step& step) {
  std::size_t bytes = 256 + step.op_ends.size() * sizeof(Ns);
  for (const SlotValues& slot : step.slots)
    bytes += 64 + slot.ints.size() * sizeof(std::int64_t) + slot.floats.size() * sizeof(float);
  return bytes + step.stats.size() * sizeof(ValueStats);
}

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace

void LiveHub::start(LivePorts ports) {
  clients_ = std::make_unique<LiveClients>(std::move(ports));
  thread_ = std::thread([this] { run(); });
}

void LiveHub::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// ---------------------------------------------------------------- any thread

void LiveHub::post(Event event, std::size_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return;
    if (bytes > 0 && queued_bytes_ + bytes > kMostQueuedBytes) {
      if (events_.empty() || !std::holds_alternative<Missed>(events_.back().event))
        events_.push_back({Missed{0}, 0});
      ++std::get<Missed>(events_.back().event).events;
      return;
    }
    events_.push_back({std::move(event), bytes});
    queued_bytes_ += bytes;
  }
  wake_.notify_one();
}

void LiveHub::on_state(const JobStatus& status) {
  JobStatus told = status;
  told.text.clear();
  post(StateChanged{std::move(told)}, 0);
}

void LiveHub::on_progress(const JobStatus& status) {
  if (connected_ > 0) post(Progressed{status}, 256);
}

void LiveHub::on_token(const std::string& session, const Token& token, std::string_view piece) {
  if (connected_ > 0) post(TokenMade{session, token, std::string(piece)}, 256);
}

void LiveHub::on_text(const std::string& session, std::string_view rest) {
  if (connected_ > 0) post(TextEnded{session, std::string(rest)}, 256 + rest.size());
}

void LiveHub::on_step(const std::string& session, const Step& step, const KnownGraphPtr& graph) {
  if (connected_ == 0) {
    post(StepWritten{session, step.id, nullptr, nullptr}, 0);
    return;
  }
  post(StepWritten{session, step.id, std::make_unique<const Step>(step), graph}, cost_of(step));
}

void LiveHub::on_open(ClientId client, const Upgrade&) {
  ++connected_;
  post(Opened{client}, 0);
}

void LiveHub::on_message(ClientId client, std::span<const std::byte> message, Opcode opcode) {
  // Binary is no command; as an empty text it is answered like any other that is none.
  std::string text;
  if (opcode == Opcode::Text)
    text.assign(reinterpret_cast<const char*>(message.data()), message.size());
  const std::size_t bytes = 256 + text.size();
  post(Said{client, std::move(text)}, bytes);
}

void LiveHub::on_close(ClientId client) {
  --connected_;
  post(Closed{client}, 0);
}

// ---------------------------------------------------------------- the hub's thread

void LiveHub::run() {
  using Clock = std::chrono::steady_clock;
  auto next_look = Clock::now();
  for (;;) {
    std::deque<Queued> events;
    bool stopping = false;
    const bool looks = clients_->wants_looks();
    {
      std::unique_lock lock(mutex_);
      const auto something = [this] { return stopping_ || !events_.empty(); };
      if (looks) {
        wake_.wait_until(lock, next_look, something);
      } else {
        wake_.wait(lock, something);
      }
      events.swap(events_);
      queued_bytes_ = 0;
      stopping = stopping_;
    }
    for (const Queued& queued : events) tell(*clients_, queued.event);
    if (stopping) return;
    if (Clock::now() >= next_look) {
      clients_->look();
      next_look = Clock::now() + kLookEvery;
    }
  }
}

void LiveHub::tell(LiveClients& clients, const Event& event) {
  std::visit(
      Overloaded{
          [&](const Opened& e) { clients.opened(e.client); },
          [&](const Said& e) { clients.said(e.client, e.text); },
          [&](const Closed& e) { clients.closed(e.client); },
          [&](const StateChanged& e) { clients.state(e.status); },
          [&](const Progressed& e) { clients.progress(e.status); },
          [&](const TokenMade& e) { clients.token(e.session, e.token, e.piece); },
          [&](const TextEnded& e) { clients.text(e.session, e.rest); },
          [&](const Missed& e) { clients.missed(e.events); },
          [&](const StepWritten& e) { clients.step(e.session, e.id, e.step.get(), e.graph.get()); },
      },
      event);
}

}  // namespace tt
