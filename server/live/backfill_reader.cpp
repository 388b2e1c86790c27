#include "server/live/backfill_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tracer/format/access/access.h"

namespace tt {

namespace {

using Clock = std::chrono::steady_clock;

// A batch ends when it reaches either limit: memory, or time that other clients have to wait.
constexpr std::size_t kMaxBatchBytes = 128u << 10;
constexpr std::chrono::milliseconds kMaxBatchTime{20};
constexpr std::uint32_t kTokensPerRead = 256;

// An idle file is closed after this time. While it is open, its recording cannot checkpoint
// and close cleanly and a deleted file keeps its disk space.
constexpr std::chrono::milliseconds kFileIdleTimeout{50};
constexpr std::size_t kMaxOpenFiles = 4;
constexpr std::uint32_t kMaxRecordedLayers = 1024;  // limit for values from untrusted files

}  // namespace

struct BackfillReader::Session {
  SessionReader reader;
  SessionInfo info;  // read on open; `state` and `error` are refreshed for each batch
  std::map<TemplateId, KnownGraphPtr> graphs;
  Clock::time_point used;

  std::expected<KnownGraphPtr, TraceError> graph(TemplateId id) {
    if (id.v == 0) return nullptr;
    if (const auto known = graphs.find(id); known != graphs.end()) return known->second;
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    auto made = std::make_shared<KnownGraph>(KnownGraph{.graph = **graph, .accesses = {}});
    made->accesses = accesses_of(made->graph);
    return graphs[id] = std::move(made);
  }
};

namespace {

// Reads one batch. Tokens precede the step that evaluated them.
class BatchReader {
 public:
  BatchReader(SessionReader& reader, const SessionInfo& info, BackfillRequest& request,
              BackfillBatch& batch,
              std::function<std::expected<KnownGraphPtr, TraceError>(TemplateId)> graph)
      : reader_(reader),
        info_(info),
        request_(request),
        batch_(batch),
        graph_(std::move(graph)),
        at_(request.from),
        deadline_(Clock::now() + kMaxBatchTime) {}

  void read() {
    hold_back_draft();
    while (request_.kinds.any_of_step() && at_.step < batch_.steps && !full()) {
      const bool known = read_step();
      if (known && request_.kinds.token && !read_tokens(step_tokens_end_)) return;
      if (step_) keep_step();
    }
    if (full()) return;
    if (request_.kinds.token && !(read_tokens(batch_.tokens) && read_rest())) return;
    batch_.is_last = true;
  }

 private:
  // The tokens of a draft are sent with its result, which the step after it shows: until then, the
  // last step is not there. A session that has ended has no such step.
  void hold_back_draft() {
    if (batch_.state != SessionState::Running || batch_.steps == 0 ||
        info_.fact("attach.pid").empty())
      return;
    const auto step = reader_.step(StepId{batch_.steps - 1});
    if (!step || step->n_tokens < 2) return;
    const auto tokens = reader_.tokens(step->first_token, step->n_tokens);
    if (!tokens || std::ranges::none_of(
                       *tokens, [](const Token& token) { return token.draft == Draft::Unknown; }))
      return;
    --batch_.steps;
    batch_.tokens = std::min(batch_.tokens, step->first_token);
  }

  bool full() const { return bytes_ >= kMaxBatchBytes || Clock::now() >= deadline_; }

  // Returns false if the step is damaged; a DamagedRecord was added.
  bool read_step() {
    step_.reset();
    auto step = reader_.step(StepId{at_.step});
    auto graph = step ? graph_(step->graph)
                      : std::expected<KnownGraphPtr, TraceError>(std::unexpected(step.error()));
    if (!graph) {
      batch_.records.emplace_back(DamagedRecord{.is_step = true, .index = at_.step++});
      return false;
    }
    step_tokens_end_ = std::min(batch_.tokens, step->first_token + step->n_tokens);
    step_ = std::make_shared<StepRecord>(request_.session, *std::move(step), *std::move(graph),
                                         std::min(info_.n_layers, kMaxRecordedLayers));
    return true;
  }

  void keep_step() {
    step_->materialize(request_.kinds.step, request_.kinds.routing);
    bytes_ += step_->bytes();
    batch_.records.emplace_back(std::move(step_));
    step_.reset();
    ++at_.step;
  }

  // Reads tokens up to `end`. Returns false if the batch filled up first.
  bool read_tokens(std::uint32_t end) {
    while (at_.token < end) {
      if (full()) return false;
      // Earlier tokens are needed too: they are part of the answer text.
      PartialAnswer& partial = answer();
      const std::uint32_t first = partial.tokens;
      auto tokens = reader_.tokens(first, std::min(kTokensPerRead, end - first));
      // One of the tokens is damaged. Read one at a time to find it.
      if (!tokens) tokens = reader_.tokens(first, 1);
      if (!tokens || tokens->empty()) {
        ++partial.tokens;
        if (first < at_.token) continue;
        batch_.records.emplace_back(DamagedRecord{.is_step = false, .index = at_.token++});
        continue;
      }
      for (const Token& token : *tokens) {
        const std::string grown = partial.answer.push(token);
        ++partial.tokens;
        if (token.index < at_.token) continue;
        keep_token(at_.token++, token_event(request_.session, token, grown));
      }
    }
    return true;
  }

  // Remaining answer text that belongs to no token, after the last token of an ended session.
  bool read_rest() {
    if (batch_.state == SessionState::Running || at_.token != batch_.tokens) return true;
    // Feed the tokens that precede `from`.
    while (answer().tokens < batch_.tokens) {
      if (full()) return false;
      skip_tokens();
    }
    if (const std::string rest = answer().answer.rest(); !rest.empty()) {
      batch_.tokens = at_.token + 1;
      keep_token(at_.token, text_event(request_.session, at_.token, rest));
      ++at_.token;
    }
    return true;
  }

  void skip_tokens() {
    PartialAnswer& partial = answer();
    const auto tokens =
        reader_.tokens(partial.tokens, std::min(kTokensPerRead, batch_.tokens - partial.tokens));
    if (!tokens || tokens->empty()) {
      ++partial.tokens;
      return;
    }
    for (const Token& token : *tokens) partial.answer.push(token);
    partial.tokens += static_cast<std::uint32_t>(tokens->size());
  }

  void keep_token(std::uint32_t index, std::string message) {
    bytes_ += 64 + message.size();
    batch_.records.emplace_back(TokenRecord{.index = index, .message = std::move(message)});
  }

  PartialAnswer& answer() {
    if (batch_.answer == nullptr || batch_.answer->tokens > at_.token)
      batch_.answer = std::make_shared<PartialAnswer>(RecordedAnswer(info_), 0u);
    return *batch_.answer;
  }

  SessionReader& reader_;
  const SessionInfo& info_;
  BackfillRequest& request_;
  BackfillBatch& batch_;
  std::function<std::expected<KnownGraphPtr, TraceError>(TemplateId)> graph_;
  LivePosition at_;
  Clock::time_point deadline_;
  std::size_t bytes_ = 0;
  StepRecordPtr step_;
  std::uint32_t step_tokens_end_ = 0;
};

}  // namespace

BackfillReader::BackfillReader(Open open, std::function<void(BackfillBatch)> done)
    : open_(std::move(open)), done_(std::move(done)), thread_([this] { run(); }) {}

BackfillReader::~BackfillReader() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void BackfillReader::read(BackfillRequest request) {
  {
    const std::scoped_lock lock(mutex_);
    requests_.push_back(std::move(request));
  }
  wake_.notify_one();
}

// ---------------------------------------------------------------- reader thread

void BackfillReader::run() {
  for (;;) {
    std::optional<BackfillRequest> request;
    {
      std::unique_lock lock(mutex_);
      const auto something = [this] { return stopping_ || !requests_.empty(); };
      if (sessions_.empty()) {
        wake_.wait(lock, something);
      } else {
        wake_.wait_for(lock, kFileIdleTimeout, something);
      }
      if (stopping_) return;
      if (!requests_.empty()) {
        request = std::move(requests_.front());
        requests_.pop_front();
      }
    }
    if (request) done_(read_batch(*request));
    const auto unused = Clock::now() - kFileIdleTimeout;
    std::erase_if(sessions_, [&](const auto& entry) { return entry.second->used < unused; });
  }
}

std::expected<BackfillReader::Session*, TraceError> BackfillReader::open(
    const std::string& session) {
  auto found = sessions_.find(session);
  if (found == sessions_.end()) {
    auto reader = open_(session);
    if (!reader) return std::unexpected(reader.error());
    auto info = reader->info();
    if (!info) return std::unexpected(info.error());
    while (sessions_.size() >= kMaxOpenFiles) {
      sessions_.erase(std::ranges::min_element(
          sessions_, {}, [](const auto& entry) { return entry.second->used; }));
    }
    found = sessions_
                .emplace(session, std::make_unique<Session>(*std::move(reader), *std::move(info),
                                                            std::map<TemplateId, KnownGraphPtr>{},
                                                            Clock::time_point{}))
                .first;
  } else if (found->second->info.state == SessionState::Running) {
    auto info = found->second->reader.info();
    if (!info) return std::unexpected(info.error());
    found->second->info = *std::move(info);
  }
  found->second->used = Clock::now();
  return found->second.get();
}

BackfillBatch BackfillReader::read_batch(BackfillRequest& request) {
  BackfillBatch batch{.client = request.client,
                      .request_id = request.request_id,
                      .session = request.session,
                      .answer = std::move(request.answer)};
  const auto session = open(request.session);
  if (!session) {
    batch.error = session.error();
    return batch;
  }
  // Read the state before the counts: if the session has ended, the counts are final.
  Session& from = **session;
  batch.state = from.info.state;
  batch.session_error = from.info.error;
  const auto tokens = from.reader.token_count();
  const auto steps = from.reader.step_count();
  if (!tokens || !steps) {
    batch.error = tokens ? steps.error() : tokens.error();
    return batch;
  }
  batch.tokens = *tokens;
  batch.steps = *steps;
  BatchReader(from.reader, from.info, request, batch, [&](TemplateId id) {
    return from.graph(id);
  }).read();
  from.used = Clock::now();
  return batch;
}

}  // namespace tt
