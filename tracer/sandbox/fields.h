// A list of byte strings as one message of a job.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

inline std::string pack_fields(std::span<const std::string_view> fields) {
  std::string message;
  for (const std::string_view field : fields) {
    const std::uint64_t bytes = field.size();
    message.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    message += field;
  }
  return message;
}
inline std::string pack_fields(std::initializer_list<std::string_view> fields) {
  return pack_fields(std::span(fields.begin(), fields.size()));
}

// Views of `message`. Throws std::invalid_argument if it is not the result of pack_fields().
inline std::vector<std::string_view> unpack_fields(std::string_view message) {
  std::vector<std::string_view> fields;
  while (!message.empty()) {
    std::uint64_t bytes = 0;
    if (message.size() < sizeof bytes) throw std::invalid_argument("truncated field");
    std::memcpy(&bytes, message.data(), sizeof bytes);
    message.remove_prefix(sizeof bytes);
    if (message.size() < bytes) throw std::invalid_argument("truncated field");
    fields.push_back(message.substr(0, bytes));
    message.remove_prefix(bytes);
  }
  return fields;
}

}  // namespace tt
