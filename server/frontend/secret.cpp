#include "server/frontend/secret.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <format>
#include <vector>

namespace tt {

std::string random_secret(std::size_t bytes) {
  std::vector<unsigned char> random(bytes);
  for (std::size_t at = 0; at < random.size();) {
    const ssize_t got = getrandom(&random[at], random.size() - at, 0);
    // Available on Linux since 2014. Never continue with a guessable secret.
    if (got < 0 && errno != EINTR) std::abort();
    at += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  }
  std::string text;
  for (const unsigned char byte : random) text += std::format("{:02x}", byte);
  return text;
}

bool constant_time_equal(std::string_view secret, std::string_view given) {
  if (secret.empty()) return false;
  // Volatile: the compiler must not end the loop early.
  volatile unsigned difference = secret.size() == given.size() ? 0u : 1u;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto a = static_cast<unsigned char>(given[i]);
    const auto b = static_cast<unsigned char>(secret[i % secret.size()]);
    difference = difference | static_cast<unsigned>(a ^ b);
  }
  return difference == 0;
}

}  // namespace tt
