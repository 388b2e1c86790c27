#include "server/live_clients.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/step_summary.h"
#include "api/live_frames.h"

namespace tt {

namespace {

constexpr std::size_t kMostSubscriptions = 256;  // of one client
constexpr const char* kAll = "*";

bool has_ended(JobState state) { return state > JobState::Running; }

}  // namespace

// ---------------------------------------------------------------- sending

bool LiveClients::send(ClientId client, std::string_view text) {
  return ports_.send(client, Opcode::Text, std::as_bytes(std::span(text)));
}

bool LiveClients::tell_losses(ClientId client, const std::string& session, Subscription& to) {
  if (to.lost == to.lost_told) return true;
  const std::uint64_t lost = to.lost;
  if (!send(client, loss_event(session, lost))) return false;
  to.lost_told = lost;
  return true;
}

void LiveClients::send(ClientId client, const std::string& session, Subscription& to,
                       std::string_view text) {
  if (!tell_losses(client, session, to) || !send(client, text)) ++to.lost;
}

void LiveClients::send_state(ClientId client, Subscription& to, const JobStatus& status) {
  // A state that was asked for may overtake the same one as an event.
  if (status.state < to.told || to.ended) return;
  to.told = status.state;
  to.ended = has_ended(status.state);
  send(client, status.id, to, state_event(status));
}

// ---------------------------------------------------------------- what clients say

void LiveClients::opened(ClientId client) {
  clients_.try_emplace(client);
  send(client, hello_event());
}

void LiveClients::said(ClientId id, std::string_view text) {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  const auto command = parse_live_command(text);
  if (!command) {
    send(id, error_event("bad_command", command.error()));
  } else if (command->type == LiveCommand::Type::Unsubscribe) {
    unsubscribe(id, client->second, command->session);
  } else if (command->session == kAll) {
    subscribe_all(id, client->second, command->kinds);
  } else {
    subscribe(id, client->second, *command);
  }
  forget_ended();
}

LiveClients::Subscription& LiveClients::adopt(ClientId id, Client& client,
                                              const std::string& session) {
  const auto [at, fresh] = client.sessions.try_emplace(session);
  Subscription& to = at->second;
  if (fresh) {
    to.number = ++client.numbers;
    if (const auto known = sessions_.find(session); known != sessions_.end())
      to.next_step = known->second.next_step;
    if (client.all) {
      to.kinds = *client.all;
      to.of_all = true;
      send(id, subscribed_event(session, to.kinds, to.number));
    }
  }
  return to;
}

void LiveClients::subscribe(ClientId id, Client& client, const LiveCommand& command) {
  const auto status = ports_.status(command.session);
  if (!status) {
    send(id, error_event("not_live", "This server's run has no session \"" + command.session +
                                         "\". What was recorded before is at /api/v1/sessions."));
    return;
  }
  if (client.sessions.size() >= kMostSubscriptions && !client.sessions.contains(command.session)) {
    send(id, error_event("too_many", "Unsubscribe from another session first, or use \"*\"."));
    return;
  }
  const auto [at, fresh] = client.sessions.try_emplace(command.session);
  Subscription& to = at->second;
  if (fresh) {
    to.number = ++client.numbers;
    if (const auto known = sessions_.find(command.session); known != sessions_.end())
      to.next_step = known->second.next_step;
  }
  to.kinds = command.kinds;
  to.of_all = false;
  send(id, subscribed_event(command.session, to.kinds, to.number));
  send_state(id, to, *status);
}

void LiveClients::subscribe_all(ClientId id, Client& client, LiveKinds kinds) {
  client.all = kinds;
  send(id, subscribed_event(kAll, kinds, 0));
  for (const auto& [session, live] : sessions_) {
    const bool known = client.sessions.contains(session);
    Subscription& to = adopt(id, client, session);
    if (known && to.of_all) {
      to.kinds = kinds;
      send(id, subscribed_event(session, kinds, to.number));
    }
    if (const auto status = ports_.status(session)) send_state(id, to, *status);
  }
}

void LiveClients::unsubscribe(ClientId id, Client& client, const std::string& session) {
  if (session == kAll) {
    client.all.reset();
    std::erase_if(client.sessions, [](const auto& entry) { return entry.second.of_all; });
  } else {
    client.sessions.erase(session);
  }
  send(id, unsubscribed_event(session));
}

// ---------------------------------------------------------------- what happens

template <class Visit>
void LiveClients::each(const std::string& session, Visit visit) {
  for (auto& [id, client] : clients_) {
    const auto to = client.sessions.find(session);
    if (to != client.sessions.end() && !to->second.ended) visit(id, to->second);
  }
}

void LiveClients::state(const JobStatus& status) {
  if (has_ended(status.state)) {
    sessions_.erase(status.id);
  } else {
    Session& session = sessions_.try_emplace(status.id).first->second;
    session.state = std::max(session.state, status.state);
    for (auto& [id, client] : clients_)
      if (client.all) adopt(id, client, status.id);
  }
  each(status.id, [&](ClientId id, Subscription& to) { send_state(id, to, status); });
  forget_ended();
}

void LiveClients::progress(const JobStatus& status) {
  std::string text;
  each(status.id, [&](ClientId id, Subscription& to) {
    if (!to.kinds.progress) return;
    if (text.empty()) text = progress_event(status);
    send(id, status.id, to, text);
  });
}

void LiveClients::token(const std::string& session, const Token& token, std::string_view piece) {
  std::string text;
  each(session, [&](ClientId id, Subscription& to) {
    if (!to.kinds.token) return;
    if (text.empty()) text = token_event(session, token, piece);
    send(id, session, to, text);
  });
}

void LiveClients::text(const std::string& session, std::string_view rest) {
  const std::string text = text_event(session, rest);
  each(session, [&](ClientId id, Subscription& to) {
    if (to.kinds.token) send(id, session, to, text);
  });
}

void LiveClients::step(const std::string& session, StepId id, const Step* step,
                       const KnownGraph* graph) {
  const StepId next{id.v + 1};
  if (const auto known = sessions_.find(session); known != sessions_.end())
    known->second.next_step = next;
  std::string summary;
  each(session, [&](ClientId client, Subscription& to) {
    if (id < to.next_step) return;  // written before the subscription
    if (step == nullptr) {
      to.lost += to.kinds.op || to.kinds.step ? 1 : 0;
    } else {
      if (to.kinds.op) {
        if (id != to.next_step) to.ops_sent = 0;
        send_rest(client, session, to, id, *step, graph != nullptr && !step->op_ends.empty());
      }
      if (to.kinds.step) {
        if (summary.empty()) {
          const std::uint32_t layers = ports_.n_layers(session);
          summary = step_event(session,
                               graph == nullptr
                                   ? step_summary(nullptr, {}, *step, layers)
                                   : step_summary(&graph->graph, graph->accesses, *step, layers));
        }
        send(client, session, to, summary);
      }
    }
    to.next_step = next;
    to.ops_sent = 0;
  });
}

void LiveClients::send_rest(ClientId client, const std::string& session, Subscription& to,
                            StepId id, const Step& step, bool timed) {
  const auto ops = static_cast<std::uint32_t>(timed ? step.op_ends.size() : 0);
  if (ops == 0 && to.ops_sent == 0) return;  // a step without times: its summary says so
  OpsFrame frame{.subscription = to.number,
                 .step = id,
                 .first = OpId{to.ops_sent},
                 .complete = true,
                 .withdrawn = false,
                 .begin = {},
                 .end = {}};
  if (to.ops_sent > ops) {
    // What was seen in flight did not hold: the probe found other op boundaries.
    frame.withdrawn = true;
    frame.first = OpId{0};
  }
  for (std::uint32_t i = frame.first.v; i < ops; ++i) {
    frame.begin.push_back(op_begin(step, OpId{i}));
    frame.end.push_back(step.op_ends[i]);
  }
  if (!tell_losses(client, session, to) || !ports_.send(client, Opcode::Binary, encode(frame)))
    ++to.lost;
}

void LiveClients::missed(std::uint64_t events) {
  for (auto& [id, client] : clients_)
    for (auto& [session, to] : client.sessions) to.lost += events;
}

// ---------------------------------------------------------------- the step in flight

void LiveClients::look() {
  for (auto& [id, client] : clients_)
    for (auto& [session, to] : client.sessions) tell_losses(id, session, to);
  forget_ended();
  for (auto& [session, live] : sessions_)
    if (live.state == JobState::Running) look(session, live);
}

void LiveClients::look(const std::string& session, Session& live) {
  std::uint32_t from = kNone;
  each(session, [&](ClientId, Subscription& to) {
    if (to.kinds.op) from = std::min(from, to.next_step == live.looked_at ? to.ops_sent : 0);
  });
  if (from == kNone) return;
  const auto goes_on = [&](const StepInFlight& step) {
    return step.first == 0 || step.step == live.looked_at;
  };
  auto flight = ports_.in_flight(session, from);
  if (flight && !goes_on(*flight)) flight = ports_.in_flight(session, 0);
  if (!flight || !goes_on(*flight)) return;
  live.looked_at = flight->step;
  each(session, [&](ClientId id, Subscription& to) {
    if (to.kinds.op && to.next_step == flight->step) send_new(id, to, *flight);
  });
}

void LiveClients::send_new(ClientId client, Subscription& to, const StepInFlight& flight) {
  const auto done = flight.first + static_cast<std::uint32_t>(flight.ends.size());
  if (to.ops_sent < flight.first || to.ops_sent >= done) return;
  OpsFrame frame{.subscription = to.number,
                 .step = flight.step,
                 .first = OpId{to.ops_sent},
                 .complete = false,
                 .withdrawn = false,
                 .begin = {},
                 .end = {}};
  Ns begin = to.ops_sent == 0 ? flight.first_op : to.last_end;
  for (std::uint32_t i = to.ops_sent; i < done; ++i) {
    const Ns end = flight.ends[i - flight.first];
    frame.begin.push_back(begin);
    frame.end.push_back(end);
    begin = end;
  }
  // Without room nothing is lost yet: the next look, or the written step, sends them.
  if (!ports_.send(client, Opcode::Binary, encode(frame))) return;
  to.ops_sent = done;
  to.last_end = begin;
}

bool LiveClients::wants_looks() const {
  return std::ranges::any_of(clients_, [&](const auto& client) {
    return std::ranges::any_of(client.second.sessions, [&](const auto& entry) {
      const auto& [session, to] = entry;
      if (to.lost != to.lost_told) return true;
      const auto live = sessions_.find(session);
      return to.kinds.op && live != sessions_.end() && live->second.state == JobState::Running;
    });
  });
}

// A session's last event ends the subscription to it.
void LiveClients::forget_ended() {
  for (auto& [id, client] : clients_) {
    std::erase_if(client.sessions, [](const auto& entry) {
      return entry.second.ended && entry.second.lost == entry.second.lost_told;
    });
  }
}

}  // namespace tt
