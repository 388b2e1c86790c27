// Compiles if the compiler and its standard library support the C++23 features used here
// (GCC 14 or later).
#include <expected>
#include <print>
static_assert(__cpp_lib_expected >= 202202L);
