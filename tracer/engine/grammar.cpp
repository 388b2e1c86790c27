#include "tracer/engine/grammar.h"

#include <cmath>
#include <cstring>
#include <exception>
#include <format>
#include <string_view>
#include <utility>

namespace tt {

namespace {

// A reply of the child: its first byte, then the bits or the message.
constexpr char kAllowed = 'a', kRejected = 'r';

// No limit on the CPU time: a generation may have any number of tokens. Each has the time limit.
constexpr JobLimits kGrammarLimits{.cpu_time = std::chrono::milliseconds(0)};

GrammarError grammar_error(const JobError& error) {
  if (error.kind == JobError::Kind::Cancelled)
    return {.kind = GrammarError::Kind::Cancelled, .message = "The request was cancelled."};
  if (error.kind == JobError::Kind::Busy || error.kind == JobError::Kind::Unavailable) {
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
  bits[0] = kAllowed;
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

void run_grammar(const llama_vocab* vocab, JobChannel& channel) {
  const LlamaSampler grammar(llama_sampler_init_grammar(vocab, channel.receive().c_str(), "root"));
  if (grammar == nullptr) {
    channel.send(
        std::format("{}The grammar does not parse. It must be GBNF and have a rule named "
                    "root, as in root ::= \"yes\" | \"no\".",
                    kRejected));
    return;
  }
  std::vector<llama_token_data> all(static_cast<std::size_t>(llama_vocab_n_tokens(vocab)));
  for (;;) {
    try {
      channel.send(allowed_tokens(grammar.get(), all));
      const std::string accepted = channel.receive();
      for (std::size_t at = 0; at + sizeof(llama_token) <= accepted.size();
           at += sizeof(llama_token)) {
        llama_token token = 0;
        std::memcpy(&token, accepted.data() + at, sizeof token);
        llama_sampler_accept(grammar.get(), token);
      }
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
    : job_(std::move(job)), tokens_(tokens), keep_going_(std::move(keep_going)) {}

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

void GrammarRun::receive() {
  auto reply = job_.receive(keep_going_);
  if (!reply) {
    error_ = grammar_error(reply.error());
  } else if (reply->starts_with(kRejected)) {
    error_ = GrammarError{.kind = GrammarError::Kind::Grammar, .message = reply->substr(1)};
  } else if (reply->size() != 1 + (tokens_ + 7) / 8) {
    error_ = GrammarError{.kind = GrammarError::Kind::Server,
                          .message = "The model's file has changed. Load it again."};
  } else {
    allowed_ = *std::move(reply);
  }
}

void GrammarRun::update() {
  if (error_ || accepted_.empty()) return;
  const auto sent = job_.send(
      {reinterpret_cast<const char*>(accepted_.data()), accepted_.size() * sizeof(llama_token)},
      keep_going_);
  accepted_.clear();
  if (sent) return receive();
  error_ = grammar_error(sent.error());
}

bool GrammarRun::allows(std::int32_t token) const {
  const auto id = static_cast<std::size_t>(token);
  return id < tokens_ && (static_cast<unsigned char>(allowed_[1 + id / 8]) >> id % 8 & 1) != 0;
}

GrammarRun& GrammarRun::of(const llama_sampler* sampler) {
  return *static_cast<GrammarRun*>(sampler->ctx);
}

llama_sampler* GrammarRun::sampler() {
  static llama_sampler_i functions{
      .name = [](const llama_sampler*) { return "grammar"; },
      .accept = [](llama_sampler* self, llama_token id) { of(self).accepted_.push_back(id); },
      .apply =
          [](llama_sampler* self, llama_token_data_array* candidates) {
            GrammarRun& run = of(self);
            run.update();
            if (run.error_) return;
            for (std::size_t i = 0; i < candidates->size; ++i)
              if (!run.allows(candidates->data[i].id)) candidates->data[i].logit = -INFINITY;
          },
      .reset = nullptr,
      .clone = nullptr,
      .free = nullptr,
      .backend_init = nullptr,
      .backend_accept = nullptr,
      .backend_apply = nullptr,
      .backend_set_input = nullptr,
      .backend_reset = nullptr,
      .copy_state = nullptr};
  return llama_sampler_init(&functions, this);
}

}  // namespace tt
