// Preloaded into llama-eval-callback: a thread of its writes the log, and the
// program ends without waiting for what that thread has still to write. Here it
// waits, in the last call that it makes.
#include <dlfcn.h>

struct common_log;
common_log* common_log_main();
void common_log_pause(common_log* log);

extern "C" void llama_backend_free() {
  common_log_pause(common_log_main());  // joins the thread
  using Free = void (*)();
  reinterpret_cast<Free>(dlsym(RTLD_NEXT, "llama_backend_free"))();
}
