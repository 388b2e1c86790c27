// Blobs written as lists of bytes.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "tracer/format/file/byte_codec.h"

namespace tt::test {

inline Blob bytes(std::initializer_list<int> values) {
  Blob out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

}  // namespace tt::test
