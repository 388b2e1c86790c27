// tt-check-model MODEL.gguf: loads the model as tt-server would, makes a small context,
// reads a text and a conversation, in a process that may crash. Exits 0, or says on stdout
// why not.
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "tracer/engine/backends.h"
#include "tracer/engine/engine.h"

namespace {

// What a damaged file may cost the machine.
void limit_damage() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::setenv("GGML_NO_BACKTRACE", "1", 1);  // it would start a debugger
  // Half of the RAM: a file can claim that a list has billions of entries. The
  // weights are mapped from the file and do not count.
  const auto ram = static_cast<rlim_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L)) *
                   static_cast<rlim_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
  if (ram > 0) {
    const rlimit half{.rlim_cur = ram / 2, .rlim_max = ram / 2};
    ::setrlimit(RLIMIT_DATA, &half);
  }
}

// A template can nest without end, and what renders it recurses. On a quarter of the stack
// that the server's threads have: what passes here has room there.
void render_chat(tt::Engine& engine) {
  constexpr std::size_t kStackBytes = 2U << 20;
  std::puts("at its chat template");  // the last that is said if this ends the process
  std::fflush(stdout);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, kStackBytes);
  pthread_t thread{};
  const auto render = [](void* model) -> void* {
    // What it objects to is told to whoever sends a conversation.
    (void)static_cast<tt::Engine*>(model)->tokens_of(
        tt::Prompt{std::vector<tt::ChatMessage>{{"user", "Hello"}}});
    return nullptr;
  };
  if (pthread_create(&thread, &small, render, &engine) == 0) pthread_join(thread, nullptr);
  pthread_attr_destroy(&small);
}

int check(const char* path) {
  tt::load_backends({});
  tt::ModelOptions model;
  model.path = path;
  model.repack = false;  // the mapping is enough, and repacking takes seconds
  tt::ContextOptions context;
  context.context = 64;
  context.batch = context.ubatch = 32;
  context.threads = 1;
  const auto engine = tt::Engine::load(model, context, {});
  if (!engine) {
    std::puts(engine.error().message.c_str());
    return 1;
  }
  if ((*engine)->facts().has_vocabulary) {
    const auto tokens = (*engine)->tokens_of(tt::Prompt{"A short text, 2 lines.\n"});
    if (tokens)
      for (const std::int32_t token : *tokens) (void)(*engine)->piece(token);
    if ((*engine)->facts().has_chat_template) render_chat(**engine);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::puts("usage: tt-check-model MODEL.gguf");
    return 2;
  }
  limit_damage();
  try {
    return check(argv[1]);
  } catch (const std::exception& error) {
    std::printf("%s: llama.cpp cannot load it: %s\n", argv[1], error.what());
    return 1;
  }
}
