#include "server/live/generation_streams.h"

#include <format>
#include <optional>
#include <utility>

#include "analysis/tables/step_summary.h"
#include "api/live/live_events.h"
#include "server/live/live_records.h"
#include "tracer/probe/known_graph.h"

namespace tt {

namespace {

constexpr std::size_t kSmallEventBytes = 256;  // approximate bytes of an event with a few numbers

std::string sse(const char* name, const std::string& data) {
  return std::format("event: {}\ndata: {}\n\n", name, data);
}

}  // namespace

// ---------------------------------------------------------------- one stream

void GenerationStream::push(Event event) {
  {
    const std::scoped_lock lock(mutex_);
    if (final_queued_) return;
    if (event.bytes > 0 && bytes_ + event.bytes > kMaxQueuedBytes) {
      if (event.loss != nullptr) ++(lost_.*event.loss);
      return;
    }
    bytes_ += event.bytes;
    final_queued_ = event.last;
    events_.push_back(std::move(event));
  }
  wake_.notify_one();
}

std::string GenerationStream::read(std::chrono::milliseconds timeout) {
  std::deque<Event> events;
  std::optional<LiveLosses> lost;
  {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, timeout, [this] { return !events_.empty(); });
    events.swap(events_);
    bytes_ = 0;
    if (lost_ != lost_reported_) lost = lost_reported_ = lost_;
  }
  std::string text;
  if (lost) text = sse("loss", loss_event(session_, *lost));
  for (const Event& event : events) text += sse(event.name, event.data());
  const auto now = std::chrono::steady_clock::now();
  if (text.empty() && now - last_read_ > heartbeat_) text = ": keep-alive\n\n";
  if (!text.empty()) last_read_ = now;
  return text;
}

bool GenerationStream::ended() const {
  const std::scoped_lock lock(mutex_);
  return final_queued_ && events_.empty();
}

// ---------------------------------------------------------------- all of them

std::shared_ptr<GenerationStream> GenerationStreams::open(const std::string& session) {
  const std::scoped_lock lock(mutex_);
  if (open_.size() >= kMaxStreams) return nullptr;
  auto stream = std::make_shared<GenerationStream>(session, heartbeat_);
  open_.emplace(session, stream);
  count_ = open_.size();
  return stream;
}

void GenerationStreams::close(const std::string& session) {
  const std::scoped_lock lock(mutex_);
  open_.erase(session);
  count_ = open_.size();
}

std::shared_ptr<GenerationStream> GenerationStreams::find(const std::string& session) const {
  if (count_ == 0) return nullptr;
  const std::scoped_lock lock(mutex_);
  const auto found = open_.find(session);
  return found == open_.end() ? nullptr : found->second;
}

void GenerationStreams::on_state(const JobStatus& status) {
  const auto stream = find(status.id);
  if (!stream) return;
  stream->n_layers_ = status.n_layers;
  JobStatus without_text = status;
  without_text.text.clear();
  stream->push(
      {.name = "state",
       .data = [without_text = std::move(without_text)] { return state_event(without_text); },
       .last = has_ended(status.state)});
}

void GenerationStreams::on_progress(const JobStatus& status) {
  const auto stream = find(status.id);
  if (!stream) return;
  stream->push({.name = "progress",
                .data = [status] { return progress_event(status); },
                .bytes = kSmallEventBytes});
}

void GenerationStreams::on_token(const std::string& session, const Token& token,
                                 std::string_view piece) {
  const auto stream = find(session);
  if (!stream) return;
  stream->tokens_ = token.index + 1;
  stream->push({.name = "token",
                .data = [session, token,
                         text = std::string(piece)] { return token_event(session, token, text); },
                .bytes = kSmallEventBytes + piece.size(),
                .loss = &LiveLosses::tokens});
}

void GenerationStreams::on_text(const std::string& session, std::string_view rest) {
  const auto stream = find(session);
  if (!stream) return;
  const std::uint32_t index = stream->tokens_;
  stream->push({.name = "text",
                .data = [session, index,
                         text = std::string(rest)] { return text_event(session, index, text); },
                .bytes = kSmallEventBytes + rest.size(),
                .loss = &LiveLosses::tokens});
}

void GenerationStreams::on_step(const std::string& session, const Step& step,
                                const KnownGraphPtr& graph) {
  const auto stream = find(session);
  if (!stream) return;
  const std::uint32_t n_layers = stream->n_layers_;
  const auto summary = [step = std::make_shared<const Step>(step), graph, n_layers] {
    return graph == nullptr ? step_summary(nullptr, {}, *step, n_layers)
                            : step_summary(&graph->graph, graph->accesses, *step, n_layers);
  };
  stream->push({.name = "step",
                .data = [session, summary] { return step_event(session, summary()); },
                .bytes = bytes_of(step),
                .loss = &LiveLosses::steps});
}

}  // namespace tt
