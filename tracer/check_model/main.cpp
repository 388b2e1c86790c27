// tt-check-model MODEL.gguf: loads the model as tt-server would and makes a small
// context, in a process that may crash. Exits 0, or says on stdout why not.
#include <cstdio>

#include "tracer/backends.h"
#include "tracer/engine.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::puts("usage: tt-check-model MODEL.gguf");
    return 2;
  }
  tt::load_backends({});
  tt::ModelOptions model;
  model.path = argv[1];
  model.repack = false;  // the mapping is enough, and repacking takes seconds
  tt::ContextOptions context;
  context.context = 64;
  context.batch = context.ubatch = 32;
  context.threads = 1;
  const auto engine = tt::Engine::load(model, context, {});
  if (engine) return 0;
  std::puts(engine.error().message.c_str());
  return 1;
}
