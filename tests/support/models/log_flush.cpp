// Preloaded into llama-eval-callback. That program writes its log in a thread and exits without
// waiting for it. This makes it wait in its last call to the library.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

struct common_log;
common_log* common_log_main();
void common_log_pause(common_log* log);

namespace {

// Waits until the output has not grown for 200 ms: the queue of the log is private, so there is
// no condition to wait for. Pausing the log is not enough: its queue is a ring,
// and the end marker that pausing adds makes an almost full ring look empty, so that both
// threads wait forever.
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
