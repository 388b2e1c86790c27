// Evaluates fixed tokens with the llama.cpp in a folder, of any version since December 2024. Built
// without its headers: structs are opaque, and larger than those of any version.
// library_program LIBLLAMA MODEL STEPS; the other libraries are in the folder of this one
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Params {
  std::array<char, 1024> bytes;
};
struct Batch {
  std::array<char, 128> bytes;
};

void* library = nullptr;

template <class Function>
Function* function(const char* name, const char* older = nullptr) {
  void* found = dlsym(library, name);
  if (found == nullptr && older != nullptr) found = dlsym(library, older);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s\n", name);
    std::exit(3);
  }
  return reinterpret_cast<Function*>(found);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string folder = std::string(argv[1]).substr(0, std::string(argv[1]).rfind('/'));
  // As add-ons of node: other libraries do not see it.
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  function<void(void (*)(int, const char*, void*), void*)>("llama_log_set")(
      [](int, const char*, void*) {}, nullptr);
  // Older versions have their backends in them.
  if (dlsym(library, "ggml_backend_load_all_from_path") != nullptr)
    function<void(const char*)>("ggml_backend_load_all_from_path")(folder.c_str());
  function<void()>("llama_backend_init")();
  void* model = function<void*(const char*, Params)>("llama_model_load_from_file",
                                                     "llama_load_model_from_file")(
      argv[2], function<Params()>("llama_model_default_params")());
  if (model == nullptr) {
    std::fprintf(stderr, "cannot load the model\n");
    return 4;
  }
  void* context =
      function<void*(void*, Params)>("llama_init_from_model", "llama_new_context_with_model")(
          model, function<Params()>("llama_context_default_params")());
  if (context == nullptr) return 5;
  function<void(void*, std::int32_t, std::int32_t)>("llama_set_n_threads")(context, 1, 1);
  std::array<std::int32_t, 4> tokens = {1, 2, 3, 4};
  auto* one = function<Batch(std::int32_t*, std::int32_t)>("llama_batch_get_one");
  auto* decode = function<std::int32_t(void*, Batch)>("llama_decode");
  for (int i = 0; i < std::atoi(argv[3]); ++i) {
    if (decode(context, one(tokens.data(), i == 0 ? 4 : 1)) != 0) return 6;
    tokens[0] = 5 + i;
  }
  function<void(void*)>("llama_free")(context);
  std::printf("done\n");
  return 0;
}
