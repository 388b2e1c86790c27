#include "server/live/live_hub.h"

#include <chrono>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace tt {

namespace {

constexpr std::size_t kMaxQueuedBytes = 16u << 20;
// Minimum interval between two turns, which send new records and the new ops of running steps to
// all clients. Each turn wakes every client: with 16 clients 20 ms cost the generation 3 %, 40 ms
// cost 1 % (bench/server/live_clients).
constexpr std::chrono::milliseconds kTurnInterval{40};
// Queued commands per client. Above either limit reading from the client pauses for this time.
constexpr std::size_t kMaxQueuedCommands = 64;
constexpr std::size_t kMaxQueuedCommandBytes = 128u << 10;
constexpr std::chrono::milliseconds kBackpressurePause{20};

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

void LiveHub::start(LiveHubCallbacks callbacks, LiveLimits limits) {
  {
    const std::scoped_lock lock(mutex_);
    pause_ = callbacks.pause;
  }
  backfill_reader_ = std::make_unique<BackfillReader>(
      std::move(callbacks.open), [this](BackfillBatch batch) { post(std::move(batch), 0); });
  clients_ = std::make_unique<LiveClients>(
      LiveCallbacks{
          .send = std::move(callbacks.send),
          .close = std::move(callbacks.close),
          .pause = std::move(callbacks.pause),
          .status = std::move(callbacks.status),
          .in_flight = std::move(callbacks.in_flight),
          .read = [this](BackfillRequest request) { backfill_reader_->read(std::move(request)); },
          .extent = [this](const std::string& session) { return extent_of(session); },
          .debug = std::move(callbacks.debug)},
      limits);
  thread_ = std::thread([this] { run(); });
}

void LiveHub::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  backfill_reader_.reset();
}

LiveHub::Stats LiveHub::stats() const {
  const std::scoped_lock lock(mutex_);
  Stats stats = stats_;
  stats.clients = connected_;
  stats.queued_bytes = queued_bytes_;
  return stats;
}

// ---------------------------------------------------------------- any thread

void LiveHub::post(Event event, std::size_t bytes, Urgency urgency) {
  bool wake = false;
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) return;
    if (urgency == Urgency::Record && queued_bytes_ + bytes > kMaxQueuedBytes) return;
    wake = events_.empty();  // otherwise the thread knows of records already
    events_.push_back({std::move(event), bytes});
    queued_bytes_ += bytes;
    if (!urgent_ && (urgency == Urgency::Control || queued_bytes_ > kMaxQueuedBytes / 2))
      urgent_ = wake = true;
  }
  if (wake) wake_.notify_one();
}

LiveExtent LiveHub::extent_of(const std::string& session) const {
  const std::scoped_lock lock(mutex_);
  const auto newest = latest_.find(session);
  return newest == latest_.end() ? LiveExtent{} : newest->second.extent;
}

void LiveHub::on_state(const JobStatus& status) {
  JobStatus without_text = status;
  without_text.text.clear();
  post(StateChanged{std::move(without_text)}, 0);
}

void LiveHub::on_progress(const JobStatus& status) {
  if (connected_ == 0) return;
  bool wake = false;
  {
    const std::scoped_lock lock(mutex_);
    latest_[status.id].progress = status;
    wake = !std::exchange(progress_pending_, true);
  }
  if (wake) wake_.notify_one();
}

void LiveHub::on_token(const std::string& session, const Token& token, std::string_view text) {
  {
    const std::scoped_lock lock(mutex_);
    latest_[session].extent.tokens = token.index + 1;
  }
  if (connected_ > 0)
    post(TokenMade{session, token, std::string(text)}, 256 + text.size(), Urgency::Record);
}

void LiveHub::on_text(const std::string& session, std::string_view rest) {
  std::uint32_t index = 0;
  {
    const std::scoped_lock lock(mutex_);
    index = latest_[session].extent.tokens++;
  }
  if (connected_ > 0)
    post(TextEnded{session, index, std::string(rest)}, 256 + rest.size(), Urgency::Record);
}

void LiveHub::on_step(const std::string& session, const Step& step, const KnownGraphPtr& graph) {
  {
    const std::scoped_lock lock(mutex_);
    LiveExtent& extent = latest_[session].extent;
    extent.steps = step.id.v + 1;
    extent.tokens_written = step.first_token + step.n_tokens;
  }
  if (connected_ > 0) post(StepWritten{session, step, graph}, cost_of(step), Urgency::Record);
}

void LiveHub::on_file_grown(const JobStatus& status, const LiveExtent& extent) {
  {
    const std::scoped_lock lock(mutex_);
    latest_[status.id].extent = extent;
  }
  on_progress(status);
}

void LiveHub::on_list_changed() {
  if (connected_ > 0) post(ListChanged{}, 0);
}

void LiveHub::on_open(ClientId client, const Upgrade& upgrade) {
  ++connected_;
  LiveClients::Wishes wishes;
  for (const auto part : std::views::split(std::string_view(upgrade.query), '&')) {
    const std::string_view wish(part);
    wishes.batches |= wish == "batch=true";
    wishes.list |= wish == "list=true";
  }
  post(ClientConnected{client, wishes}, 0);
}

void LiveHub::on_message(ClientId client, std::span<const std::byte> message, Opcode opcode) {
  // Binary messages are not commands. They are passed on as an empty text, which is answered
  // with bad_command.
  std::string text;
  if (opcode == Opcode::Text)
    text.assign(reinterpret_cast<const char*>(message.data()), message.size());
  std::function<void(ClientId, std::chrono::milliseconds)> pause;
  {
    const std::scoped_lock lock(mutex_);
    Peer& peer = peers_[client];
    peer.commands += 1;
    peer.bytes += text.size();
    if (peer.commands >= kMaxQueuedCommands || peer.bytes >= kMaxQueuedCommandBytes) pause = pause_;
  }
  if (pause) pause(client, kBackpressurePause);
  const std::size_t bytes = 256 + text.size();
  post(MessageReceived{client, std::move(text)}, bytes);
}

void LiveHub::on_close(ClientId client) {
  {
    const std::scoped_lock lock(mutex_);
    peers_.erase(client);
  }
  --connected_;
  post(ClientDisconnected{client}, 0);
}

// ---------------------------------------------------------------- hub thread

void LiveHub::run() {
  using Clock = std::chrono::steady_clock;
  auto next_turn = Clock::now();
  for (bool stopping = false; !stopping;) {
    std::deque<Queued> events;
    std::vector<std::pair<std::string, LatestState>> newest;
    const bool needs_polling = clients_->needs_polling();
    {
      std::unique_lock lock(mutex_);
      const auto urgent = [this] { return stopping_ || urgent_; };
      const auto something = [&] { return urgent() || progress_pending_ || !events_.empty(); };
      if (!needs_polling) wake_.wait(lock, something);
      wake_.wait_until(lock, next_turn, urgent);
      events.swap(events_);
      queued_bytes_ = 0;
      progress_pending_ = urgent_ = false;
      for (auto& [session, of] : latest_)
        newest.emplace_back(session,
                            LatestState{of.extent, std::exchange(of.progress, std::nullopt)});
      for (auto& [client, peer] : peers_) peer.commands = peer.bytes = 0;
      stopping = stopping_;
    }
    std::vector<std::string> ended;
    for (Queued& queued : events) {
      const auto* state = std::get_if<StateChanged>(&queued.event);
      if (state != nullptr && has_ended(state->status.state)) ended.push_back(state->status.id);
      dispatch(*clients_, queued.event);
    }
    for (const auto& [session, of] : newest) {
      clients_->update_extent(session, of.extent);
      if (of.progress) clients_->progress(*of.progress);
    }
    clients_->flush();
    if (Clock::now() >= next_turn) {
      clients_->poll_running_steps();
      next_turn = Clock::now() + kTurnInterval;
    }
    const LiveClients::Counts counts = clients_->counts();
    const std::scoped_lock lock(mutex_);
    for (const std::string& session : ended) latest_.erase(session);
    stats_ = {
        .subscriptions = counts.subscriptions, .lost = counts.lost, .log_bytes = counts.log_bytes};
  }
}

void LiveHub::dispatch(LiveClients& clients, Event& event) {
  std::visit(
      Overloaded{
          [&](const ClientConnected& e) { clients.opened(e.client, e.wishes); },
          [&](const MessageReceived& e) { clients.handle_message(e.client, e.text); },
          [&](const ClientDisconnected& e) { clients.closed(e.client); },
          [&](const ListChanged&) { clients.list_changed(); },
          [&](const StateChanged& e) { clients.state(e.status); },
          [&](const TokenMade& e) { clients.token(e.session, e.token, e.text); },
          [&](const TextEnded& e) { clients.rest(e.session, e.index, e.rest); },
          [&](StepWritten& e) { clients.step(e.session, std::move(e.step), std::move(e.graph)); },
          [&](BackfillBatch& e) { clients.batch(std::move(e)); },
      },
      event);
}

}  // namespace tt
