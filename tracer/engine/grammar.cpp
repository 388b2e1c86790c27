#include "tracer/engine/grammar.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <format>
#include <string_view>
#include <utility>

#include "tracer/text/utf8.h"

namespace tt {

namespace {

// A reply of the child: its first byte, then nothing, the bits, or the message.
constexpr char kYes = 'y', kOthers = 'o', kRejected = 'r';

// A question.
struct Question {
  std::int32_t accepted;   // the token before it; kNoToken: none
  std::int32_t candidate;  // may it follow? kNoToken: may any token follow?
};
constexpr std::int32_t kNoToken = -1;

// For each token: a generation may have any number of them. The limit of the elapsed time is longer
// than that of the CPU time: on a busy machine the child waits for a processor.
constexpr JobLimits kGrammarLimits{.cpu_time = std::chrono::milliseconds(0),
                                   .message_cpu_time = std::chrono::milliseconds(1000)};

GrammarError grammar_error(const JobError& error) {
  if (error.kind == JobError::Kind::Cancelled)
    return {.kind = GrammarError::Kind::Cancelled, .message = "The request was cancelled."};
  if (error.kind == JobError::Kind::Time || error.kind == JobError::Kind::Busy ||
      error.kind == JobError::Kind::Unavailable) {
    return {.kind = GrammarError::Kind::Server,
            .message = std::format("The grammar {}. Try again later.", error.reason)};
  }
  return {.kind = GrammarError::Kind::Grammar,
          .message = std::format("The grammar {}. Use one with less nesting and fewer alternatives "
                                 "and repetitions that match the same text.",
                                 error.reason)};
}

// ---------------------------------------------------------------- child

// The bits of the tokens that the grammar allows next.
std::string allowed_tokens(llama_sampler* grammar, std::vector<llama_token_data>& all) {
  for (std::size_t id = 0; id < all.size(); ++id)
    all[id] = {.id = static_cast<llama_token>(id), .logit = 0, .p = 0};
  llama_token_data_array candidates{
      .data = all.data(), .size = all.size(), .selected = -1, .sorted = false};
  llama_sampler_apply(grammar, &candidates);
  std::string bits(1 + (all.size() + 7) / 8, '\0');
  bits[0] = kOthers;
  bool any = false;
  for (std::size_t i = 0; i < candidates.size; ++i) {
    if (std::isinf(candidates.data[i].logit)) continue;
    const auto id = static_cast<std::size_t>(candidates.data[i].id);
    bits[1 + id / 8] = static_cast<char>(bits[1 + id / 8] | 1 << id % 8);
    any = true;
  }
  if (any) return bits;
  return std::format(
      "{}No token of this model can follow. Use a grammar that the model's vocabulary can produce.",
      kRejected);
}

bool allows_token(llama_sampler* grammar, llama_token token) {
  llama_token_data single{.id = token, .logit = 0, .p = 0};
  llama_token_data_array candidates{.data = &single, .size = 1, .selected = -1, .sorted = false};
  llama_sampler_apply(grammar, &candidates);
  return !std::isinf(single.logit);
}

// Runs `call` and returns the beginning of what it prints to stderr, which nobody else gets. The
// process has no other threads.
template <class Call>
std::string stderr_of(const Call& call) {
  std::string text(4096, '\0');
  int ends[2];
  // What does not fit into the pipe is lost.
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    call();
    return {};
  }
  const int usual = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  call();
  ::dup2(usual, STDERR_FILENO);
  const ssize_t read = ::read(ends[0], text.data(), text.size());
  for (const int end : {ends[0], ends[1], usual}) ::close(end);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
  return text;
}

// ": why", from what llama.cpp printed; empty: it did not say. Its messages quote the rest of the
// grammar, of which the first line is enough.
std::string reason_in(std::string_view printed) {
  constexpr std::string_view kParser = "error parsing grammar: ";
  constexpr std::size_t kMaxBytes = 160;
  const std::size_t at = printed.find(kParser);
  printed.remove_prefix(at == std::string_view::npos ? 0 : at + kParser.size());
  printed = printed.substr(0, printed.find('\n'));
  if (printed.empty()) return {};
  std::string reason = to_valid_utf8(printed.substr(0, kMaxBytes));
  std::ranges::replace_if(reason, [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  return std::format(": {}{}", reason, printed.size() > kMaxBytes ? "..." : "");
}

void run_grammar(const llama_vocab* vocab, JobChannel& channel) {
  const std::string text = channel.receive();
  LlamaSampler grammar;
  // It prints its error, and then the grammar, which may be secret.
  const std::string printed =
      stderr_of([&] { grammar.reset(llama_sampler_init_grammar(vocab, text.c_str(), "root")); });
  if (grammar == nullptr) {
    channel.send(
        std::format("{}The grammar does not parse{}. It must be GBNF and have a rule named "
                    "root, as in root ::= \"yes\" | \"no\".",
                    kRejected, reason_in(printed)));
    return;
  }
  channel.send({&kYes, 1});
  std::vector<llama_token_data> all(static_cast<std::size_t>(llama_vocab_n_tokens(vocab)));
  for (;;) {
    Question question{};
    const std::string message = channel.receive();
    std::memcpy(&question, message.data(), std::min(message.size(), sizeof question));
    try {
      if (question.accepted != kNoToken) llama_sampler_accept(grammar.get(), question.accepted);
      if (question.candidate != kNoToken && allows_token(grammar.get(), question.candidate))
        channel.send({&kYes, 1});
      else
        channel.send(allowed_tokens(grammar.get(), all));
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // an invalid state of the grammar
      channel.send(std::format("{}The grammar cannot continue: {}.", kRejected, error.what()));
      return;
    }
  }
}

}  // namespace

JobKind grammar_job(const llama_vocab* vocab) {
  return {.name = "grammar", .run = [vocab](JobChannel& channel) { run_grammar(vocab, channel); }};
}

LlamaModel load_vocabulary(const std::filesystem::path& model) {
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  return LlamaModel(llama_model_load_from_file(model.c_str(), params));
}

// ---------------------------------------------------------------- caller

GrammarRun::GrammarRun(SandboxJob job, std::size_t tokens, KeepGoing keep_going)
    : job_(std::move(job)),
      tokens_(tokens),
      keep_going_(std::move(keep_going)),
      accepted_(kNoToken) {}

std::expected<std::unique_ptr<GrammarRun>, GrammarError> GrammarRun::start(
    Sandbox& vocabulary, const std::string& grammar, std::size_t tokens,
    const KeepGoing& keep_going) {
  auto job = vocabulary.start("grammar", kGrammarLimits, keep_going);
  if (!job) return std::unexpected(grammar_error(job.error()));
  if (auto sent = job->send(grammar, keep_going); !sent)
    return std::unexpected(grammar_error(sent.error()));
  std::unique_ptr<GrammarRun> run(new GrammarRun(*std::move(job), tokens, keep_going));
  run->receive();
  if (run->error_) return std::unexpected(*run->error_);
  return run;
}

void GrammarRun::fail(const JobError& error) { error_ = grammar_error(error); }

// nullopt: error_ is set.
std::optional<std::string> GrammarRun::receive() {
  auto reply = job_.receive(keep_going_);
  if (!reply) {
    fail(reply.error());
  } else if (reply->starts_with(kRejected)) {
    error_ = GrammarError{.kind = GrammarError::Kind::Grammar, .message = reply->substr(1)};
  } else {
    return *std::move(reply);
  }
  return std::nullopt;
}

// False: `allowed_` is set, or error_.
bool GrammarRun::ask(std::int32_t candidate) {
  if (error_) return false;
  const Question question{.accepted = std::exchange(accepted_, kNoToken), .candidate = candidate};
  if (const auto sent =
          job_.send({reinterpret_cast<const char*>(&question), sizeof question}, keep_going_);
      !sent) {
    fail(sent.error());
    return false;
  }
  auto reply = receive();
  if (!reply || reply->starts_with(kYes)) return reply.has_value();
  if (reply->size() != 1 + (tokens_ + 7) / 8) {
    error_ = GrammarError{.kind = GrammarError::Kind::Server,
                          .message = "The model's file has changed. Load it again."};
  } else {
    allowed_ = *std::move(reply);
  }
  return false;
}

bool GrammarRun::allows(std::int32_t token) { return ask(token); }

bool GrammarRun::allows_any() {
  ask(kNoToken);
  return !error_;
}

void GrammarRun::exclude(std::span<llama_token_data> candidates) const {
  if (error_) return;
  for (llama_token_data& each : candidates) {
    const auto id = static_cast<std::size_t>(each.id);
    const bool allowed =
        id < tokens_ && (static_cast<unsigned char>(allowed_[1 + id / 8]) >> id % 8 & 1) != 0;
    if (!allowed) each.logit = -INFINITY;
  }
}

}  // namespace tt
