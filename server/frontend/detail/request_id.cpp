#include "server/frontend/detail/request_id.h"

#include <algorithm>
#include <cstdint>
#include <format>
#include <random>

namespace tt::frontend {

namespace {

bool is_valid_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

}  // namespace

std::string request_id_of(const RequestHead& head) {
  if (head.count(kRequestIdField) == 1 && is_valid_id(*head.first(kRequestIdField)))
    return std::string(*head.first(kRequestIdField));
  std::random_device random;
  return std::format("{:08x}{:08x}", random(), random());
}

}  // namespace tt::frontend
