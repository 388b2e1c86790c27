// Trains the bundled model: reads an F32 llama model and a text, writes the trained model.
// Run only by train.sh; not part of the normal build.
//
// llama-finetune cannot be used: with libllama 0.7.0 its loss stays near that of a unigram
// model (README.md). ggml's optimizer works with a static graph, which also allows training the
// embedding. Therefore the graph is defined here.

#include <ggml-backend.h>
#include <ggml-opt.h>
#include <ggml.h>
#include <gguf.h>
#include <llama.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numbers>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kContext = 256;
constexpr std::int64_t kSequences = 4;  // per step
constexpr std::int64_t kTokens = kContext * kSequences;
constexpr float kPeakRate = 2e-3F;
constexpr float kLastRate = 5e-5F;
constexpr int kWarmupSteps = 60;

struct Schedule {
  int step = 0;
  int steps = 0;
};

// Linear warm-up, then half a cosine.
ggml_opt_optimizer_params rates(void* userdata) {
  const auto& schedule = *static_cast<const Schedule*>(userdata);
  ggml_opt_optimizer_params params = ggml_opt_get_default_optimizer_params(nullptr);
  const float done = static_cast<float>(schedule.step) / static_cast<float>(schedule.steps);
  const float cosine = 0.5F * (1.0F + std::cos(std::numbers::pi_v<float> * done));
  params.adamw.alpha = kLastRate + (kPeakRate - kLastRate) * cosine;
  if (schedule.step < kWarmupSteps) {
    params.adamw.alpha *= static_cast<float>(schedule.step + 1) / kWarmupSteps;
  }
  params.adamw.beta2 = 0.99F;
  params.adamw.wd = 0.01F;
  return params;
}

std::vector<llama_token> tokenize(const char* model_path, const char* text_path) {
  std::ifstream file(text_path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model* model = llama_model_load_from_file(model_path, params);
  std::vector<llama_token> tokens(text.size());
  const int count =
      llama_tokenize(llama_model_get_vocab(model), text.data(), static_cast<int>(text.size()),
                     tokens.data(), static_cast<int>(tokens.size()), false, true);
  tokens.resize(static_cast<std::size_t>(count));
  llama_model_free(model);
  return tokens;
}

// Start positions of training windows: after each <stop>. A prompt is at the beginning of the
// context, so the model must learn to begin there. With arbitrary windows it only learns to
// continue text.
std::vector<std::size_t> window_starts(const std::vector<llama_token>& text) {
  const llama_token stop = text.back();  // the corpus ends with one
  std::vector<std::size_t> starts = {0};
  for (std::size_t i = 1; i + kContext < text.size(); ++i) {
    if (text[i - 1] == stop) {
      starts.push_back(i);
    }
  }
  return starts;
}

struct Model {
  gguf_context* gguf;
  ggml_context* weights;
  std::int64_t layers, heads;

  ggml_tensor* get(const std::string& name) const { return ggml_get_tensor(weights, name.c_str()); }
};

ggml_tensor* norm(ggml_context* ctx, ggml_tensor* x, ggml_tensor* weight) {
  return ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5F), weight);
}

// The llama graph over kSequences sequences, without a KV cache.
ggml_tensor* logits(ggml_context* ctx, const Model& model, ggml_tensor* tokens,
                    ggml_tensor* positions, ggml_tensor* mask) {
  ggml_tensor* x = ggml_get_rows(ctx, model.get("token_embd.weight"), tokens);
  const std::int64_t embd = x->ne[0];
  const std::int64_t dim = embd / model.heads;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const auto weight = [&](const char* part) {
      return model.get("blk." + std::to_string(layer) + "." + part + ".weight");
    };
    const auto heads = [&](const char* part, ggml_tensor* in) {
      return ggml_reshape_4d(ctx, ggml_mul_mat(ctx, weight(part), in), dim, model.heads, kContext,
                             kSequences);
    };
    const auto rope = [&](ggml_tensor* in) {
      ggml_tensor* rotated =
          ggml_rope_ext(ctx, in, positions, nullptr, static_cast<int>(dim), GGML_ROPE_TYPE_NORMAL,
                        0, 10000.0F, 1.0F, 0.0F, 1.0F, 0.0F, 0.0F);
      return ggml_cont(ctx, ggml_permute(ctx, rotated, 0, 2, 1, 3));  // dim, token, head, sequence
    };
    ggml_tensor* in = norm(ctx, x, weight("attn_norm"));
    ggml_tensor* scores = ggml_mul_mat(ctx, rope(heads("attn_k", in)), rope(heads("attn_q", in)));
    scores = ggml_soft_max_ext(ctx, scores, mask, 1.0F / std::sqrt(static_cast<float>(dim)), 0.0F);
    ggml_tensor* values = ggml_cont(ctx, ggml_permute(ctx, heads("attn_v", in), 1, 2, 0, 3));
    ggml_tensor* mixed = ggml_permute(ctx, ggml_mul_mat(ctx, values, scores), 0, 2, 1, 3);
    mixed = ggml_reshape_2d(ctx, ggml_cont(ctx, mixed), embd, kTokens);
    x = ggml_add(ctx, x, ggml_mul_mat(ctx, weight("attn_output"), mixed));

    in = norm(ctx, x, weight("ffn_norm"));
    ggml_tensor* gate = ggml_silu(ctx, ggml_mul_mat(ctx, weight("ffn_gate"), in));
    ggml_tensor* up = ggml_mul_mat(ctx, weight("ffn_up"), in);
    x = ggml_add(ctx, x, ggml_mul_mat(ctx, weight("ffn_down"), ggml_mul(ctx, gate, up)));
  }
  return ggml_mul_mat(ctx, model.get("output.weight"),
                      norm(ctx, x, model.get("output_norm.weight")));
}

std::int64_t metadata(const gguf_context* gguf, const char* key) {
  return gguf_get_val_u32(gguf, gguf_find_key(gguf, key));
}

// Loads the weights into a backend buffer and marks them as parameters.
Model load(const char* path, ggml_backend_t backend) {
  ggml_context* data = nullptr;
  gguf_free(gguf_init_from_file(path, {.no_alloc = false, .ctx = &data}));
  Model model{};
  model.gguf = gguf_init_from_file(path, {.no_alloc = true, .ctx = &model.weights});
  model.layers = metadata(model.gguf, "llama.block_count");
  model.heads = metadata(model.gguf, "llama.attention.head_count");
  ggml_backend_alloc_ctx_tensors(model.weights, backend);
  for (ggml_tensor* tensor = ggml_get_first_tensor(model.weights); tensor != nullptr;
       tensor = ggml_get_next_tensor(model.weights, tensor)) {
    const ggml_tensor* source = ggml_get_tensor(data, tensor->name);
    ggml_backend_tensor_set(tensor, source->data, 0, ggml_nbytes(source));
    ggml_set_param(tensor);
  }
  ggml_free(data);
  return model;
}

void save(const Model& model, const char* path) {
  gguf_context* out = gguf_init_empty();
  gguf_set_kv(out, model.gguf);
  for (ggml_tensor* tensor = ggml_get_first_tensor(model.weights); tensor != nullptr;
       tensor = ggml_get_next_tensor(model.weights, tensor)) {
    gguf_add_tensor(out, tensor);
  }
  gguf_write_to_file(out, path, false);
  gguf_free(out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s MODEL.gguf TEXT OUTPUT.gguf STEPS\n", argv[0]);
    return 2;
  }
  ggml_backend_load_all();
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
  const auto set_threads = reinterpret_cast<ggml_backend_set_n_threads_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(ggml_backend_get_device(cpu)),
                                        "ggml_backend_set_n_threads"));
  set_threads(cpu, 1);

  const std::vector<llama_token> text = tokenize(argv[1], argv[2]);
  const std::vector<std::size_t> starts = window_starts(text);
  const Model model = load(argv[1], cpu);
  const auto vocab = static_cast<std::size_t>(model.get("output.weight")->ne[1]);

  ggml_context* inputs = ggml_init({ggml_tensor_overhead() * 8, nullptr, true});
  ggml_tensor* tokens = ggml_new_tensor_1d(inputs, GGML_TYPE_I32, kTokens);
  ggml_tensor* positions = ggml_new_tensor_1d(inputs, GGML_TYPE_I32, kContext);
  ggml_tensor* mask = ggml_new_tensor_2d(inputs, GGML_TYPE_F32, kContext, kContext);
  ggml_set_input(tokens);
  ggml_backend_alloc_ctx_tensors(inputs, cpu);
  for (std::int64_t to = 0; to < kContext; ++to) {
    static_cast<std::int32_t*>(positions->data)[to] = static_cast<std::int32_t>(to);
    for (std::int64_t from = 0; from < kContext; ++from) {
      static_cast<float*>(mask->data)[to * kContext + from] = from <= to ? 0.0F : -INFINITY;
    }
  }

  constexpr std::size_t kNodes = 8192;
  ggml_context* compute =
      ggml_init({ggml_tensor_overhead() * kNodes + 3 * ggml_graph_overhead_custom(kNodes, true),
                 nullptr, true});
  ggml_tensor* outputs = logits(compute, model, tokens, positions, mask);
  ggml_backend_sched_t sched = ggml_backend_sched_new(&cpu, nullptr, 1, kNodes, false, true);
  Schedule schedule{.step = 0, .steps = std::atoi(argv[4])};
  ggml_opt_params params = ggml_opt_default_params(sched, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
  params.ctx_compute = compute;
  params.inputs = tokens;
  params.outputs = outputs;
  params.get_opt_pars = rates;
  params.get_opt_pars_ud = &schedule;
  ggml_opt_context_t optimizer = ggml_opt_init(params);

  std::printf("%zu tokens of text, %zu starts, vocabulary %zu\n", text.size(), starts.size(),
              vocab);
  std::mt19937 random(1);
  std::vector<float> labels(vocab * kTokens);
  ggml_opt_result_t result = ggml_opt_result_init();
  const std::int64_t begin = ggml_time_us();
  for (; schedule.step < schedule.steps; ++schedule.step) {
    ggml_opt_alloc(optimizer, true);
    std::fill(labels.begin(), labels.end(), 0.0F);
    for (std::int64_t sequence = 0; sequence < kSequences; ++sequence) {
      const std::size_t start = starts[random() % starts.size()];
      for (std::int64_t i = 0; i < kContext; ++i) {
        const std::int64_t at = sequence * kContext + i;
        const std::size_t from = start + static_cast<std::size_t>(i);
        static_cast<std::int32_t*>(tokens->data)[at] = text[from];
        labels[static_cast<std::size_t>(at) * vocab + static_cast<std::size_t>(text[from + 1])] =
            1.0F;
      }
    }
    ggml_backend_tensor_set(ggml_opt_labels(optimizer), labels.data(), 0,
                            labels.size() * sizeof(float));
    ggml_opt_eval(optimizer, result);
    if ((schedule.step + 1) % 20 == 0) {
      double loss = 0;
      double accuracy = 0;
      ggml_opt_result_loss(result, &loss, nullptr);
      ggml_opt_result_accuracy(result, &accuracy, nullptr);
      std::printf("step %d  loss %.3f  next token right %.1f%%  %.0f s\n", schedule.step + 1, loss,
                  accuracy * 100, static_cast<double>(ggml_time_us() - begin) / 1e6);
      std::fflush(stdout);
      ggml_opt_result_reset(result);
    }
    if ((schedule.step + 1) % 200 == 0) {
      save(model, argv[3]);
    }
  }
  save(model, argv[3]);
  return 0;
}
