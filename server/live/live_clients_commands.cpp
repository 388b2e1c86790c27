// LiveClients: client commands.
#include <algorithm>
#include <utility>

#include "server/live/live_clients.h"

namespace tt {

namespace {

constexpr const char* kAll = "*";
constexpr int kMaxStrikes = 10;
constexpr int kBadAckWeight = 5;

}  // namespace

void LiveClients::opened(ClientId id, Wishes wishes) {
  Client& client = clients_[id];
  client.wishes = wishes;
  client.commands = limits_.commands;
  client.counted_at = callbacks_.now();
  answer(id, client, hello_event(limits_.window));
}

void LiveClients::closed(ClientId id) {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  while (!client->second.subscriptions.empty())
    end(client->second, client->second.subscriptions.begin()->first);
  clients_.erase(client);
  update_subscribers();
}

void LiveClients::handle_message(ClientId id, std::string_view text) {
  const auto found = clients_.find(id);
  if (found == clients_.end() || found->second.closing) return;
  Client& client = found->second;
  const auto command = parse_live_command(text);
  const auto* ack = command ? std::get_if<Acknowledge>(&*command) : nullptr;
  // An ack of new data is limited by the number of messages sent: it is not counted.
  if (ack == nullptr || ack->bytes <= client.acked) count_command(id, client);
  if (!command) {
    strike(id, client, 1, "bad_command", command.error());
    return;
  }
  std::visit([&](const auto& what) { on(id, client, what); }, *command);
  update_subscribers();
}

// ---------------------------------------------------------------- limits

// Token bucket. A client that exceeds the rate is paused until it has a second's worth of
// commands again, so it costs no more than a client within the limit and does not delay
// others.
void LiveClients::count_command(ClientId id, Client& client) {
  const auto now = callbacks_.now();
  const std::chrono::duration<double> passed = now - std::exchange(client.counted_at, now);
  const double per_second = limits_.commands_per_second;
  client.commands =
      std::min<double>(limits_.commands, client.commands + passed.count() * per_second) - 1;
  if (client.commands >= 0) return;
  const std::chrono::duration<double> pause_time{(per_second - client.commands) / per_second};
  callbacks_.pause(id, std::chrono::ceil<std::chrono::milliseconds>(pause_time));
}

void LiveClients::strike(ClientId id, Client& client, int weight, std::string_view code,
                         std::string_view detail) {
  answer(id, client, error_event(code, {}, detail));
  client.strikes += weight;
  if (client.strikes < kMaxStrikes) return;
  send_batch(id, client);
  if (std::exchange(client.closing, true)) return;
  callbacks_.close(id, kPolicyViolation);
}

// Ignores the window. A client that sends commands but does not read is disconnected.
void LiveClients::answer(ClientId id, Client& client, std::string_view text) {
  send(id, client, text_message(text));
}

void LiveClients::on(ClientId id, Client& client, const Acknowledge& command) {
  if (command.bytes > client.sent || command.bytes < client.acked) {
    strike(id, client, kBadAckWeight, "bad_ack",
           "\"bytes\" must be the total that this connection has received: not less than before "
           "and not more than was sent.");
    return;
  }
  client.acked = command.bytes;
}

OrProblem<DebugState> no_debugger(const std::string& session,
                                  const std::optional<DebugCommand>& command) {
  static_cast<void>(command);
  return std::unexpected(
      Problem{ErrorCode::NotFound, "No request \"" + session + "\" can be stopped."});
}

void LiveClients::on(ClientId id, Client& client, const DebugSession& command) {
  const auto state = callbacks_.debug(command.session, command.command);
  answer(id, client,
         state ? debug_event(command.session, *state)
               : error_event(code_of(state.error().error_code), command.session,
                             state.error().detail));
}

// ---------------------------------------------------------------- subscriptions

void LiveClients::on(ClientId id, Client& client, const Subscribe& command) {
  if (command.session == kAll) return subscribe_all(id, client, command);
  auto at = client.subscriptions.find(command.session);
  if (at == client.subscriptions.end()) {
    if (client.subscriptions.size() >= limits_.subscriptions) {
      answer(id, client,
             error_event("too_many", command.session,
                         "Unsubscribe from another session first, or wait until one has ended."));
      return;
    }
    at = client.subscriptions.try_emplace(command.session, ++client.numbers).first;
  }
  Subscription& to = at->second;
  to.from_wildcard = false;
  if (to.pending_open) {
    to.pending_open = command;  // a later subscribe replaces the pending one
    return;
  }
  if (!sessions_.contains(command.session)) {
    const auto status = callbacks_.status(command.session);
    if (!status || has_ended(status->state)) return open(id, to, command);
    session_of(*status);
  }
  apply_subscription(id, client, sessions_.at(command.session), to, command);
}

// Also creates sessions that no event has announced yet.
LiveClients::Session& LiveClients::session_of(const JobStatus& status) {
  const auto [at, fresh] = sessions_.try_emplace(status.id);
  if (fresh) {
    at->second.status = status;
    at->second.states = 1;
  }
  return at->second;
}

void LiveClients::apply_subscription(ClientId id, Client& client, Session& session,
                                     Subscription& to, const Subscribe& command) {
  LiveFeed& feed = to.feed;
  const LiveKinds before = feed.kinds();
  LivePosition at = feed.at();
  if (command.from) {
    at = *command.from;
  } else {
    // A newly subscribed kind starts with the next record.
    const LiveExtent now = callbacks_.extent(command.session);
    if (!before.token) at.token = std::max(now.tokens, session.extent.tokens);
    if (!before.any_of_step())
      at = {.token = at.token, .step = std::max(now.steps, session.extent.steps)};
  }
  if (at != feed.at()) feed.move_to(at);
  feed.set_kinds(command.kinds);
  to.thin = command.thin;
  to.blocked = false;
  to.backfill = {};  // drop pending reads for the old kinds or position
  if (command.from && client.waiting && client.waiting->session == command.session)
    client.waiting.reset();
  session.has_subscribers = true;
  Subscribe applied = command;
  applied.from = at;
  answer(id, client, subscribed_event(applied, feed.number()));
}

void LiveClients::subscribe_all(ClientId id, Client& client, const Subscribe& command) {
  client.all = command;
  answer(id, client,
         subscribed_event({.session = kAll, .kinds = command.kinds, .thin = command.thin}, 0));
  for (auto& [name, session] : sessions_) {
    const auto known = client.subscriptions.find(name);
    if (known != client.subscriptions.end() && !known->second.from_wildcard) continue;
    if (!session.last_message.empty()) continue;
    add_wildcard_subscription(id, client, name, session, command.from);
  }
}

void LiveClients::add_wildcard_subscription(ClientId id, Client& client, const std::string& name,
                                            Session& session,
                                            const std::optional<LivePosition>& from) {
  auto at = client.subscriptions.find(name);
  if (at == client.subscriptions.end()) {
    if (client.subscriptions.size() >= limits_.subscriptions) {
      ++client.sessions_lost;
      return;
    }
    at = client.subscriptions.try_emplace(name, ++client.numbers).first;
  }
  at->second.from_wildcard = true;
  apply_subscription(
      id, client, session, at->second,
      {.session = name, .kinds = client.all->kinds, .from = from, .thin = client.all->thin});
}

void LiveClients::on(ClientId id, Client& client, const Unsubscribe& command) {
  if (command.session == kAll) {
    client.all.reset();
    std::vector<std::string> made;
    for (const auto& [name, to] : client.subscriptions)
      if (to.from_wildcard) made.push_back(name);
    for (const std::string& name : made) end(client, name);
  } else {
    end(client, command.session);
  }
  // Without a session it is of none.
  if (client.waiting && !client.waiting->session.empty() &&
      !client.subscriptions.contains(client.waiting->session))
    client.waiting.reset();
  answer(id, client, unsubscribed_event(command.session));
}

// ---------------------------------------------------------------- sessions that have ended

void LiveClients::open(ClientId id, Subscription& to, const Subscribe& command) {
  to.pending_open = command;
  to.backfill.request_id = ++last_request_id_;
  callbacks_.read({.client = id, .request_id = to.backfill.request_id, .session = command.session});
}

// Result of opening the session file. From here on it is handled like any other session.
void LiveClients::opened(ClientId id, Client& client, const std::string& name, Subscription& to,
                         const BackfillBatch& batch) {
  const Subscribe command = *std::exchange(to.pending_open, std::nullopt);
  const auto reject = [&](std::string_view code, std::string_view detail) {
    answer(id, client, error_event(code, name, detail));
    end(client, name);
  };
  const auto status = callbacks_.status(name);
  const bool missing = batch.error && batch.error->kind == TraceError::Kind::NotFound;
  if (missing && !status) {
    return reject("not_live", "Session \"" + name +
                                  "\" not found: it is neither running nor recorded. GET "
                                  "/api/v1/sessions lists the recorded sessions.");
  }
  if (batch.error && !missing) return reject("unreadable", batch.error->message);

  const auto [at, fresh] = sessions_.try_emplace(name);
  Session& session = at->second;
  if (fresh) session.status.id = name;
  if (fresh && missing) {  // level OFF
    session.extent.tokens = status->prompt_tokens + status->generated;
    session.last_message = state_event(*status);
  } else if (fresh) {
    session.extent = {.tokens = batch.tokens, .steps = batch.steps, .tokens_written = batch.tokens};
    if (batch.state == SessionState::Running && !status) {
      session.status.state = JobState::Running;  // another program records it (FolderWatch)
    } else {
      session.rest_unknown = true;
      ++session.extent.tokens;
      session.last_message =
          status ? state_event(*status)
                 : state_event(name, {.state = to_text(batch.state), .error = batch.session_error});
    }
  }
  session.log.advance_to(session.extent.tokens, session.extent.steps);
  apply_subscription(id, client, session, to, command);
}

}  // namespace tt
