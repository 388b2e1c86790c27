#include "tracer/modelgen/detail/weights.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tt::modelgen::detail {
namespace {

constexpr std::int64_t kPoolValues = 1 << 18;
constexpr std::int64_t kDrawnValues = 1 << 16;  // larger quantized tensors use the pool
constexpr std::int64_t kChunkValues = 256;      // a multiple of every type's block size
constexpr std::uint64_t kPoolChunks = kPoolValues / kChunkValues;  // a power of 2

// SplitMix64: small, and the same on every platform.
class Random {
 public:
  explicit Random(std::uint64_t state) : state_(state) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }

  // The sum of four uniform 16-bit numbers, scaled to standard deviation 1: approximately normal,
  // and identical on every machine because it does not use libm.
  float normal() {
    const std::uint64_t bits = next();
    const std::uint64_t sum =
        (bits & 0xFFFFU) + ((bits >> 16U) & 0xFFFFU) + ((bits >> 32U) & 0xFFFFU) + (bits >> 48U);
    return (static_cast<float>(sum) - 131070.0F) * (1.0F / 37837.2F);
  }

 private:
  std::uint64_t state_;
};

std::uint64_t hash(std::uint64_t seed, std::string_view name) {
  std::uint64_t value = 0xCBF29CE484222325U ^ (seed * 0x9E3779B97F4A7C15U);
  for (const char c : name) {  // FNV-1a
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  return value;
}

// Which two chunks of the pool the first chunk of a row is made of: the first half of one and the
// second half of the other. A permutation of all pairs, so that the first million rows of a tensor
// differ. A pool has only 1,024 chunks: if each row of 256 values were one of them, four tokens of
// a vocabulary of 4,096 would have the same row, and with it exactly the same logit.
class FirstChunks {
 public:
  struct Pair {
    std::uint64_t first, second;  // of a pool
  };

  explicit FirstChunks(std::uint64_t key) : key_(key) {}

  // A Feistel network over the two halves of the row number.
  Pair of_row(std::uint64_t row) const {
    Pair pair{row / kPoolChunks % kPoolChunks, row % kPoolChunks};
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t mixed =
          Random(key_ + round * kPoolChunks + pair.second).next() % kPoolChunks;
      pair = {pair.second, pair.first ^ mixed};
    }
    return pair;
  }

 private:
  std::uint64_t key_;
};

std::vector<std::byte> draw(Random& random, Draw draw, ggml_type type, std::int64_t rows,
                            std::int64_t row) {
  std::vector<float> values(static_cast<std::size_t>(rows * row));
  const std::size_t hot = values.size() / 4;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float deviation = draw.deviation * (i < hot ? draw.hot : 1.0F);
    values[i] = draw.mean + (deviation == 0.0F ? 0.0F : deviation * random.normal());
  }
  std::vector<std::byte> bytes(ggml_row_size(type, row) * static_cast<std::size_t>(rows));
  if (type == GGML_TYPE_F32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, row, nullptr);
  }
  return bytes;
}

}  // namespace

const std::vector<std::byte>& WeightSource::pool(const PlannedTensor& tensor) {
  const auto [entry, is_new] =
      pools_.try_emplace({tensor.type, tensor.draw.mean, tensor.draw.deviation});
  if (is_new) {
    Random random(hash(seed_, ggml_type_name(tensor.type)));
    entry->second = draw(random, tensor.draw, tensor.type, kPoolValues / 1024, 1024);
  }
  return entry->second;
}

bool WeightSource::produce(const PlannedTensor& tensor,
                           const std::function<bool(std::span<const std::byte>)>& take) {
  Random random(hash(seed_, tensor.name));
  const std::int64_t values = tensor.elements();
  if (values <= kDrawnValues || !ggml_is_quantized(tensor.type) ||
      tensor.ne.front() % kChunkValues != 0) {
    return take(
        draw(random, tensor.draw, tensor.type, values / tensor.ne.front(), tensor.ne.front()));
  }
  const std::vector<std::byte>& source = pool(tensor);
  const std::size_t chunk = ggml_row_size(tensor.type, kChunkValues);
  const std::uint64_t row_chunks = static_cast<std::uint64_t>(tensor.ne.front() / kChunkValues);
  const FirstChunks first(random.next());
  std::vector<std::byte> chunk_bytes(chunk * 4096);
  std::uint64_t number = 0;  // of the chunk in the tensor
  for (std::size_t left = tensor.bytes(); left > 0;) {
    const std::size_t size = std::min(left, chunk_bytes.size());  // both multiples of chunk
    for (std::size_t at = 0; at < size; at += chunk, ++number) {
      std::byte* out = chunk_bytes.data() + at;
      if (number % row_chunks != 0) {
        std::memcpy(out, source.data() + random.next() % kPoolChunks * chunk, chunk);
        continue;
      }
      // Each byte is one of a valid chunk, at its place, so that the result is valid too.
      const auto [a, b] = first.of_row(number / row_chunks);
      const std::size_t half = chunk / 2;
      std::memcpy(out, source.data() + a * chunk, half);
      std::memcpy(out + half, source.data() + b * chunk + half, chunk - half);
    }
    if (!take(std::span(chunk_bytes).first(size))) {
      return false;
    }
    left -= size;
  }
  return true;
}

}  // namespace tt::modelgen::detail
