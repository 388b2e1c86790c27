#include "tracer/engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <variant>

namespace tt {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Below it, a division of the logits by the temperature can overflow.
constexpr float kMinTemperature = 1e-6F;
constexpr std::size_t kLanes = 16;  // logits that are compared at once
// llama.cpp selects more than this many tokens with another algorithm, which is fast enough.
constexpr std::size_t kMaxLikely = 128;

std::vector<llama_token> tokens_of(const llama_vocab* vocab, const std::string& text) {
  std::vector<llama_token> tokens(text.size() + 8);
  const std::int32_t count =
      llama_tokenize(vocab, text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                     static_cast<std::int32_t>(tokens.size()), false, false);
  tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
  return tokens;
}

std::vector<llama_logit_bias> biases_of(const Sampling& sampling,
                                        std::span<const std::int32_t> never,
                                        const llama_vocab* vocab) {
  const std::int32_t all = llama_vocab_n_tokens(vocab);
  std::vector<llama_logit_bias> biases;
  const auto add = [&](llama_token token, float bias) {
    if (token >= 0 && token < all) biases.push_back({.token = token, .bias = bias});
  };
  for (const LogitBias& each : sampling.logit_bias) {
    if (const auto* id = std::get_if<std::int32_t>(&each.token)) {
      add(*id, each.bias);
    } else {
      for (const llama_token token : tokens_of(vocab, std::get<std::string>(each.token)))
        add(token, each.bias);
    }
  }
  for (const llama_token token : never) add(token, -kInfinity);
  std::int32_t count = 0;  // of tokens that the model's file excludes
  const llama_token* suppressed = llama_vocab_get_suppress_tokens(vocab, &count);
  for (std::int32_t i = 0; i < count; ++i) add(suppressed[i], -kInfinity);
  return biases;
}

// A number of last tokens: at most the context, which is also what -1 means. The library allocates
// the whole window.
std::int32_t window(std::int32_t tokens, std::uint32_t context) {
  const auto all = static_cast<std::int32_t>(std::min(context, kMaxContext));
  return tokens < 0 ? all : std::min(tokens, all);
}

bool changes_logits(SamplerKind kind, const Sampling& s) {
  switch (kind) {
    case SamplerKind::Penalties:
      return s.repeat_last_n != 0 &&
             (s.repeat_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0);
    case SamplerKind::Dry:
      return s.dry_multiplier != 0 && s.dry_penalty_last_n != 0;
    case SamplerKind::TopNSigma:
      return s.top_n_sigma > 0;
    default:
      return true;
  }
}

// Logits of a block of set_likely_candidates(): many more blocks than top_k, and few maxima to
// sort.
std::size_t block_size(std::size_t logits) { return logits < 16'384 ? kLanes : 4 * kLanes; }

// The top_k of a chain in which top-k is the first sampler that has an effect; otherwise 0.
std::size_t leading_top_k(const Sampling& sampling) {
  if (sampling.mirostat != 0) return 0;
  for (const SamplerKind kind : sampling.samplers) {
    if (kind == SamplerKind::TopK) return static_cast<std::size_t>(sampling.top_k);
    if (changes_logits(kind, sampling)) return 0;
  }
  return 0;
}

}  // namespace

TokenSampler::TokenSampler(const Sampling& sampling, std::span<const std::int32_t> never,
                           const llama_vocab* vocab, std::uint32_t context, GrammarRun* grammar)
    : chain_(llama_sampler_chain_init(llama_sampler_chain_default_params())),
      grammar_(grammar),
      never_ends_(!never.empty()),
      only_likely_(leading_top_k(sampling)) {
  const auto add = [&](llama_sampler* link) { llama_sampler_chain_add(chain_.get(), link); };
  const std::int32_t tokens = llama_vocab_n_tokens(vocab);
  const auto keep = static_cast<std::size_t>(sampling.min_keep);
  const float temperature = sampling.temperature >= kMinTemperature ? sampling.temperature : 0.0F;

  if (const auto biases = biases_of(sampling, never, vocab); !biases.empty()) {
    add(llama_sampler_init_logit_bias(tokens, static_cast<std::int32_t>(biases.size()),
                                      biases.data()));
    only_likely_ = 0;
  }
  if (sampling.mirostat != 0) {
    add(llama_sampler_init_temp(temperature));
    add(sampling.mirostat == 1
            ? llama_sampler_init_mirostat(tokens, sampling.seed, sampling.mirostat_tau,
                                          sampling.mirostat_eta, 100)
            : llama_sampler_init_mirostat_v2(sampling.seed, sampling.mirostat_tau,
                                             sampling.mirostat_eta));
    return;
  }
  bool adaptive = false;
  for (const SamplerKind kind : sampling.samplers) {
    switch (kind) {
      case SamplerKind::Penalties:
        add(llama_sampler_init_penalties(tokens, window(sampling.repeat_last_n, context),
                                         sampling.repeat_penalty, sampling.frequency_penalty,
                                         sampling.presence_penalty));
        break;
      case SamplerKind::Dry: {
        std::vector<const char*> breakers;
        for (const std::string& text : sampling.dry_sequence_breakers)
          breakers.push_back(text.c_str());
        add(llama_sampler_init_dry(
            vocab, sampling.dry_multiplier, sampling.dry_base, sampling.dry_allowed_length,
            window(sampling.dry_penalty_last_n, context), breakers.data(), breakers.size()));
        break;
      }
      case SamplerKind::TopNSigma:
        add(llama_sampler_init_top_n_sigma(sampling.top_n_sigma));
        break;
      case SamplerKind::TopK:
        add(llama_sampler_init_top_k(std::min(sampling.top_k, tokens)));
        break;
      case SamplerKind::TypicalP:
        add(llama_sampler_init_typical(sampling.typical_p, keep));
        break;
      case SamplerKind::TopP:
        add(llama_sampler_init_top_p(sampling.top_p, keep));
        break;
      case SamplerKind::MinP:
        add(llama_sampler_init_min_p(sampling.min_p, keep));
        break;
      case SamplerKind::Xtc:
        add(llama_sampler_init_xtc(sampling.xtc_probability, sampling.xtc_threshold, keep,
                                   sampling.seed));
        break;
      case SamplerKind::Temperature:
        add(llama_sampler_init_temp_ext(temperature, sampling.dynatemp_range,
                                        sampling.dynatemp_exponent));
        break;
      case SamplerKind::AdaptiveP:
        adaptive = true;  // it chooses a token, as the last sampler
        break;
    }
  }
  add(adaptive ? llama_sampler_init_adaptive_p(sampling.adaptive_target, sampling.adaptive_decay,
                                               sampling.seed)
               : llama_sampler_init_dist(sampling.seed));
}

void TokenSampler::accept_prompt(std::span<const std::int32_t> tokens) {
  for (const std::int32_t token : tokens) llama_sampler_accept(chain_.get(), token);
}

std::expected<std::int32_t, SampleError> TokenSampler::sample(std::span<const float> logits) {
  if (!set_candidates(logits, /*likely_only=*/true))
    return std::unexpected(SampleError{SampleError::Kind::InvalidLogits});
  llama_token_data chosen = choose();
  if (grammar_ != nullptr) {
    const bool allowed = grammar_->allows(chosen.id);
    if (!allowed && !grammar_->error()) {
      set_candidates(logits, /*likely_only=*/false);
      grammar_->exclude(candidates_);
      chosen = choose();
    }
    if (grammar_->error())
      return std::unexpected(SampleError{SampleError::Kind::Grammar, *grammar_->error()});
  }
  // Not so if all are excluded, and for NaN, which llama.cpp then computes.
  if (!(chosen.logit > -kInfinity)) {
    const bool complete = grammar_ != nullptr && never_ends_;
    return std::unexpected(
        SampleError{complete ? SampleError::Kind::Complete : SampleError::Kind::NoToken});
  }
  llama_sampler_accept(chain_.get(), chosen.id);
  if (grammar_ != nullptr) grammar_->accept(chosen.id);
  return chosen.id;
}

const llama_token_data& TokenSampler::choose() {
  llama_token_data_array array{
      .data = candidates_.data(), .size = candidates_.size(), .selected = -1, .sorted = false};
  llama_sampler_apply(chain_.get(), &array);
  return array.data[array.selected];
}

bool TokenSampler::set_candidates(std::span<const float> logits, bool likely_only) {
  const bool possible = only_likely_ > 0 && only_likely_ <= kMaxLikely &&
                        logits.size() >= 2 * block_size(logits.size()) * only_likely_;
  if (likely_only && possible && set_likely_candidates(logits)) return true;
  // The samplers sort and sum the logits; NaN would have any effect.
  bool valid = true;  // without a branch in the loop, which is vectorized
  for (const float logit : logits) valid &= logit < kInfinity;
  if (valid) set_all_candidates(logits);
  return valid;
}

void TokenSampler::set_all_candidates(std::span<const float> logits) {
  candidates_.resize(logits.size());
  for (std::size_t id = 0; id < logits.size(); ++id)
    candidates_[id] = {.id = static_cast<llama_token>(id), .logit = logits[id], .p = 0};
}

// Of the maxima of equal blocks, the k-th highest is at most the k-th highest logit: all logits
// from it on are a few more than k candidates, instead of the whole vocabulary. False: a logit is
// not a number, or candidates have equal logits; which of them llama.cpp keeps then depends on all.
bool TokenSampler::set_likely_candidates(std::span<const float> logits) {
  const std::size_t size = block_size(logits.size());
  block_maxima_.clear();
  for (std::size_t at = 0; at < logits.size(); at += size) {
    const std::span block = logits.subspan(at, std::min(size, logits.size() - at));
    float maximum = -kInfinity;
    bool valid = true;
    if (block.size() == size) {
      float lanes[kLanes];
      std::copy_n(block.begin(), kLanes, lanes);
      for (std::size_t i = kLanes; i < size; i += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane)
          lanes[lane] = lanes[lane] < block[i + lane] ? block[i + lane] : lanes[lane];
      maximum = *std::ranges::max_element(lanes);
    } else {
      maximum = std::ranges::max(block);
    }
    for (const float logit : block) valid &= logit < kInfinity;
    if (!valid) return false;
    block_maxima_.push_back(maximum);
  }
  sorted_ = block_maxima_;
  const auto last = sorted_.begin() + static_cast<std::ptrdiff_t>(only_likely_ - 1);
  std::ranges::nth_element(sorted_, last, std::greater{});
  const float threshold = *last;
  candidates_.clear();
  for (std::size_t block = 0; block < block_maxima_.size(); ++block) {
    if (block_maxima_[block] < threshold) continue;
    const std::size_t end = std::min((block + 1) * size, logits.size());
    for (std::size_t id = block * size; id < end; ++id) {
      if (logits[id] >= threshold)
        candidates_.push_back({.id = static_cast<llama_token>(id), .logit = logits[id], .p = 0});
    }
  }
  sorted_.clear();
  for (const llama_token_data& each : candidates_) sorted_.push_back(each.logit);
  std::ranges::sort(sorted_);
  return std::ranges::adjacent_find(sorted_) == sorted_.end();
}

}  // namespace tt
