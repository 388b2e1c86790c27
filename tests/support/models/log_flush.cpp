// Preloaded into llama-eval-callback: a thread of its writes the log, and the
// program ends without waiting for what that thread has still to write. Here it
// waits, in the last call that it makes.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

struct common_log;
common_log* common_log_main();
void common_log_pause(common_log* log);

namespace {

// Until nothing more has come for a while. The log's queue is a ring: the end mark that
// pausing adds makes one that is all but full look empty, and both threads wait for ever.
void wait_until_written() {
  for (off_t size = -1;;) {
    struct stat out{};
    if (fstat(STDOUT_FILENO, &out) != 0 || out.st_size == size) return;
    size = out.st_size;
    usleep(200'000);
  }
}

}  // namespace

extern "C" void llama_backend_free() {
  wait_until_written();
  common_log_pause(common_log_main());  // joins the thread
  using Free = void (*)();
  reinterpret_cast<Free>(dlsym(RTLD_NEXT, "llama_backend_free"))();
}
