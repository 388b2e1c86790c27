// Loaded with LD_PRELOAD: sets CLOCK_REALTIME back by one day while the file named by
// TT_TEST_CLOCK_BACK exists. Other clocks are unchanged.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, now);
  const char* file = std::getenv("TT_TEST_CLOCK_BACK");
  if (result == 0 && clock == CLOCK_REALTIME && file != nullptr && access(file, F_OK) == 0)
    now->tv_sec -= 24 * 3600;
  return static_cast<int>(result);
}
