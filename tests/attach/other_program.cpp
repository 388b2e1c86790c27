// Loads a library with other_ggml.cpp in it, as an add-on of node does, and evaluates STEPS graphs:
// other_program LIBRARY STEPS
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  auto* run = library == nullptr
                  ? nullptr
                  : reinterpret_cast<void (*)(int)>(dlsym(library, "other_llama_run"));
  if (run == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  run(std::atoi(argv[2]));
  return 0;
}
