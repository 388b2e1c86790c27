// Loaded with LD_PRELOAD: a kernel with a fault. ggml's ROPE rotates by angles whose cosines are
// 0.1 % too large here; no other op computes a cosine. A compiler makes one call of both functions.
#include <cmath>

extern "C" {

float cosf(float angle) noexcept {
  return static_cast<float>(1.001 * std::cos(static_cast<double>(angle)));
}

void sincosf(float angle, float* sine, float* cosine) noexcept {
  *sine = static_cast<float>(std::sin(static_cast<double>(angle)));
  *cosine = cosf(angle);
}

}  // extern "C"
