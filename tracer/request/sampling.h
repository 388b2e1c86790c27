// How the next token is chosen: the samplers of llama-server, with its names, order and defaults.
//
// kSamplingFields is the one list of the numbers: names in requests and in the session's metadata,
// names on the command line, limits and descriptions come from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tracer/request/request_bounds.h"

namespace tt {

enum class SamplerKind : std::uint8_t {
  Penalties,
  Dry,
  TopNSigma,
  TopK,
  TypicalP,
  TopP,
  MinP,
  Xtc,
  Temperature,
  AdaptiveP,
};

// Added to the logit of a token. -infinity: the token is never chosen.
struct LogitBias {
  std::variant<std::int32_t, std::string> token;  // an id, or a text: each of its tokens
  float bias = 0;
  friend bool operator==(const LogitBias&, const LogitBias&) = default;
};

struct Sampling {
  float temperature = 0.8F;
  float dynatemp_range = 0, dynatemp_exponent = 1;
  std::int32_t top_k = 40;
  float top_p = 0.95F, min_p = 0.05F, top_n_sigma = -1, typical_p = 1;
  float xtc_probability = 0, xtc_threshold = 0.1F;
  std::int32_t min_keep = 0;
  std::int32_t repeat_last_n = 64;
  float repeat_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  float dry_multiplier = 0, dry_base = 1.75F;
  std::int32_t dry_allowed_length = 2, dry_penalty_last_n = 64;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};
  std::int32_t mirostat = 0;
  float mirostat_tau = 5, mirostat_eta = 0.1F;
  float adaptive_target = -1, adaptive_decay = 0.9F;
  std::vector<SamplerKind> samplers = {
      SamplerKind::Penalties, SamplerKind::Dry,      SamplerKind::TopNSigma,
      SamplerKind::TopK,      SamplerKind::TypicalP, SamplerKind::TopP,
      SamplerKind::MinP,      SamplerKind::Xtc,      SamplerKind::Temperature};
  std::vector<LogitBias> logit_bias{};
  std::uint32_t seed = 0xFFFFFFFFu;  // 0xFFFFFFFF: random; the seed used is recorded
  std::string grammar{};             // GBNF; empty: none
};

struct SamplingField {
  std::string_view name;    // in requests and in the session's metadata (after "request.")
  std::string_view option;  // of tt record, as in llama.cpp
  std::variant<float Sampling::*, std::int32_t Sampling::*> member;
  double min, max;  // inclusive
  std::string_view help;

  NumberBounds bounds() const { return {name, min, max}; }
};

inline constexpr std::array kSamplingFields = {
    SamplingField{"temperature", "--temp,--temperature", &Sampling::temperature, 0, 100,
                  "Sampling temperature; 0: always the most likely token"},
    SamplingField{"dynatemp_range", "--dynatemp-range", &Sampling::dynatemp_range, 0, 100,
                  "Dynamic temperature: the temperature varies by up to this much with the "
                  "entropy; 0: off"},
    SamplingField{"dynatemp_exponent", "--dynatemp-exp", &Sampling::dynatemp_exponent, 0, 100,
                  "Exponent of the dynamic temperature"},
    SamplingField{"top_k", "--top-k", &Sampling::top_k, 0, kMaxInt32,
                  "Number of most likely tokens to sample from; 0: off"},
    SamplingField{"top_p", "--top-p", &Sampling::top_p, 0, 1,
                  "Cumulative probability of the tokens to sample from; 1: off"},
    SamplingField{"min_p", "--min-p", &Sampling::min_p, 0, 1,
                  "Minimum probability, relative to the most likely token; 0: off"},
    SamplingField{"top_n_sigma", "--top-nsigma,--top-n-sigma", &Sampling::top_n_sigma, -1, 1000,
                  "Maximum distance from the highest logit, in standard deviations of the "
                  "logits; 0 or less: off"},
    SamplingField{"typical_p", "--typical,--typical-p", &Sampling::typical_p, 0, 1,
                  "Locally typical sampling: cumulative probability of the tokens to sample "
                  "from; 1: off"},
    SamplingField{"xtc_probability", "--xtc-probability", &Sampling::xtc_probability, 0, 1,
                  "Probability with which XTC removes the most likely tokens; 0: off"},
    SamplingField{"xtc_threshold", "--xtc-threshold", &Sampling::xtc_threshold, 0, 1,
                  "XTC: minimum probability of the tokens that are removed, except the last "
                  "one; more than 0.5: off"},
    SamplingField{"min_keep", "--min-keep", &Sampling::min_keep, 0, kMaxInt32,
                  "Minimum number of tokens that top-p, min-p, typical-p and XTC keep"},
    SamplingField{"repeat_last_n", "--repeat-last-n", &Sampling::repeat_last_n, -1, kMaxContext,
                  "Number of last tokens that the repeat, presence and frequency penalties "
                  "cover, at most the context; -1: all"},
    SamplingField{"repeat_penalty", "--repeat-penalty", &Sampling::repeat_penalty, 0.01, 100,
                  "Penalty for repeated tokens; 1: off"},
    SamplingField{"presence_penalty", "--presence-penalty", &Sampling::presence_penalty, -100, 100,
                  "Subtracted from the logits of repeated tokens; 0: off"},
    SamplingField{"frequency_penalty", "--frequency-penalty", &Sampling::frequency_penalty, -100,
                  100, "Subtracted from the logits of repeated tokens, per repetition; 0: off"},
    SamplingField{"dry_multiplier", "--dry-multiplier", &Sampling::dry_multiplier, 0, 100,
                  "DRY: factor of the penalty for repeated sequences of tokens; 0: off"},
    SamplingField{"dry_base", "--dry-base", &Sampling::dry_base, 1, 100,
                  "DRY: base of the penalty, which grows with the length of the sequence"},
    SamplingField{"dry_allowed_length", "--dry-allowed-length", &Sampling::dry_allowed_length, 0,
                  kMaxContext, "DRY: longest sequence that may be repeated without a penalty"},
    SamplingField{"dry_penalty_last_n", "--dry-penalty-last-n", &Sampling::dry_penalty_last_n, -1,
                  kMaxContext,
                  "DRY: number of last tokens in which sequences are searched, at most the "
                  "context; 0: off, -1: all"},
    SamplingField{"mirostat", "--mirostat", &Sampling::mirostat, 0, 2,
                  "Mirostat 1 or 2, instead of all other samplers except logit bias and "
                  "temperature; 0: off"},
    SamplingField{"mirostat_tau", "--mirostat-ent", &Sampling::mirostat_tau, 0, 100,
                  "Mirostat: target entropy"},
    SamplingField{"mirostat_eta", "--mirostat-lr", &Sampling::mirostat_eta, 0, 1,
                  "Mirostat: learning rate"},
    SamplingField{"adaptive_target", "--adaptive-target", &Sampling::adaptive_target, -1, 1,
                  "Adaptive-p: probability of the tokens to choose; less than 0: any. Only with "
                  "adaptive_p in the list of samplers"},
    SamplingField{"adaptive_decay", "--adaptive-decay", &Sampling::adaptive_decay, 0, 0.99,
                  "Adaptive-p: how slowly the target adapts"},
};

struct SamplerName {
  SamplerKind kind;
  std::string_view name;
  char letter;  // of a list as one word: "kpmt"
};

inline constexpr std::array kSamplerNames = {
    SamplerName{SamplerKind::Penalties, "penalties", 'e'},
    SamplerName{SamplerKind::Dry, "dry", 'd'},
    SamplerName{SamplerKind::TopNSigma, "top_n_sigma", 's'},
    SamplerName{SamplerKind::TopK, "top_k", 'k'},
    SamplerName{SamplerKind::TypicalP, "typ_p", 'y'},
    SamplerName{SamplerKind::TopP, "top_p", 'p'},
    SamplerName{SamplerKind::MinP, "min_p", 'm'},
    SamplerName{SamplerKind::Xtc, "xtc", 'x'},
    SamplerName{SamplerKind::Temperature, "temperature", 't'},
    SamplerName{SamplerKind::AdaptiveP, "adaptive_p", 'a'},
};

inline constexpr std::size_t kMaxSamplers = 32;
inline constexpr std::size_t kMaxLogitBiases = 4096;
inline constexpr std::size_t kMaxBiasTextBytes = 1000;
// Each is searched in the text of the whole vocabulary when a request with DRY begins.
inline constexpr std::size_t kMaxBreakers = 32, kMaxBreakerBytes = 40;
inline constexpr NumberBounds kBiasBounds = {"bias", -10'000, 10'000};

std::string_view to_text(SamplerKind kind);
std::string samplers_text(const std::vector<SamplerKind>& samplers);  // "top_k;min_p"

// These return what is wrong, as an error. Also accepted are llama.cpp's other spellings: "top-k",
// "topk", "temp".
std::expected<SamplerKind, std::string> parse_sampler(std::string_view name);
std::expected<std::vector<SamplerKind>, std::string> parse_samplers(std::string_view list);
// As one word: "kpmt".
std::expected<std::vector<SamplerKind>, std::string> parse_sampler_letters(std::string_view word);
std::expected<LogitBias, std::string> parse_logit_bias(std::string_view text);  // "15043-1.5"

// The settings as text, by name: temperature, top_k, top_p and min_p, and what differs from the
// default of the rest.
std::vector<std::pair<std::string, std::string>> sampling_facts(const Sampling& sampling);

}  // namespace tt
