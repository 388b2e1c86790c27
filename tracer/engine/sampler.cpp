#include "tracer/engine/sampler.h"

#include <algorithm>
#include <string_view>

#include "tracer/request/model_options.h"

namespace tt {

namespace {

// Below it, a division of the logits by the temperature can overflow.
constexpr float kMinTemperature = 1e-6F;

}  // namespace

LlamaSampler make_sampler(const Sampling& sampling, const llama_vocab* vocab, std::uint32_t context,
                          GrammarRun* grammar) {
  LlamaSampler chain(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  const auto add = [&](llama_sampler* link) { llama_sampler_chain_add(chain.get(), link); };
  const std::int32_t tokens = llama_vocab_n_tokens(vocab);

  if (grammar != nullptr) add(grammar->sampler());
  if (sampling.repeat_penalty != 1.0F && sampling.repeat_last_n != 0) {
    // The library allocates the whole window.
    const auto all = static_cast<std::int32_t>(std::min(context, kMaxContext));
    const std::int32_t window =
        sampling.repeat_last_n < 0 ? all : std::min(sampling.repeat_last_n, all);
    add(llama_sampler_init_penalties(tokens, window, sampling.repeat_penalty, 0.0F, 0.0F));
  }
  if (!(sampling.temperature >= kMinTemperature)) {
    add(llama_sampler_init_greedy());
    return chain;
  }
  if (sampling.top_k > 0) add(llama_sampler_init_top_k(std::min(sampling.top_k, tokens)));
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
