// The effect of each sampler of the chain on the distribution of the first token: many seeds
// through the engine, compared with the formulas applied to plain llama.cpp's logits.
#include "tracer/engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/models/plain_llama.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

using Ids = std::vector<std::int32_t>;
using Distribution = std::map<std::int32_t, double>;

const Sampling kPlain = {.temperature = 1.0F, .top_k = 0, .top_p = 1.0F, .min_p = 0.0F, .seed = 0};

struct Candidate {
  std::int32_t id;
  double logit;
};

// Softmax of the remaining candidates, most likely first.
std::vector<double> probabilities_of(std::span<const Candidate> candidates) {
  std::vector<double> shares;
  double sum = 0;
  for (const Candidate& each : candidates)
    sum += shares.emplace_back(std::exp(each.logit - candidates[0].logit));
  for (double& share : shares) share /= sum;
  return shares;
}

Distribution expected_distribution(const std::vector<float>& logits, const Sampling& sampling) {
  std::vector<Candidate> left;
  for (std::size_t i = 0; i < logits.size(); ++i)
    left.push_back({static_cast<std::int32_t>(i), double{logits[i]}});
  std::ranges::stable_sort(left, std::greater{}, &Candidate::logit);
  if (sampling.top_k > 0) left.resize(static_cast<std::size_t>(sampling.top_k));
  {
    const auto share = probabilities_of(left);
    double sum = 0;
    std::size_t keep = 0;
    while (keep < left.size() && (keep == 0 || sum < double{sampling.top_p})) sum += share[keep++];
    left.resize(keep);
  }
  {
    const auto share = probabilities_of(left);
    std::size_t keep = 0;
    while (keep < left.size() && share[keep] >= double{sampling.min_p} * share[0]) ++keep;
    left.resize(keep);
  }
  for (Candidate& each : left) each.logit /= double{sampling.temperature};
  const auto share = probabilities_of(left);
  Distribution distribution;
  for (std::size_t i = 0; i < left.size(); ++i) distribution[left[i].id] = share[i];
  return distribution;
}

// Total variation distance: 0 for equal distributions, 1 for disjoint ones.
double distance(const Distribution& a, const Distribution& b) {
  double sum = 0;
  for (const auto& [id, share] : a) sum += std::abs(share - (b.contains(id) ? b.at(id) : 0));
  for (const auto& [id, share] : b) sum += a.contains(id) ? 0 : share;
  return sum / 2;
}

// The expected distance between a distribution and a sample of `draws` from it.
double sampling_error(const Distribution& of, double draws) {
  double sum = 0;
  for (const auto& [id, share] : of)
    sum += std::sqrt(2 * share * (1 - share) / (std::numbers::pi * draws));
  return sum / 2;
}

class Samplers : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kSeeds = 800;
  // Distribution of the first token after the prompt, over many seeds.
  Distribution sampled(const Sampling& sampling) {
    GenerationRequest request = greedy_tokens(1, 1);
    request.prompt = prompt;
    request.reuse_prefix = true;
    request.sampling = sampling;
    Distribution counts;
    for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
      request.sampling.seed = seed;
      CapturedOutput captured;
      traced.engine().reset_cancel();
      traced.engine().generate(request, nullptr, captured);
      counts[captured.tokens.back().id] += 1.0 / kSeeds;
    }
    return counts;
  }
  Ids generated(const Sampling& sampling, std::uint32_t count) {
    GenerationRequest request = greedy_tokens(1, count);
    request.prompt = prompt;
    request.sampling = sampling;
    Ids ids;
    for (const Token& token : traced.run(request).captured.tokens) {
      if (token.generated) ids.push_back(token.id);
    }
    return ids;
  }

  TracedModel traced{kTestPaths.bundled_model};
  PlainLlama plain{kTestPaths.bundled_model, TracedModel::small_context()};
  const Ids prompt = traced.engine().tokens_of(Prompt{"The wind and the"}).value();
};

TEST_F(Samplers, EachMatchesItsFormula) {
  plain.decode(prompt);
  const std::vector<float> logits = plain.logits();
  struct Case {
    const char* name;
    Sampling sampling;
    std::vector<Sampling> without;  // each lacks one relevant sampler
  };
  const auto with = [](auto change) {
    Sampling sampling = kPlain;
    change(sampling);
    return sampling;
  };
  const Case cases[] = {
      {"none", kPlain, {}},
      {"temperature", with([](Sampling& s) { s.temperature = 0.4F; }), {kPlain}},
      {"a high temperature", with([](Sampling& s) { s.temperature = 3.0F; }), {kPlain}},
      {"top-k", with([](Sampling& s) { s.top_k = 3; }), {kPlain}},
      {"top-p", with([](Sampling& s) { s.top_p = 0.5F; }), {kPlain}},
      {"min-p", with([](Sampling& s) { s.min_p = 0.3F; }), {kPlain}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Distribution seen = sampled(c.sampling);
    const Distribution should = expected_distribution(logits, c.sampling);
    for (const auto& [id, share] : seen)
      EXPECT_TRUE(should.contains(id)) << id << " was sampled but must be excluded";
    const double off = distance(seen, should);
    std::printf("%s: %zu of %zu tokens seen, distance %.3f", c.name, seen.size(), should.size(),
                off);
    EXPECT_LT(off, 2 * sampling_error(should, kSeeds));
    for (const Sampling& other : c.without) {
      const double change = distance(seen, expected_distribution(logits, other));
      std::printf(", %.3f to the distribution without it", change);
      EXPECT_GT(change, off + 0.2);
    }
    std::printf("\n");
  }
}

// The most likely token after a penalty on the last `n` tokens.
TEST_F(Samplers, RepetitionPenaltyAppliesWithinWindow) {
  constexpr std::uint32_t kTokens = 60;
  const LlamaModel vocabulary = load_vocabulary(kTestPaths.bundled_model);
  const llama_vocab* vocab = llama_model_get_vocab(vocabulary.get());
  const auto naive = [&](float penalty, std::size_t window) {
    PlainLlama llama(kTestPaths.bundled_model, TracedModel::small_context());
    Ids all = prompt, out;
    llama.decode(all);
    for (;;) {
      std::vector<float> logits = llama.logits();
      Ids last(all.end() - static_cast<std::ptrdiff_t>(std::min(window, all.size())), all.end());
      std::ranges::sort(last);
      last.erase(std::ranges::unique(last).begin(), last.end());
      for (const std::int32_t id : last) {
        float& logit = logits[static_cast<std::size_t>(id)];
        logit = logit <= 0 ? logit * penalty : logit / penalty;
      }
      for (std::int32_t id = 0; id < llama_vocab_n_tokens(vocab); ++id)  // ignore_eos
        if (llama_vocab_is_eog(vocab, id)) logits[static_cast<std::size_t>(id)] = -INFINITY;
      const auto best =
          static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
      out.push_back(best);
      all.push_back(best);
      if (out.size() == kTokens) return out;
      llama.decode(std::span(&best, 1));
    }
  };
  struct Case {
    float penalty;
    std::int32_t window;
  };
  std::vector<Ids> answers;
  for (const Case& c : {Case{1.0F, 64}, Case{2.0F, 0}, Case{2.0F, 8}, Case{2.0F, 24},
                        Case{2.0F, 64}, Case{100.0F, 64}}) {
    SCOPED_TRACE(std::to_string(c.penalty) + " over " + std::to_string(c.window));
    Sampling sampling = kPlain;
    sampling.temperature = 0;
    sampling.repeat_penalty = c.penalty;
    sampling.repeat_last_n = c.window;
    answers.push_back(generated(sampling, kTokens));
    EXPECT_EQ(answers.back(), naive(c.penalty, static_cast<std::size_t>(c.window)));
  }
  EXPECT_EQ(answers[0], answers[1]) << "an empty window";
  for (std::size_t i = 2; i < answers.size(); ++i) EXPECT_NE(answers[i], answers[i - 1]) << i;
}

// llama.cpp's chain on all tokens: the reference for the selection of likely candidates.
class WholeVocabulary {
 public:
  explicit WholeVocabulary(const Sampling& sampling) {
    const auto add = [&](llama_sampler* link) { llama_sampler_chain_add(chain_.get(), link); };
    add(llama_sampler_init_top_k(sampling.top_k));
    add(llama_sampler_init_top_p(sampling.top_p, 0));
    add(llama_sampler_init_min_p(sampling.min_p, 0));
    add(llama_sampler_init_temp(sampling.temperature));
    add(llama_sampler_init_dist(sampling.seed));
  }
  std::int32_t sample(std::span<const float> logits) {
    std::vector<llama_token_data> all;
    for (std::size_t id = 0; id < logits.size(); ++id)
      all.push_back({.id = static_cast<llama_token>(id), .logit = logits[id], .p = 0});
    llama_token_data_array array{
        .data = all.data(), .size = all.size(), .selected = -1, .sorted = false};
    llama_sampler_apply(chain_.get(), &array);
    return array.data[array.selected].id;
  }

 private:
  LlamaSampler chain_{llama_sampler_chain_init(llama_sampler_chain_default_params())};
};

TEST(TokenSampler, ChoosesFromTheLikelyTokensWhatLlamaCppChoosesFromAll) {
  ensure_backends_loaded();
  const LlamaModel model = load_vocabulary(kTestPaths.bundled_model);
  const llama_vocab* vocab = llama_model_get_vocab(model.get());
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  for (const std::int32_t top_k : {1, 3, 40, 128, 129}) {
    for (const float temperature : {0.0F, 0.8F, 4.0F}) {
      for (const float step : {0.0F, 0.5F}) {  // with a step, many logits are equal
        SCOPED_TRACE(std::to_string(top_k) + ", " + std::to_string(temperature) + ", " +
                     std::to_string(step));
        Sampling sampling;
        sampling.top_k = top_k;
        sampling.temperature = temperature;
        sampling.seed = 5;
        TokenSampler sampler(sampling, {}, vocab, 512, nullptr);
        WholeVocabulary reference(sampling);
        for (const std::size_t tokens : {700UZ, 32'000UZ, 50'021UZ}) {
          for (int i = 0; i < 5; ++i) {
            std::vector<float> logits(tokens);
            for (float& logit : logits) {
              logit = normal(random);
              if (step > 0) logit = std::round(logit / step) * step;
            }
            if (i == 1) std::ranges::sort(logits);  // all likely ones in one block
            EXPECT_EQ(sampler.sample(logits), reference.sample(logits)) << tokens;
          }
        }
      }
    }
  }
}

TEST(TokenSampler, RejectsInvalidLogitsWhereverTheyAre) {
  ensure_backends_loaded();
  const LlamaModel model = load_vocabulary(kTestPaths.bundled_model);
  const llama_vocab* vocab = llama_model_get_vocab(model.get());
  TokenSampler sampler({.seed = 5}, {}, vocab, 512, nullptr);
  for (const std::size_t tokens : {700UZ, 32'001UZ}) {
    for (const float wrong : {NAN, INFINITY}) {
      for (const std::size_t at : {0UZ, 65UZ, tokens - 1}) {
        std::vector<float> logits(tokens);
        for (std::size_t id = 0; id < tokens; ++id) logits[id] = static_cast<float>(id % 97);
        EXPECT_TRUE(sampler.sample(logits).has_value());
        logits[at] = wrong;
        const auto sampled = sampler.sample(logits);
        ASSERT_FALSE(sampled.has_value()) << at;
        EXPECT_EQ(sampled.error().kind, SampleError::Kind::InvalidLogits);
      }
    }
  }
}

}  // namespace
}  // namespace tt::test
