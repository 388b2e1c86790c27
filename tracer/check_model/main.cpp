// tt-check-model MODEL.gguf: loads the model like tt-server, creates a small context, and
// tokenizes a text and a conversation. Runs in a process of its own, because it may crash.
// Exits with 0, or prints the error to stdout.
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

// Limits the damage that an invalid file can do.
void limit_resources() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::setenv("GGML_NO_BACKTRACE", "1", 1);  // ggml would start a debugger
  // Half of the RAM, because a file can claim that a list has billions of entries. The weights
  // are mapped from the file and do not count.
  const auto ram = static_cast<rlim_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L)) *
                   static_cast<rlim_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
  if (ram > 0) {
    const rlimit half{.rlim_cur = ram / 2, .rlim_max = ram / 2};
    ::setrlimit(RLIMIT_DATA, &half);
  }
}

// Rendering a chat template is recursive, and a template can be nested without limit. Renders it
// with a quarter of the stack size of the server's threads, so that a template that passes here
// cannot overflow their stacks.
void render_chat(tt::Engine& engine) {
  constexpr std::size_t kStackBytes = 2U << 20;
  std::puts("at its chat template");  // the error message if rendering crashes
  std::fflush(stdout);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, kStackBytes);
  pthread_t thread{};
  const auto render = [](void* model) -> void* {
    // Errors of the template are reported when a client sends a conversation.
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
  model.repack = false;  // not needed for the check, and takes seconds
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
  limit_resources();
  try {
    return check(argv[1]);
  } catch (const std::exception& error) {
    std::printf("%s: llama.cpp cannot load it: %s\n", argv[1], error.what());
    return 1;
  }
}
