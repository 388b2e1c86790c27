#include "server/live/live_archive.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tracer/format/access/access.h"

namespace tt {

namespace {

using Clock = std::chrono::steady_clock;

// A batch ends when it reaches either limit: memory, or time that other clients have to wait.
constexpr std::size_t kPieceBytes = 128u << 10;
constexpr std::chrono::milliseconds kPieceTime{20};
constexpr std::uint32_t kTokensAtOnce = 256;

// An idle file is closed after this time. While it is open, its recording cannot checkpoint
// and close cleanly and a deleted file keeps its disk space.
constexpr std::chrono::milliseconds kKeepOpen{50};
constexpr std::size_t kMostOpen = 4;
constexpr std::uint32_t kMostLayers = 1024;  // limit for values from untrusted files

}  // namespace

struct LiveArchive::Session {
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
class PieceReader {
 public:
  PieceReader(SessionReader& reader, const SessionInfo& info, ArchiveRequest& request,
              ArchivePiece& piece,
              std::function<std::expected<KnownGraphPtr, TraceError>(TemplateId)> graph)
      : reader_(reader),
        info_(info),
        request_(request),
        piece_(piece),
        graph_(std::move(graph)),
        at_(request.from),
        full_at_(Clock::now() + kPieceTime) {}

  void read() {
    while (request_.kinds.of_steps() && at_.step < piece_.steps && !full()) {
      const bool known = read_step();
      if (known && request_.kinds.token && !read_tokens(step_tokens_end_)) return;
      if (step_) keep_step();
    }
    if (full()) return;
    if (request_.kinds.token && !(read_tokens(piece_.tokens) && read_rest())) return;
    piece_.at_end = true;
  }

 private:
  bool full() const { return bytes_ >= kPieceBytes || Clock::now() >= full_at_; }

  // Returns false if the step is damaged; a DamagedRecord was added.
  bool read_step() {
    step_.reset();
    auto step = reader_.step(StepId{at_.step});
    auto graph = step ? graph_(step->graph)
                      : std::expected<KnownGraphPtr, TraceError>(std::unexpected(step.error()));
    if (!graph) {
      piece_.records.emplace_back(DamagedRecord{.is_step = true, .index = at_.step++});
      return false;
    }
    step_tokens_end_ = std::min(piece_.tokens, step->first_token + step->n_tokens);
    step_ = std::make_shared<StepRecord>(request_.session, *std::move(step), *std::move(graph),
                                         std::min(info_.n_layers, kMostLayers));
    return true;
  }

  void keep_step() {
    step_->settle(request_.kinds.step, request_.kinds.routing);
    bytes_ += step_->bytes();
    piece_.records.emplace_back(std::move(step_));
    step_.reset();
    ++at_.step;
  }

  // Reads tokens up to `end`. Returns false if the batch filled up first.
  bool read_tokens(std::uint32_t end) {
    while (at_.token < end) {
      if (full()) return false;
      // Earlier tokens are needed too: they are part of the answer text.
      AnswerSoFar& so_far = answer();
      const std::uint32_t first = so_far.tokens;
      auto tokens = reader_.tokens(first, std::min(kTokensAtOnce, end - first));
      // One of the tokens is damaged. Read one at a time to find it.
      if (!tokens) tokens = reader_.tokens(first, 1);
      if (!tokens || tokens->empty()) {
        ++so_far.tokens;
        if (first < at_.token) continue;
        piece_.records.emplace_back(DamagedRecord{.is_step = false, .index = at_.token++});
        continue;
      }
      for (const Token& token : *tokens) {
        const std::string grown = so_far.answer.push(token);
        ++so_far.tokens;
        if (token.index < at_.token) continue;
        keep_token(at_.token++, token_event(request_.session, token, grown));
      }
    }
    return true;
  }

  // Remaining answer text that belongs to no token, after the last token of an ended session.
  bool read_rest() {
    if (piece_.state == SessionState::Running || at_.token != piece_.tokens) return true;
    // Feed the tokens that precede `from`.
    while (answer().tokens < piece_.tokens) {
      if (full()) return false;
      skip_tokens();
    }
    if (const std::string rest = answer().answer.rest(); !rest.empty()) {
      piece_.tokens = at_.token + 1;
      keep_token(at_.token, text_event(request_.session, at_.token, rest));
      ++at_.token;
    }
    return true;
  }

  void skip_tokens() {
    AnswerSoFar& so_far = answer();
    const auto tokens =
        reader_.tokens(so_far.tokens, std::min(kTokensAtOnce, piece_.tokens - so_far.tokens));
    if (!tokens || tokens->empty()) {
      ++so_far.tokens;
      return;
    }
    for (const Token& token : *tokens) so_far.answer.push(token);
    so_far.tokens += static_cast<std::uint32_t>(tokens->size());
  }

  void keep_token(std::uint32_t index, std::string message) {
    bytes_ += 64 + message.size();
    piece_.records.emplace_back(TokenRecord{.index = index, .message = std::move(message)});
  }

  AnswerSoFar& answer() {
    if (piece_.answer == nullptr || piece_.answer->tokens > at_.token)
      piece_.answer = std::make_shared<AnswerSoFar>(RecordedAnswer(info_), 0u);
    return *piece_.answer;
  }

  SessionReader& reader_;
  const SessionInfo& info_;
  ArchiveRequest& request_;
  ArchivePiece& piece_;
  std::function<std::expected<KnownGraphPtr, TraceError>(TemplateId)> graph_;
  LivePosition at_;
  Clock::time_point full_at_;
  std::size_t bytes_ = 0;
  StepRecordPtr step_;
  std::uint32_t step_tokens_end_ = 0;
};

}  // namespace

LiveArchive::LiveArchive(Open open, std::function<void(ArchivePiece)> done)
    : open_(std::move(open)), done_(std::move(done)), thread_([this] { run(); }) {}

LiveArchive::~LiveArchive() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void LiveArchive::read(ArchiveRequest request) {
  {
    const std::scoped_lock lock(mutex_);
    requests_.push_back(std::move(request));
  }
  wake_.notify_one();
}

// ---------------------------------------------------------------- reader thread

void LiveArchive::run() {
  for (;;) {
    std::optional<ArchiveRequest> request;
    {
      std::unique_lock lock(mutex_);
      const auto something = [this] { return stopping_ || !requests_.empty(); };
      if (sessions_.empty()) {
        wake_.wait(lock, something);
      } else {
        wake_.wait_for(lock, kKeepOpen, something);
      }
      if (stopping_) return;
      if (!requests_.empty()) {
        request = std::move(requests_.front());
        requests_.pop_front();
      }
    }
    if (request) done_(piece_of(*request));
    const auto unused = Clock::now() - kKeepOpen;
    std::erase_if(sessions_, [&](const auto& entry) { return entry.second->used < unused; });
  }
}

std::expected<LiveArchive::Session*, TraceError> LiveArchive::open(const std::string& session) {
  auto found = sessions_.find(session);
  if (found == sessions_.end()) {
    auto reader = open_(session);
    if (!reader) return std::unexpected(reader.error());
    auto info = reader->info();
    if (!info) return std::unexpected(info.error());
    while (sessions_.size() >= kMostOpen) {
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

ArchivePiece LiveArchive::piece_of(ArchiveRequest& request) {
  ArchivePiece piece{.client = request.client,
                     .ticket = request.ticket,
                     .session = request.session,
                     .answer = std::move(request.answer)};
  const auto session = open(request.session);
  if (!session) {
    piece.error = session.error();
    return piece;
  }
  // Read the state before the counts: if the session has ended, the counts are final.
  Session& from = **session;
  piece.state = from.info.state;
  piece.session_error = from.info.error;
  const auto tokens = from.reader.token_count();
  const auto steps = from.reader.step_count();
  if (!tokens || !steps) {
    piece.error = tokens ? steps.error() : tokens.error();
    return piece;
  }
  piece.tokens = *tokens;
  piece.steps = *steps;
  PieceReader(from.reader, from.info, request, piece, [&](TemplateId id) {
    return from.graph(id);
  }).read();
  from.used = Clock::now();
  return piece;
}

}  // namespace tt
