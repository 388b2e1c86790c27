// Limits of tests that also run under AddressSanitizer.
#pragma once

namespace tt::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#else
inline constexpr bool kAddressSanitizer = false;
#endif

// Instrumented code is two to four times slower. Its memory grows by the shadow memory (1/8), the
// zones around each block and the freed blocks that are kept to detect later uses of them.
inline constexpr int kTimeFactor = kAddressSanitizer ? 5 : 1;
inline constexpr unsigned kMemoryFactor = kAddressSanitizer ? 3 : 1;

}  // namespace tt::test
