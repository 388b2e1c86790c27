// The types of ggml by the names that gguf_header.h gives them.
#pragma once

#include <ggml.h>

#include <optional>
#include <string_view>

namespace tt {

inline std::optional<ggml_type> ggml_type_named(std::string_view name) {
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const auto type = static_cast<ggml_type>(i);
    const char* const known = ggml_type_name(type);
    if (known != nullptr && name == known) return type;
  }
  return std::nullopt;
}

}  // namespace tt
