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

void LiveClients::request_backfill(ClientId id, Client& client, const std::string& name,
                                   const Session& session, Subscription& to, LiveKinds kinds) {
  Backfill& backfill = to.backfill;
  backfill.request_id = ++last_request_id_;
  backfill.kinds = kinds;
  backfill.log_start = {.token = session.log.first_token(), .step = session.log.first_step()};
  backfill.tokens_written_at_request = session.extent.tokens_written;
  client.pending_request_id = backfill.request_id;
  callbacks_.read({.client = id,
                   .request_id = backfill.request_id,
                   .session = name,
                   .kinds = kinds,
                   .from = to.feed.at(),
                   .answer = std::exchange(backfill.answer, nullptr)});
}

void LiveClients::batch(BackfillBatch batch) {
  const auto client = clients_.find(batch.client);
  if (client == clients_.end()) return;
  const auto found = client->second.subscriptions.find(batch.session);
  Subscription* to = found == client->second.subscriptions.end() ? nullptr : &found->second;
  const bool is_current = to != nullptr && to->backfill.request_id == batch.request_id;
  if (is_current && to->pending_open) {
    to->backfill = {};
    opened(batch.client, client->second, batch.session, *to, batch);
    update_subscribers();
    return;
  }
  if (client->second.pending_request_id == batch.request_id) client->second.pending_request_id = 0;
  if (!is_current) return;  // the subscription has moved; the result is obsolete
  Session& session = sessions_.at(batch.session);
  Backfill& backfill = to->backfill;
  backfill.request_id = 0;
  backfill.answer = std::move(batch.answer);
  if (batch.error && batch.error->kind != TraceError::Kind::NotFound) {
    answer(batch.client, client->second,
           error_event("unreadable", batch.session, batch.error->message));
    end(client->second, batch.session);
    update_subscribers();
    return;
  }
  backfill.batch.assign(std::make_move_iterator(batch.records.begin()),
                        std::make_move_iterator(batch.records.end()));
  if (!backfill.batch.empty() || (!batch.error && !batch.is_last)) return;
  // No more records. For an ended session the number of tokens is now known.
  if (session.rest_unknown && backfill.kinds.token) {
    session.extent.tokens = std::max(batch.tokens, to->feed.at().token);
    session.rest_unknown = false;
  }
  lose_unavailable(session, *to, !batch.error);
  backfill.retry_on_poll = missing(session, *to) != kNothing;
}

// Counts records as lost that are neither in memory nor in the file. Tokens of a running
// recording are written shortly after the event, possibly while the file was being read; step
// events come after the write.
void LiveClients::lose_unavailable(Session& session, Subscription& to, bool recorded) {
  const Backfill& backfill = to.backfill;
  if (backfill.kinds.token) {
    const bool may_come = recorded && session.last_message.empty();
    to.feed.lose_tokens_before(
        may_come ? std::min(backfill.log_start.token, backfill.tokens_written_at_request)
                 : std::min(backfill.log_start.token, session.extent.tokens));
  }
  if (backfill.kinds.any_of_step())
    to.feed.lose_steps_before(backfill.log_start.step, session.routed);
}

std::optional<LiveMessage> LiveClients::next_from_batch(const Session& session, Subscription& to) {
  auto& batch = to.backfill.batch;
  LiveFeed& feed = to.feed;
  while (!batch.empty()) {
    std::optional<LiveMessage> message;
    bool done = true;
    if (const auto* token = std::get_if<TokenRecord>(&batch.front())) {
      message = feed.next_message(*token);
    } else if (const auto* step = std::get_if<StepRecordPtr>(&batch.front())) {
      message = feed.next_message(**step);
      done = feed.at().step != (*step)->index();
    } else if (const auto& damaged = std::get<DamagedRecord>(batch.front()); damaged.is_step) {
      if (feed.at().step == damaged.index)
        feed.lose_steps_before(damaged.index + 1, session.routed);
    } else if (feed.at().token == damaged.index) {
      feed.lose_tokens_before(damaged.index + 1);
    }
    if (done) batch.pop_front();
    if (message) return message;
  }
  return std::nullopt;
}

}  // namespace tt
