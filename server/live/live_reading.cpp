// LiveClients: reads from session files for clients whose position is older than the log.
#include <algorithm>
#include <utility>

#include "server/live/live_clients.h"

namespace tt {

// The kinds whose next record exists but is not in memory.
LiveKinds LiveClients::missing(const Session& session, const Subscription& to) const {
  const LivePosition& at = to.feed.at();
  LiveKinds kinds = to.feed.kinds();
  kinds.progress = false;
  kinds.token =
      kinds.token && at.token < session.extent.tokens && session.log.token(at.token) == nullptr;
  if (at.step >= session.extent.steps || session.log.step(at.step) != nullptr)
    kinds.step = kinds.op = kinds.routing = false;
  return kinds;
}

void LiveClients::ask(ClientId id, Client& client, const std::string& name, const Session& session,
                      Subscription& to, LiveKinds kinds) {
  Reading& reading = to.reading;
  reading.ticket = ++tickets_;
  reading.kinds = kinds;
  reading.up_to = {.token = session.log.first_token(), .step = session.log.first_step()};
  reading.written = session.extent.tokens_written;
  client.reading_ticket = reading.ticket;
  ports_.read({.client = id,
               .ticket = reading.ticket,
               .session = name,
               .kinds = kinds,
               .from = to.feed.at(),
               .answer = std::exchange(reading.answer, nullptr)});
}

void LiveClients::piece(ArchivePiece piece) {
  const auto client = clients_.find(piece.client);
  if (client == clients_.end()) return;
  const auto found = client->second.subscriptions.find(piece.session);
  Subscription* to = found == client->second.subscriptions.end() ? nullptr : &found->second;
  const bool wanted = to != nullptr && to->reading.ticket == piece.ticket;
  if (wanted && to->opening) {
    to->reading = {};
    opened(piece.client, client->second, piece.session, *to, piece);
    forget_unheard();
    return;
  }
  if (client->second.reading_ticket == piece.ticket) client->second.reading_ticket = 0;
  if (!wanted) return;  // the subscription has moved; the result is obsolete
  Session& session = sessions_.at(piece.session);
  Reading& reading = to->reading;
  reading.ticket = 0;
  reading.answer = std::move(piece.answer);
  if (piece.error && piece.error->kind != TraceError::Kind::NotFound) {
    answer(piece.client, client->second,
           error_event("unreadable", piece.session, piece.error->message));
    end(client->second, piece.session);
    forget_unheard();
    return;
  }
  reading.piece.assign(std::make_move_iterator(piece.records.begin()),
                       std::make_move_iterator(piece.records.end()));
  if (!reading.piece.empty() || (!piece.error && !piece.at_end)) return;
  // No more records. For an ended session the number of tokens is now known.
  if (session.rest_unknown && reading.kinds.token) {
    session.extent.tokens = std::max(piece.tokens, to->feed.at().token);
    session.rest_unknown = false;
  }
  lose_what_is_nowhere(session, *to, !piece.error);
  reading.pausing = missing(session, *to) != kNothing;
}

// Counts records as lost that are neither in memory nor in the file. Tokens of a running
// recording are written shortly after the event, possibly while the file was being read; step
// events come after the write.
void LiveClients::lose_what_is_nowhere(Session& session, Subscription& to, bool recorded) {
  const Reading& reading = to.reading;
  if (reading.kinds.token) {
    const bool may_come = recorded && session.last_message.empty();
    to.feed.lose_tokens_before(may_come ? std::min(reading.up_to.token, reading.written)
                                        : std::min(reading.up_to.token, session.extent.tokens));
  }
  if (reading.kinds.of_steps()) to.feed.lose_steps_before(reading.up_to.step, session.routed);
}

std::optional<LiveMessage> LiveClients::next_of_piece(const Session& session, Subscription& to) {
  auto& piece = to.reading.piece;
  LiveFeed& feed = to.feed;
  while (!piece.empty()) {
    std::optional<LiveMessage> message;
    bool done = true;
    if (const auto* token = std::get_if<TokenRecord>(&piece.front())) {
      message = feed.next_of(*token);
    } else if (const auto* step = std::get_if<StepRecordPtr>(&piece.front())) {
      message = feed.next_of(**step);
      done = feed.at().step != (*step)->index();
    } else if (const auto& damaged = std::get<DamagedRecord>(piece.front()); damaged.is_step) {
      if (feed.at().step == damaged.index)
        feed.lose_steps_before(damaged.index + 1, session.routed);
    } else if (feed.at().token == damaged.index) {
      feed.lose_tokens_before(damaged.index + 1);
    }
    if (done) piece.pop_front();
    if (message) return message;
  }
  return std::nullopt;
}

}  // namespace tt
