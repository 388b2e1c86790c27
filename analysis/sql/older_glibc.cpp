// For the loadable extension only: the static C++ library of the build reads a tunable with a
// function of glibc 2.38, which older hosts do not have. strtoul() does the same, except for the
// binary numbers of C23.
extern "C" {
unsigned long oldest_strtoul(const char* text, char** end, int base) __asm__("strtoul");
unsigned long __isoc23_strtoul(const char* text, char** end, int base);

unsigned long __isoc23_strtoul(const char* text, char** end, int base) {
  return oldest_strtoul(text, end, base);
}
}
