// Chooses the tokens of one generation as llama-server does: the same samplers in the same order,
// with the same random numbers. Same seed and settings, same tokens.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "tracer/engine/grammar.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/request/sampling.h"

namespace tt {

struct SampleError {
  enum class Kind : std::uint8_t {
    InvalidLogits,  // a logit is NaN or infinity
    Grammar,        // the grammar could not be evaluated
    Complete,       // the grammar allows only the end of the answer, and ignore_eos forbids it
    NoToken,        // logit_bias excludes all tokens that the grammar allows
  } kind;
  GrammarError grammar{};  // with Kind::Grammar
};

class TokenSampler {
 public:
  // `sampling.seed` must not be the random placeholder. `never`: tokens that are never chosen, with
  // ignore_eos those that end the answer. `context`: tokens, the largest window of the penalties.
  // `grammar`: of `sampling.grammar`, null: none; must outlive this object.
  TokenSampler(const Sampling& sampling, std::span<const std::int32_t> never,
               const llama_vocab* vocab, std::uint32_t context, GrammarRun* grammar);

  // Passes the prompt to the samplers, but not to the grammar, which describes only the answer.
  void accept_prompt(std::span<const std::int32_t> tokens);

  // Chooses the next token and passes it to the samplers and the grammar. `logits`: one per token
  // of the vocabulary.
  //
  // With a grammar, the token is chosen without it first. Only if the grammar does not allow this
  // one token, the tokens that it allows are determined, and one of them is chosen.
  std::expected<std::int32_t, SampleError> sample(std::span<const float> logits);

 private:
  // The candidates are all tokens, or, with `likely_only` and a chain that begins with top-k, at
  // least those that top-k keeps. False: a logit is not a number.
  bool set_candidates(std::span<const float> logits, bool likely_only);
  void set_all_candidates(std::span<const float> logits);
  bool set_likely_candidates(std::span<const float> logits);
  const llama_token_data& choose();

  LlamaSampler chain_;
  GrammarRun* grammar_;
  bool never_ends_;          // no token may end the answer
  std::size_t only_likely_;  // top_k if nothing precedes it that reads or changes logits; 0: none
  std::vector<llama_token_data> candidates_;
  std::vector<float> block_maxima_, sorted_;  // reused
};

}  // namespace tt
