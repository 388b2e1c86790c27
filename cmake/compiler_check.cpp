// Compiles where the compiler and its library know what we use of C++23 (GCC 14 does).
#include <expected>
#include <print>
static_assert(__cpp_lib_expected >= 202202L);
