// Prompts: their tokens, and whether a model can follow a request.
#include <algorithm>
#include <exception>
#include <format>
#include <new>
#include <optional>
#include <utility>

#include "tracer/debug/breakpoint.h"
#include "tracer/engine/engine.h"
#include "tracer/engine/engine_error.h"
#include "tracer/engine/engine_state.h"
#include "tracer/probe/name_pattern.h"
#include "tracer/probe/value_capture.h"
#include "tracer/request/request_bounds.h"
#include "tracer/text/utf8.h"

namespace tt {

namespace {

std::size_t text_bytes(const Prompt& prompt) {
  std::size_t bytes = 0;
  if (const auto* text = std::get_if<std::string>(&prompt)) bytes = text->size();
  if (const auto* conversation = std::get_if<Conversation>(&prompt)) {
    bytes = conversation->tools.size() + conversation->arguments.size();
    for (const ChatMessage& message : conversation->messages)
      bytes += std::max(message.content.size(), message.json.size());
  }
  return bytes;
}

// Longer texts are not tokenized: natural language and code have 3 to 8 bytes per token.
constexpr std::size_t max_bytes(std::uint32_t max_tokens) {
  return std::size_t{16} * max_tokens + 4096;
}

}  // namespace

std::string Engine::Impl::piece(std::int32_t token, bool special) const {
  if (!facts.has_vocabulary) return {};
  std::string bytes(32, '\0');
  for (;;) {
    const std::int32_t length = llama_token_to_piece(
        vocab(), token, bytes.data(), static_cast<std::int32_t>(bytes.size()), 0, special);
    if (length >= 0) {
      bytes.resize(static_cast<std::size_t>(length));
      return bytes;
    }
    bytes.resize(static_cast<std::size_t>(-length));
  }
}

std::expected<std::vector<std::int32_t>, EngineError> Engine::tokens_of(
    const Prompt& prompt) const {
  const ModelFacts& facts = impl_->facts;
  const bool whole = facts.embedding_only || facts.has_encoder;
  const std::uint32_t maximum = whole ? facts.ubatch : facts.context;
  std::vector<std::int32_t> tokens;
  if (const auto* ids = std::get_if<std::vector<std::int32_t>>(&prompt)) {
    tokens = *ids;
    for (const std::int32_t id : tokens) {
      if (id < 0 || static_cast<std::uint32_t>(id) >= facts.n_vocab) {
        return engine_error(
            EngineError::Kind::BadToken,
            std::format("Token {} is not in the vocabulary: ids must be from 0 to {}.", id,
                        facts.n_vocab - 1));
      }
    }
  } else {
    if (!facts.has_vocabulary) {
      return engine_error(
          EngineError::Kind::NoVocabulary,
          std::format("This model has no vocabulary and cannot tokenize text. Send token "
                      "ids from 0 to {} instead.",
                      facts.n_vocab - 1));
    }
    if (text_bytes(prompt) > max_bytes(maximum)) return too_long(maximum);
    auto text = text_of(prompt);
    if (!text) return std::unexpected(text.error());
    if (text->empty()) {
      return engine_error(EngineError::Kind::EmptyPrompt,
                          "The prompt is empty. Send at least one character.");
    }
    try {
      if (text->size() > max_bytes(maximum) || has_more_tokens(*text, maximum))
        return too_long(maximum);
      tokens = tokenize(*text);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& failed) {  // the vocabulary lacks a token that it needs
      return engine_error(
          EngineError::Kind::NoVocabulary,
          std::format("The model's tokenizer cannot convert this text: {}. Send token ids "
                      "instead.",
                      failed.what()));
    }
  }
  if (tokens.empty()) {
    return engine_error(EngineError::Kind::EmptyPrompt,
                        "The prompt is empty. Send at least one token.");
  }
  if (tokens.size() > maximum) return too_long(maximum, tokens.size());
  return tokens;
}

// `count`: 0 if the tokens were not counted.
std::unexpected<EngineError> Engine::too_long(std::uint32_t maximum, std::size_t count) const {
  const ModelFacts& facts = impl_->facts;
  // A larger context does not help an encoder beyond its training context, or a model beyond its
  // learned positions.
  const bool whole = facts.embedding_only || facts.has_encoder;
  const bool grows = maximum < learned_positions(impl_->index) &&
                     (!whole || maximum < std::max<std::uint32_t>(facts.context_trained, 512));
  return engine_error(
      EngineError::Kind::TooLong,
      std::format("The prompt has {} tokens; the maximum is {}. {}",
                  count > 0 ? std::to_string(count) : "too many", maximum,
                  grows ? "Shorten it, or load the model with a larger context (-c)."
                        : "Shorten it: this is the limit of the model."));
}

// Whether a text certainly has more than `maximum` tokens. llama_tokenize() cannot be interrupted,
// and its time can grow with the square of the number of tokens (it copies the whole list for each
// byte that is not in the vocabulary). So a long text is tokenized in parts, which is enough to
// reject it after a few of them. A part can have a few tokens more than in the whole text: the
// begin of the text, a space, and a token that was cut.
bool Engine::has_more_tokens(std::string_view text, std::uint32_t maximum) const {
  constexpr std::size_t kPartBytes = 4096, kMoreTokens = 4;
  std::size_t tokens = 0;
  while (text.size() > kPartBytes) {
    const std::string part(utf8_prefix(text, kPartBytes));
    const std::size_t count = tokenize(part).size();
    tokens += count - std::min(count, kMoreTokens);
    if (tokens > maximum) return true;
    text.remove_prefix(part.size());
  }
  return false;
}

std::expected<std::vector<std::int32_t>, EngineError> Engine::check(
    const GenerationRequest& request) const {
  auto tokens = tokens_of(request.prompt);
  if (!tokens) return tokens;
  const std::string& grammar = request.sampling.grammar;
  if (!grammar.empty()) {
    if (impl_->facts.embedding_only) {
      return engine_error(EngineError::Kind::BadOption,
                          "This model generates no text, so a grammar cannot be used. Remove the "
                          "grammar.");
    }
    const auto parsed = impl_->start_grammar(grammar);
    std::optional<GrammarError> wrong;
    if (!parsed)
      wrong = parsed.error();
    else if (!(*parsed)->allows_any())
      wrong = (*parsed)->error();
    if (wrong) {
      const bool is_wrong = wrong->kind == GrammarError::Kind::Grammar;
      return engine_error(is_wrong ? EngineError::Kind::BadGrammar : EngineError::Kind::Busy,
                          wrong->message);
    }
  }
  if (auto reason = impl_->sampling_error(request.sampling); !reason.empty())
    return engine_error(EngineError::Kind::BadOption, std::move(reason));
  if (auto pattern = NamePattern::compile(request.stats_pattern); !pattern) {
    return engine_error(EngineError::Kind::BadOption, "stats_pattern " + pattern.error());
  }
  if (const auto rules = capture_rules(request); !rules)
    return engine_error(EngineError::Kind::BadOption, rules.error());
  if (request.debug) {
    if (const auto parsed = parse_breakpoints(request.debug->breakpoints); !parsed)
      return engine_error(EngineError::Kind::BadOption, parsed.error());
  }
  return tokens;
}

std::string Engine::Impl::sampling_error(const Sampling& sampling) const {
  for (const LogitBias& each : sampling.logit_bias) {
    const auto* id = std::get_if<std::int32_t>(&each.token);
    if (id == nullptr && !facts.has_vocabulary)
      return "logit_bias: this model has no vocabulary. Give token ids instead of texts.";
    if (id != nullptr && std::cmp_greater_equal(*id, facts.n_vocab)) {
      return std::format("logit_bias: token {} does not exist. The model has {} tokens, from 0.",
                         *id, facts.n_vocab);
    }
  }
  if (sampling.dry_multiplier != 0 && !facts.has_vocabulary)
    return "dry_multiplier: DRY needs a vocabulary, and this model has none. Use 0.";
  return {};
}

std::expected<std::unique_ptr<GrammarRun>, GrammarError> Engine::Impl::start_grammar(
    const std::string& grammar, const KeepGoing& keep_going) const {
  const auto reject = [](std::string message) {
    return std::unexpected(
        GrammarError{.kind = GrammarError::Kind::Grammar, .message = std::move(message)});
  };
  if (!facts.has_vocabulary)
    return reject("A grammar needs a vocabulary, and this model has none. Remove the grammar.");
  if (vocabulary == nullptr) return reject("This program does not evaluate grammars.");
  if (grammar.size() > kMaxGrammarBytes) {
    return reject(
        std::format("The grammar is too large. The maximum is {} bytes.", kMaxGrammarBytes));
  }
  return GrammarRun::start(*vocabulary, grammar, facts.n_vocab, keep_going);
}

std::expected<std::string, EngineError> Engine::text_of(const Prompt& prompt) const {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  if (impl_->chat_template.empty()) {
    return engine_error(
        EngineError::Kind::NoChatTemplate,
        "This model has no vocabulary, so that a conversation is not possible. Send token "
        "ids.");
  }
  const auto& conversation = std::get<Conversation>(prompt);
  if (conversation.messages.empty()) {
    return engine_error(EngineError::Kind::EmptyPrompt,
                        "The conversation is empty. Send at least one message.");
  }
  if (!impl_->template_error.empty())
    return engine_error(EngineError::Kind::BadTemplate, impl_->template_error);
  if (impl_->sandbox == nullptr)
    return engine_error(EngineError::Kind::BadTemplate,
                        "This program does not render chat templates.");
  auto text = render_chat(*impl_->sandbox, impl_->chat_template, conversation, impl_->chat_tokens);
  if (text) return *std::move(text);
  const EngineError::Kind kind =
      text.error().kind == ChatError::Kind::Conversation ? EngineError::Kind::BadConversation
      : text.error().kind == ChatError::Kind::Template   ? EngineError::Kind::BadTemplate
                                                         : EngineError::Kind::Busy;
  return engine_error(kind, text.error().message);
}

std::vector<std::int32_t> Engine::tokenize(const std::string& text) const {
  std::vector<std::int32_t> tokens(text.size() + 16);
  const auto length = static_cast<std::int32_t>(text.size());
  const auto run = [&] {
    return llama_tokenize(impl_->vocab(), text.data(), length, tokens.data(),
                          static_cast<std::int32_t>(tokens.size()), /*add_special=*/true,
                          /*parse_special=*/true);
  };
  std::int32_t count = run();
  if (count < 0) {
    tokens.resize(static_cast<std::size_t>(-count));
    count = run();
  }
  tokens.resize(static_cast<std::size_t>(std::max(0, count)));
  return tokens;
}

}  // namespace tt
