#include "tracer/engine/compute_threads.h"

#include <dlfcn.h>

namespace tt {

void end_compute_threads() {
  // ggml's library for the processor is loaded while the program runs, and libgomp with it.
  void* const library = ::dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return;
  using Pause = int(int kind);  // omp_pause_resource_t: 1 is omp_pause_soft
  if (const auto pause = reinterpret_cast<Pause*>(::dlsym(library, "omp_pause_resource_all")))
    pause(1);
  ::dlclose(library);
}

}  // namespace tt
