// Models with one change of what stands before the weights, the same for the same seed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "tracer/gguf_index.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Where the tensors' data begins: the smallest offset of any.
inline std::size_t header_bytes(const std::filesystem::path& path) {
  const auto index = GgufIndex::open(path);
  EXPECT_TRUE(index.has_value());
  std::uint64_t first = std::filesystem::file_size(path);
  for (const GgufTensor& tensor : index->tensors()) first = std::min(first, tensor.file.offset);
  return first;
}

// One change of the first `header` bytes.
inline std::string mutated(std::string bytes, std::size_t header, std::uint32_t seed) {
  std::mt19937 dice(seed);
  const auto anywhere = [&](std::size_t size) { return dice() % (header - size); };
  switch (seed % 6) {
    case 0: {  // one bit
      bytes[anywhere(1)] ^= static_cast<char>(1 << dice() % 8);
      break;
    }
    case 1: {  // one byte
      bytes[anywhere(1)] = static_cast<char>(dice());
      break;
    }
    case 2: {  // a number that matters
      const std::uint32_t values[] = {0, 1, 7, 0x7fffffff, 0x80000000, 0xffffffff, 1u << 20};
      std::memcpy(bytes.data() + anywhere(4), &values[dice() % std::size(values)], 4);
      break;
    }
    case 3: {  // a long number that matters
      const std::uint64_t values[] = {0, 1, ~0ull, 1ull << 31, 1ull << 32, 1ull << 40, 1ull << 63};
      std::memcpy(bytes.data() + anywhere(8), &values[dice() % std::size(values)], 8);
      break;
    }
    case 4: {  // truncated, mostly inside of the header
      bytes.resize(dice() % 4 == 0 ? dice() % bytes.size() : dice() % header);
      break;
    }
    case 5: {  // a stretch copied over another
      const std::size_t size = 1 + dice() % 64;
      bytes.replace(anywhere(size), size, bytes.substr(anywhere(size), size));
      break;
    }
  }
  return bytes;
}

// A small one that is not damaged yet.
inline std::filesystem::path write_sound_model(const std::filesystem::path& path) {
  modelgen::ModelSpec spec;
  spec.shape = "small";
  spec.dims.layers = 2;
  spec.dims.embd = 64;
  spec.dims.heads = 2;
  spec.dims.kv_heads = 2;
  spec.dims.ff = 128;
  spec.quant = "f32";
  const auto made = modelgen::write_model(spec, path);
  if (!made) ADD_FAILURE() << made.error().message;
  return path;
}

}  // namespace tt::test
