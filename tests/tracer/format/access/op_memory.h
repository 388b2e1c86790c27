// What a ggml op really reads and writes, found out the hard way: change one
// block of memory at a time, run the op on the real CPU backend, and see whether
// anything else changes. Knows nothing of our byte rules.
//
// "Reads" means the kernel's result depends on the block for some content: each
// block is replaced by NaN, infinity and other numbers (integers: by their
// neighbour, so that indices stay valid). "Writes" means the block's content afterwards
// does not survive from before.
#pragma once

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tt::test {

// Bytes per tensor that owns memory (views count as their root).
struct TouchedBytes {
  std::map<std::string, std::uint64_t> read, written;
  friend bool operator==(const TouchedBytes&, const TouchedBytes&) = default;
};

// Tensors, their content, and one op (or a pair that ggml fuses) on them.
// Make the leaves, then the op's nodes with ggml's functions on ctx(), then
// finish() with the last node.
class OpScene {
 public:
  using Shape = std::initializer_list<std::int64_t>;

  explicit OpScene(ggml_backend_t cpu);

  ggml_context* ctx() const { return ctx_.get(); }
  ggml_tensor* leaf(const char* name, ggml_type type, Shape ne);  // random content
  ggml_tensor* f32(const char* name, Shape ne) { return leaf(name, GGML_TYPE_F32, ne); }
  ggml_tensor* f16(const char* name, Shape ne) { return leaf(name, GGML_TYPE_F16, ne); }
  ggml_tensor* i32(const char* name, Shape ne, std::vector<std::int64_t> values);
  ggml_tensor* i64(const char* name, Shape ne, std::vector<std::int64_t> values);
  // 0 where attends(cell, query), else minus infinity.
  ggml_tensor* mask(const char* name, ggml_type type, Shape ne,
                    const std::function<bool(std::int64_t cell, std::int64_t query)>& attends);

  // Builds the graph, allocates and fills. The scene is fixed from here.
  void finish(ggml_tensor* last);

  std::vector<const ggml_tensor*> nodes() const;
  // Integers of a tensor of this scene, innermost first (views too).
  static std::vector<std::int64_t> integers(const ggml_tensor& tensor);

  // By brute force. `only`: names of tensors to try; empty: all.
  TouchedBytes touched(const std::vector<std::string>& only = {});

 private:
  using Bytes = std::vector<std::uint8_t>;
  struct Content {
    ggml_tensor* tensor;
    std::function<Bytes(std::uint32_t seed)> make;
  };

  void restore(const std::vector<Bytes>& contents);
  std::vector<Bytes> run_from(const std::vector<Bytes>& contents);

  ggml_backend_t cpu_;
  ggml_context_ptr ctx_;
  ggml_backend_buffer_ptr buffer_;
  ggml_cgraph* graph_ = nullptr;
  std::vector<Content> roots_;
};

}  // namespace tt::test
