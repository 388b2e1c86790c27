#include "server/live/live_clients.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/live/live_frames.h"

namespace tt {

namespace {

constexpr int kMessagesATurn = 32;  // then the client's next subscription is served

std::uint64_t total(const LiveLosses& lost) {
  return lost.tokens + lost.steps + lost.ops + lost.routing;
}

}  // namespace

// ---------------------------------------------------------------- session events

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
      if (client.all) adopt(id, client, status.id, session, LivePosition{});
  }
  if (has_ended(status.state)) session.last_message = state_event(status);
  forget_unheard();
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
  if (of.heard)
    of.log.add(TokenRecord{.index = token.index, .message = token_event(session, token, piece)});
  of.extent.tokens = std::max(of.extent.tokens, token.index + 1);
}

void LiveClients::rest(const std::string& session, std::uint32_t index, std::string_view text) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  Session& of = found->second;
  if (of.heard)
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
  if (!of.heard) return;
  of.log.add(
      std::make_shared<StepRecord>(session, std::move(step), std::move(graph), of.status.n_layers));
}

void LiveClients::reached(const std::string& session, const LiveExtent& extent) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  LiveExtent& known = found->second.extent;
  known.tokens = std::max(known.tokens, extent.tokens);
  known.steps = std::max(known.steps, extent.steps);
  known.tokens_written = std::max(known.tokens_written, extent.tokens_written);
  found->second.log.reach(known.tokens, known.steps);
}

// ---------------------------------------------------------------- room

bool LiveClients::has_room(const Client& client, std::size_t bytes) const {
  const std::uint64_t on_the_way = client.sent - client.acked;
  return on_the_way == 0 || on_the_way + bytes <= limits_.window;
}

void LiveClients::send(ClientId id, Client& client, const LiveMessage& message) {
  if (client.closing) return;
  client.sent += message.bytes.size();
  if (ports_.send(id, message.opcode, message.bytes)) return;
  // The send queue is full because the client does not read, or the client has disconnected.
  client.closing = true;
  ports_.close(id, kPolicyViolation);
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
  for (auto& [id, client] : clients_) flush(id, client);
  forget_unheard();
}

void LiveClients::flush(ClientId id, Client& client) {
  if (client.waiting) {
    if (!has_room(client, client.waiting->message.bytes.size())) return;
    send(id, client, std::exchange(client.waiting, std::nullopt)->message);
  }
  if (client.sessions_lost != client.sessions_lost_told) {
    client.sessions_lost_told = client.sessions_lost;
    if (!deliver(id, client, "*", text_message(sessions_loss_event(client.sessions_lost)))) return;
  }
  std::size_t idle = 0;
  while (!client.closing && idle < client.subscriptions.size()) {
    auto at = client.subscriptions.upper_bound(client.served);
    if (at == client.subscriptions.end()) at = client.subscriptions.begin();
    client.served = at->first;
    ++idle;
    for (int i = 0; i < kMessagesATurn; ++i) {
      const Turn turn = next(id, client, at->first, at->second);
      if (turn == Turn::NoRoom) return;
      if (turn == Turn::Nothing) break;
      idle = 0;
      if (turn == Turn::Ended) break;
    }
  }
}

LiveClients::Turn LiveClients::next(ClientId id, Client& client, const std::string& name,
                                    Subscription& to) {
  if (to.opening) return Turn::Nothing;
  Session& session = sessions_.at(name);
  skip_to_newest(session, to);
  auto message = next_news(name, session, to);
  if (!message) message = next_of_piece(session, to);
  if (!message) message = next_record(session, to);
  if (message) return deliver(id, client, name, *std::move(message)) ? Turn::Sent : Turn::NoRoom;
  if (to.feed.lost() != to.lost_told) return Turn::Sent;  // damaged row: reported next

  if (const LiveKinds kinds = missing(session, to); kinds != kNothing) {
    if (client.reading_ticket == 0 && !to.reading.pausing)
      ask(id, client, name, session, to, kinds);
    return Turn::Nothing;
  }
  if (session.last_message.empty()) return Turn::Nothing;
  const bool sent = deliver(id, client, name, text_message(session.last_message));
  end(client, name);
  return sent ? Turn::Ended : Turn::NoRoom;
}

// State and progress: only the newest value is sent.
std::optional<LiveMessage> LiveClients::next_news(const std::string& name, const Session& session,
                                                  Subscription& to) {
  if (to.feed.lost() != to.lost_told) {
    to.lost_told = to.feed.lost();
    return text_message(loss_event(name, to.lost_told));
  }
  if (to.states_told != session.states && session.last_message.empty()) {
    to.states_told = session.states;
    return text_message(state_event(session.status));
  }
  if (to.feed.kinds().progress && to.progresses_told != session.progresses) {
    to.progresses_told = session.progresses;
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
    StepRecord* step = feed.kinds().of_steps() ? log.step(at.step) : nullptr;
    if (token != nullptr &&
        (step == nullptr || log.order_of_token(at.token) < log.order_of_step(at.step)))
      return feed.next_of(*token);
    if (step == nullptr) return std::nullopt;
    if (auto message = feed.next_of(*step)) return message;
  }
}

void LiveClients::skip_to_newest(Session& session, Subscription& to) {
  if (!std::exchange(to.blocked, false) || to.thin != Thin::Latest || session.extent.steps == 0)
    return;
  const std::uint32_t newest = session.extent.steps - 1;
  const StepRecord* step = session.log.step(newest);
  const LiveKinds kinds = to.feed.kinds();
  if (step == nullptr || (kinds.of_steps() && to.feed.at().step >= newest)) return;
  to.reading = {};
  if (kinds.of_steps()) to.feed.lose_steps_before(newest, session.routed);
  to.feed.lose_tokens_before(std::min(step->first_token(), session.extent.tokens));
}

// ---------------------------------------------------------------- running step

void LiveClients::look() {
  for (auto& [id, client] : clients_)
    for (auto& [name, to] : client.subscriptions) to.reading.pausing = false;
  flush();
  for (auto& [name, session] : sessions_)
    if (session.heard && session.status.state == JobState::Running) look(name, session);
}

void LiveClients::look(const std::string& name, Session& session) {
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
    from = std::min(from, feed.at().step == session.looked_at.v ? feed.look_from() : 0);
  });
  if (from == kNone) return;
  const auto goes_on = [&](const StepInFlight& step) {
    return step.first == 0 || step.step == session.looked_at;
  };
  auto flight = ports_.in_flight(name, from);
  if (flight && !goes_on(*flight)) flight = ports_.in_flight(name, 0);
  if (!flight || !goes_on(*flight)) return;
  session.looked_at = flight->step;
  each([&](ClientId id, Client& client, LiveFeed& feed) {
    while (has_room(client, kMostFrameBytes)) {
      const auto message = feed.next_of(*flight);
      if (!message) return;
      send(id, client, *message);
    }
  });
}

bool LiveClients::wants_looks() const {
  return std::ranges::any_of(clients_, [&](const auto& client) {
    return std::ranges::any_of(client.second.subscriptions, [&](const auto& entry) {
      const auto& [name, to] = entry;
      if (to.reading.pausing) return true;
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

void LiveClients::forget_unheard() {
  for (auto& [name, session] : sessions_) {
    const bool heard = std::ranges::any_of(
        clients_, [&](const auto& client) { return client.second.subscriptions.contains(name); });
    if (session.heard && !heard) session.log.clear();
    session.heard = heard;
  }
  std::erase_if(sessions_, [](const auto& entry) {
    return !entry.second.heard && !entry.second.last_message.empty();
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
