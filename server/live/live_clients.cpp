#include "server/live/live_clients.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/live/live_frames.h"

namespace tt {

namespace {

constexpr std::size_t kMaxBatchMessageBytes = 64u << 10;
constexpr int kMessagesPerTurn = 32;  // then the client's next subscription is served

std::uint64_t total(const LiveLosses& lost) {
  return lost.tokens + lost.steps + lost.ops + lost.routing;
}

}  // namespace

// ---------------------------------------------------------------- session events

void LiveClients::list_changed() {
  for (auto& [id, client] : clients_) client.list_changed = client.wishes.list;
}

void LiveClients::state(const JobStatus& status) {
  const auto known = sessions_.find(status.id);
  if (known == sessions_.end() && has_ended(status.state)) return;  // no client knows it
  const bool fresh = known == sessions_.end();
  Session& session = fresh ? session_of(status) : known->second;
  // A status query may have returned this state before the event arrived.
  if (status.state < session.status.state || !session.last_message.empty()) return;
  session.status = status;
  if (!fresh) ++session.states;
  if (fresh) {
    for (auto& [id, client] : clients_)
      if (client.all) add_wildcard_subscription(id, client, status.id, session, LivePosition{});
  }
  if (has_ended(status.state)) session.last_message = state_event(status);
  update_subscribers();
}

void LiveClients::progress(const JobStatus& status) {
  const auto session = sessions_.find(status.id);
  if (session == sessions_.end()) return;
  Session& of = session->second;
  of.status.prompt_done = status.prompt_done;
  of.status.prompt_tokens = status.prompt_tokens;
  of.status.generated = status.generated;
  of.status.max_tokens = status.max_tokens;
  ++of.progresses;
}

void LiveClients::token(const std::string& session, const Token& token, std::string_view piece) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  Session& of = found->second;
  if (of.has_subscribers)
    of.log.add(TokenRecord{.index = token.index, .message = token_event(session, token, piece)});
  of.extent.tokens = std::max(of.extent.tokens, token.index + 1);
}

void LiveClients::rest(const std::string& session, std::uint32_t index, std::string_view text) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  Session& of = found->second;
  if (of.has_subscribers)
    of.log.add(TokenRecord{.index = index, .message = text_event(session, index, text)});
  of.extent.tokens = std::max(of.extent.tokens, index + 1);
}

void LiveClients::step(const std::string& session, Step step, KnownGraphPtr graph) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  Session& of = found->second;
  of.extent.steps = std::max(of.extent.steps, step.id.v + 1);
  of.extent.tokens_written = std::max(of.extent.tokens_written, step.first_token + step.n_tokens);
  of.routed =
      of.routed || (graph != nullptr && std::ranges::any_of(graph->graph.slots, [](auto& slot) {
                      return slot.kind == SlotKind::Experts;
                    }));
  if (!of.has_subscribers) return;
  of.log.add(
      std::make_shared<StepRecord>(session, std::move(step), std::move(graph), of.status.n_layers));
}

void LiveClients::update_extent(const std::string& session, const LiveExtent& extent) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  LiveExtent& known = found->second.extent;
  known.tokens = std::max(known.tokens, extent.tokens);
  known.steps = std::max(known.steps, extent.steps);
  known.tokens_written = std::max(known.tokens_written, extent.tokens_written);
  found->second.log.advance_to(known.tokens, known.steps);
}

// ---------------------------------------------------------------- room

bool LiveClients::has_room(const Client& client, std::size_t bytes) const {
  constexpr std::size_t kBracketsOfBatch = 2;
  const std::uint64_t on_the_way = client.sent - client.acked + client.batch.size();
  return on_the_way == 0 || on_the_way + bytes + kBracketsOfBatch <= limits_.window;
}

void LiveClients::send(ClientId id, Client& client, const LiveMessage& message) {
  if (client.closing) return;
  if (!client.wishes.batches || message.opcode != Opcode::Text) {
    send_batch(id, client);
    return write(id, client, message.opcode, message.bytes);
  }
  client.batch += client.batch.empty() ? '[' : ',';
  client.batch.append(reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size());
  if (client.batch.size() >= kMaxBatchMessageBytes) send_batch(id, client);
}

void LiveClients::send_batch(ClientId id, Client& client) {
  if (client.batch.empty()) return;
  std::string batch = std::exchange(client.batch, {});
  batch += ']';
  write(id, client, Opcode::Text, std::as_bytes(std::span(batch)));
}

void LiveClients::write(ClientId id, Client& client, Opcode opcode,
                        std::span<const std::byte> bytes) {
  if (client.closing) return;
  client.sent += bytes.size();
  if (callbacks_.send(id, opcode, bytes)) return;
  // The send queue is full because the client does not read, or the client has disconnected.
  client.closing = true;
  callbacks_.close(id, kPolicyViolation);
}

// Returns false if there is no room; the message is kept in client.waiting.
bool LiveClients::deliver(ClientId id, Client& client, const std::string& session,
                          LiveMessage message) {
  if (has_room(client, message.bytes.size())) {
    send(id, client, message);
    return true;
  }
  client.waiting = {.session = session, .message = std::move(message)};
  for (auto& [name, to] : client.subscriptions) to.blocked = true;
  return false;
}

// ---------------------------------------------------------------- next message

void LiveClients::flush() {
  trim_logs();
  for (auto& [id, client] : clients_) {
    flush(id, client);
    send_batch(id, client);
  }
  update_subscribers();
}

void LiveClients::flush(ClientId id, Client& client) {
  if (client.waiting) {
    if (!has_room(client, client.waiting->message.bytes.size())) return;
    send(id, client, std::exchange(client.waiting, std::nullopt)->message);
  }
  if (client.sessions_lost != client.sessions_lost_reported) {
    client.sessions_lost_reported = client.sessions_lost;
    if (!deliver(id, client, "*", text_message(sessions_loss_event(client.sessions_lost)))) return;
  }
  if (std::exchange(client.list_changed, false) &&
      !deliver(id, client, "", text_message(list_event())))
    return;
  std::size_t idle = 0;
  while (!client.closing && idle < client.subscriptions.size()) {
    auto at = client.subscriptions.upper_bound(client.last_served);
    if (at == client.subscriptions.end()) at = client.subscriptions.begin();
    client.last_served = at->first;
    ++idle;
    for (int i = 0; i < kMessagesPerTurn; ++i) {
      const SendResult result = next(id, client, at->first, at->second);
      if (result == SendResult::NoRoom) return;
      if (result == SendResult::Nothing) break;
      idle = 0;
      if (result == SendResult::Ended) break;
    }
  }
}

LiveClients::SendResult LiveClients::next(ClientId id, Client& client, const std::string& name,
                                          Subscription& to) {
  if (to.pending_open) return SendResult::Nothing;
  Session& session = sessions_.at(name);
  skip_to_newest(session, to);
  auto message = next_status_message(name, session, to);
  if (!message) message = next_from_batch(session, to);
  if (!message) message = next_record(session, to);
  if (message)
    return deliver(id, client, name, *std::move(message)) ? SendResult::Sent : SendResult::NoRoom;
  if (to.feed.lost() != to.lost_reported) return SendResult::Sent;  // damaged row: reported next

  if (const LiveKinds kinds = missing(session, to); kinds != kNothing) {
    if (client.pending_request_id == 0 && !to.backfill.retry_on_poll)
      request_backfill(id, client, name, session, to, kinds);
    return SendResult::Nothing;
  }
  if (session.last_message.empty()) return SendResult::Nothing;
  const bool sent = deliver(id, client, name, text_message(session.last_message));
  end(client, name);
  return sent ? SendResult::Ended : SendResult::NoRoom;
}

// State and progress: only the newest value is sent.
std::optional<LiveMessage> LiveClients::next_status_message(const std::string& name,
                                                            const Session& session,
                                                            Subscription& to) {
  if (to.feed.lost() != to.lost_reported) {
    to.lost_reported = to.feed.lost();
    return text_message(loss_event(name, to.lost_reported));
  }
  if (to.states_sent != session.states && session.last_message.empty()) {
    to.states_sent = session.states;
    return text_message(state_event(session.status));
  }
  if (to.feed.kinds().progress && to.progresses_sent != session.progresses) {
    to.progresses_sent = session.progresses;
    return text_message(progress_event(session.status));
  }
  return std::nullopt;
}

// From memory, in order of occurrence.
std::optional<LiveMessage> LiveClients::next_record(Session& session, Subscription& to) {
  LiveFeed& feed = to.feed;
  const LiveLog& log = session.log;
  for (;;) {
    const LivePosition at = feed.at();
    const TokenRecord* token = feed.kinds().token ? log.token(at.token) : nullptr;
    StepRecord* step = feed.kinds().any_of_step() ? log.step(at.step) : nullptr;
    if (token != nullptr &&
        (step == nullptr || log.order_of_token(at.token) < log.order_of_step(at.step)))
      return feed.next_message(*token);
    if (step == nullptr) return std::nullopt;
    if (auto message = feed.next_message(*step)) return message;
  }
}

void LiveClients::skip_to_newest(Session& session, Subscription& to) {
  if (!std::exchange(to.blocked, false) || to.thin != Thin::Latest || session.extent.steps == 0)
    return;
  const std::uint32_t newest = session.extent.steps - 1;
  const StepRecord* step = session.log.step(newest);
  const LiveKinds kinds = to.feed.kinds();
  if (step == nullptr || (kinds.any_of_step() && to.feed.at().step >= newest)) return;
  to.backfill = {};
  if (kinds.any_of_step()) to.feed.lose_steps_before(newest, session.routed);
  to.feed.lose_tokens_before(std::min(step->first_token(), session.extent.tokens));
}

// ---------------------------------------------------------------- running step

void LiveClients::poll_running_steps() {
  for (auto& [id, client] : clients_)
    for (auto& [name, to] : client.subscriptions) to.backfill.retry_on_poll = false;
  flush();
  for (auto& [name, session] : sessions_)
    if (session.has_subscribers && session.status.state == JobState::Running)
      poll_running_steps(name, session);
}

void LiveClients::poll_running_steps(const std::string& name, Session& session) {
  const auto each = [&](auto visit) {
    for (auto& [id, client] : clients_) {
      const auto to = client.subscriptions.find(name);
      // Only clients that have all previous steps.
      if (to == client.subscriptions.end() || client.waiting || !to->second.feed.kinds().op ||
          to->second.feed.at().step < session.extent.steps)
        continue;
      visit(id, client, to->second.feed);
    }
  };
  std::uint32_t from = kNone;
  each([&](ClientId, Client&, const LiveFeed& feed) {
    from = std::min(from, feed.at().step == session.last_polled_step.v ? feed.poll_from() : 0);
  });
  if (from == kNone) return;
  const auto continues_previous = [&](const StepInFlight& step) {
    return step.first == 0 || step.step == session.last_polled_step;
  };
  auto flight = callbacks_.in_flight(name, from);
  if (flight && !continues_previous(*flight)) flight = callbacks_.in_flight(name, 0);
  if (!flight || !continues_previous(*flight)) return;
  session.last_polled_step = flight->step;
  each([&](ClientId id, Client& client, LiveFeed& feed) {
    while (has_room(client, kMaxFrameBytes)) {
      const auto message = feed.next_message(*flight);
      if (!message) return;
      send(id, client, *message);
    }
  });
}

bool LiveClients::needs_polling() const {
  return std::ranges::any_of(clients_, [&](const auto& client) {
    return std::ranges::any_of(client.second.subscriptions, [&](const auto& entry) {
      const auto& [name, to] = entry;
      if (to.backfill.retry_on_poll) return true;
      const auto session = sessions_.find(name);
      return to.feed.kinds().op && session != sessions_.end() &&
             session->second.status.state == JobState::Running;
    });
  });
}

// ---------------------------------------------------------------- memory

void LiveClients::end(Client& client, const std::string& name) {
  const auto at = client.subscriptions.find(name);
  if (at == client.subscriptions.end()) return;
  lost_before_ += total(at->second.feed.lost());
  client.subscriptions.erase(at);
}

void LiveClients::trim_logs() {
  std::size_t bytes = 0;
  for (auto& [name, session] : sessions_) {
    while (session.log.bytes() > limits_.session_log_bytes) session.log.drop_oldest();
    bytes += session.log.bytes();
  }
  while (bytes > limits_.log_bytes) {
    LiveLog& largest = std::ranges::max_element(sessions_, {}, [](const auto& entry) {
                         return entry.second.log.bytes();
                       })->second.log;
    bytes -= largest.bytes();
    largest.drop_oldest();
    bytes += largest.bytes();
  }
}

void LiveClients::update_subscribers() {
  for (auto& [name, session] : sessions_) {
    const bool has_subscribers = std::ranges::any_of(
        clients_, [&](const auto& client) { return client.second.subscriptions.contains(name); });
    if (session.has_subscribers && !has_subscribers) session.log.clear();
    session.has_subscribers = has_subscribers;
  }
  std::erase_if(sessions_, [](const auto& entry) {
    return !entry.second.has_subscribers && !entry.second.last_message.empty();
  });
}

LiveClients::Counts LiveClients::counts() const {
  Counts counts{.lost = lost_before_};
  for (const auto& [id, client] : clients_) {
    counts.subscriptions += client.subscriptions.size();
    for (const auto& [name, to] : client.subscriptions) counts.lost += total(to.feed.lost());
  }
  for (const auto& [name, session] : sessions_) counts.log_bytes += session.log.bytes();
  return counts;
}

}  // namespace tt
