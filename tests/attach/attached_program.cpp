// A program of its own with llama.cpp: two models and three contexts, each on a thread of its own,
// with an abort callback, and a child process that evaluates, too. Prints what it computed.
// attached_program MODEL1 MODEL2 STEPS [fork]
// attached_program MODEL - STEPS: one context
#include <llama.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace {

std::atomic<int> ticks{0};

bool count_tick(void* count) {
  ++*static_cast<std::atomic<int>*>(count);
  return false;
}

// Tokens chosen greedily; returns a number that depends on all of them.
long long run(llama_model* model, int steps) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 256;
  params.n_threads = params.n_threads_batch = 1;
  params.abort_callback = count_tick;
  params.abort_callback_data = &ticks;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) std::abort();
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  std::array<llama_token, 4> prompt = {1, 2, 3, 4};
  llama_batch batch = llama_batch_get_one(prompt.data(), 4);
  long long sum = 0;
  for (int i = 0; i < steps; ++i) {
    if (llama_decode(context, batch) != 0) std::abort();
    const float* logits = llama_get_logits_ith(context, -1);
    llama_token best = 0;
    for (int t = 1; t < vocabulary; ++t)
      if (logits[t] > logits[best]) best = t;
    sum = (sum * 31 + best) % 1'000'000'007;
    prompt[0] = best;
    batch = llama_batch_get_one(prompt.data(), 1);
  }
  llama_free(context);
  return sum;
}

llama_model* load(const char* path) {
  llama_model* model = llama_model_load_from_file(path, llama_model_default_params());
  if (model == nullptr) std::abort();
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all();
  const int steps = std::atoi(argv[3]);
  llama_model* first = load(argv[1]);
  if (std::string_view(argv[2]) == "-") {
    std::printf("%lld\n", run(first, steps));
    llama_model_free(first);
    return 0;
  }
  llama_model* second = load(argv[2]);
  std::array<long long, 3> sums{};
  {
    const std::jthread a([&] { sums[0] = run(first, steps); });
    const std::jthread b([&] { sums[1] = run(first, steps); });
    const std::jthread c([&] { sums[2] = run(second, steps); });
  }
  std::printf("%lld %lld %lld\n", sums[0], sums[1], sums[2]);
  std::printf("%d ticks\n", ticks.load());
  std::fflush(stdout);
  if (argc > 4 && std::string_view(argv[4]) == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      std::printf("child %lld\n", run(second, 3));
      std::fflush(stdout);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  llama_model_free(first);
  llama_model_free(second);
  return 0;
}
