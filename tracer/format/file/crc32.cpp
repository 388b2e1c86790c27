// Folding by carry-less multiplication (Gopal et al., "Fast CRC computation for
// generic polynomials using PCLMULQDQ", 2009): 64 bytes at a time, in four lanes, are
// multiplied by x^512 modulo the polynomial. The remainder is reduced to 32 bits with a
// Barrett reduction. The constants are powers of x modulo the polynomial, reflected.
#include "tracer/format/file/crc32.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tt {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kLane = 16, kFold = 4 * kLane;

__attribute__((target("pclmul,sse4.1"))) __m128i folded(__m128i lane, __m128i by, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(lane, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// At least kFold bytes, a multiple of kLane.
__attribute__((target("pclmul,sse4.1"))) std::uint32_t fold(std::uint32_t state,
                                                            std::span<const std::byte> bytes) {
  const auto* at = reinterpret_cast<const __m128i*>(bytes.data());
  const auto* end = at + bytes.size() / kLane;
  __m128i lanes[4];
  for (__m128i& lane : lanes) lane = _mm_loadu_si128(at++);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(state)));
  const __m128i by_512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  while (end - at >= 4)
    for (__m128i& lane : lanes) lane = folded(lane, by_512, _mm_loadu_si128(at++));
  const __m128i by_128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  __m128i rest = lanes[0];
  for (std::size_t i = 1; i < 4; ++i) rest = folded(rest, by_128, lanes[i]);
  while (at != end) rest = folded(rest, by_128, _mm_loadu_si128(at++));

  // 128 bits to 64, to 32.
  const __m128i low_32 = _mm_setr_epi32(~0, 0, ~0, 0);
  rest = _mm_xor_si128(_mm_srli_si128(rest, 8), _mm_clmulepi64_si128(rest, by_128, 0x10));
  const __m128i by_64 = _mm_set_epi64x(0, 0x0163cd6124);
  rest = _mm_xor_si128(_mm_srli_si128(rest, 4),
                       _mm_clmulepi64_si128(_mm_and_si128(rest, low_32), by_64, 0x00));
  const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(rest, low_32), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32), barrett, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(rest, quotient), 1));
}

}  // namespace

std::size_t Crc32::add_folded(std::span<const std::byte> bytes) {
  static const bool kSupported =
      __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (!kSupported || bytes.size() < kFold) return 0;
  const std::size_t taken = bytes.size() / kLane * kLane;
  state_ = fold(state_, bytes.first(taken));
  return taken;
}

#else

std::size_t Crc32::add_folded(std::span<const std::byte>) { return 0; }

#endif

}  // namespace tt
