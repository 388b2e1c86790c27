// Says what the loader of glibc 2.31 says of the agent. Statically linked: it takes the place of a
// loader.
#include <unistd.h>

#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  const char* agent = std::getenv("LD_PRELOAD");
  if (argc < 2 || agent == nullptr) return 1;
  const std::string text = std::string(argv[1]) +
                           ": /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found "
                           "(required by " +
                           agent + ")\n";
  return ::write(STDERR_FILENO, text.data(), text.size()) < 0 ? 1 : 0;
}
