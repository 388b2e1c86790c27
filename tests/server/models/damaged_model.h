// Models with one mutation before the weights; deterministic for a seed.
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
#include <vector>

#include "tests/support/temp_folder.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One mutation within the first `header` bytes.
inline std::string mutated(std::string bytes, std::size_t header, std::uint32_t seed) {
  std::mt19937 rng(seed);
  const auto anywhere = [&](std::size_t size) { return rng() % (header - size); };
  switch (seed % 6) {
    case 0: {  // one bit
      bytes[anywhere(1)] ^= static_cast<char>(1 << rng() % 8);
      break;
    }
    case 1: {  // one byte
      bytes[anywhere(1)] = static_cast<char>(rng());
      break;
    }
    case 2: {  // a boundary value of 32 bits
      const std::uint32_t values[] = {0, 1, 7, 0x7fffffff, 0x80000000, 0xffffffff, 1u << 20};
      std::memcpy(bytes.data() + anywhere(4), &values[rng() % std::size(values)], 4);
      break;
    }
    case 3: {  // a boundary value of 64 bits
      const std::uint64_t values[] = {0, 1, ~0ull, 1ull << 31, 1ull << 32, 1ull << 40, 1ull << 63};
      std::memcpy(bytes.data() + anywhere(8), &values[rng() % std::size(values)], 8);
      break;
    }
    case 4: {  // truncated, usually inside the header
      bytes.resize(rng() % 4 == 0 ? rng() % bytes.size() : rng() % header);
      break;
    }
    default: {  // a range copied over another
      const std::size_t size = 1 + rng() % 64;
      bytes.replace(anywhere(size), size, bytes.substr(anywhere(size), size));
      break;
    }
  }
  return bytes;
}

// A small valid model in one or several files.
class ValidModel {
 public:
  enum class Kind { Dense, Mixture, Split };
  static constexpr Kind kKinds[] = {Kind::Dense, Kind::Mixture, Kind::Split};

  explicit ValidModel(Kind kind) {
    modelgen::ModelSpec spec;
    spec.shape = kind == Kind::Mixture ? "moe" : "small";
    spec.splits = kind == Kind::Split ? 3 : 1;
    spec.dims.layers = 2;
    spec.dims.embd = 64;
    spec.dims.heads = 2;
    spec.dims.kv_heads = 2;
    spec.dims.ff = 128;
    spec.dims.vocab = 512;  // small, otherwise most mutations would hit tokens
    spec.quant = "f32";
    const auto made = modelgen::write_model(spec, folder_ / "valid.gguf");
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return;
    }
    // Offsets of a split model are relative to each file.
    std::vector<std::size_t> headers(made->files.size());
    const auto index = GgufIndex::open(made->files.front());
    for (std::size_t i = 0; i < headers.size(); ++i)
      headers[i] = std::filesystem::file_size(made->files[i]);
    for (const GgufTensor& tensor : index->tensors())
      headers[tensor.file.file] =
          std::min(headers[tensor.file.file], static_cast<std::size_t>(tensor.file.offset));
    for (std::size_t i = 0; i < headers.size(); ++i) {
      const std::string end = made->files[i].filename().string().substr(5);  // after "valid"
      parts_.push_back({.end = end, .bytes = contents(made->files[i]), .header = headers[i]});
    }
  }

  // Writes STEM.gguf or STEM-00001-of-00003.gguf, ...; returns the path of the first.
  std::filesystem::path write(const std::filesystem::path& folder, const std::string& stem) const {
    for (const Part& part : parts_)
      std::ofstream(folder / (stem + part.end), std::ios::binary) << part.bytes;
    return folder / (stem + parts_.front().end);
  }

  // Like write(), with one mutation before the weights in one of the files.
  std::filesystem::path write_mutated(const std::filesystem::path& folder, const std::string& stem,
                                      std::uint32_t seed) const {
    const auto path = write(folder, stem);
    const Part& part = parts_[seed / 6 % parts_.size()];
    std::ofstream(folder / (stem + part.end), std::ios::binary)
        << mutated(part.bytes, part.header, seed);
    return path;
  }

  void remove(const std::filesystem::path& folder, const std::string& stem) const {
    for (const Part& part : parts_) std::filesystem::remove(folder / (stem + part.end));
  }

 private:
  struct Part {
    std::string end;  // suffix of the file name
    std::string bytes;
    std::size_t header;
  };
  TempFolder folder_;
  std::vector<Part> parts_;
};

inline const char* name_of(ValidModel::Kind kind) {
  return kind == ValidModel::Kind::Dense     ? "dense"
         : kind == ValidModel::Kind::Mixture ? "mixture"
                                             : "split";
}

}  // namespace tt::test
