#include "tracer/engine/sampler.h"

#include <algorithm>
#include <format>
#include <string_view>

#include "tracer/request/request_bounds.h"

namespace tt {

namespace {

// Nesting depth of parentheses, not counting those in strings, character classes and comments.
std::size_t depth_of(std::string_view grammar) {
  std::size_t depth = 0, deepest = 0;
  char inside = 0;  // terminator of the current string, class or comment
  for (std::size_t at = 0; at < grammar.size(); ++at) {
    const char c = grammar[at];
    if (inside != 0) {
      if (c == inside) inside = 0;
      if (c == '\\' && inside != '\n') ++at;
    } else if (c == '"' || c == '[' || c == '#') {
      inside = c == '[' ? ']' : c == '#' ? '\n' : c;
    } else if (c == '(') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ')' && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

std::expected<LlamaSampler, std::string> make_sampler(const Sampling& sampling,
                                                      const llama_vocab* vocab) {
  LlamaSampler chain(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  const auto add = [&](llama_sampler* link) { llama_sampler_chain_add(chain.get(), link); };

  if (!sampling.grammar.empty()) {
    if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
      return std::unexpected(
          "A grammar needs a vocabulary, and this model has none. Remove the grammar.");
    }
    if (sampling.grammar.size() > kMaxGrammarBytes ||
        depth_of(sampling.grammar) > kMaxGrammarDepth) {
      return std::unexpected(
          std::format("The grammar is too large. The maximum is {} bytes and nesting depth {}.",
                      kMaxGrammarBytes, kMaxGrammarDepth));
    }
    llama_sampler* grammar = llama_sampler_init_grammar(vocab, sampling.grammar.c_str(), "root");
    if (grammar == nullptr) {
      return std::unexpected(
          "The grammar does not parse. It must be GBNF and have a rule named root, as in "
          "root ::= \"yes\" | \"no\".");
    }
    add(grammar);
  }
  if (sampling.repeat_penalty != 1.0F && sampling.repeat_last_n != 0) {
    add(llama_sampler_init_penalties(llama_vocab_n_tokens(vocab), sampling.repeat_last_n,
                                     sampling.repeat_penalty, 0.0F, 0.0F));
  }
  if (sampling.temperature <= 0) {
    add(llama_sampler_init_greedy());
    return chain;
  }
  if (sampling.top_k > 0) add(llama_sampler_init_top_k(sampling.top_k));
  if (sampling.top_p < 1) add(llama_sampler_init_top_p(sampling.top_p, 1));
  if (sampling.min_p > 0) add(llama_sampler_init_min_p(sampling.min_p, 1));
  add(llama_sampler_init_temp(sampling.temperature));
  add(llama_sampler_init_dist(sampling.seed));
  return chain;
}

void accept_prompt(llama_sampler* chain, std::span<const std::int32_t> tokens) {
  for (int i = 0; i < llama_sampler_chain_n(chain); ++i) {
    llama_sampler* link = llama_sampler_chain_get(chain, i);
    if (std::string_view(llama_sampler_name(link)) == "grammar") continue;
    for (const std::int32_t token : tokens) llama_sampler_accept(link, token);
  }
}

}  // namespace tt
