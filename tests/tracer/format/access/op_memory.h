// Measures by experiment what a ggml op reads and writes: changes one block of memory at a
// time, runs the op on the real CPU backend, and checks whether anything else changes.
// Independent of the byte rules.
//
// "Reads" means that the kernel's result depends on the block for some content: each block is
// replaced by NaN, infinity and other numbers (integers: by their neighbour, so that indices
// stay valid). "Writes" means that the block's previous content does not survive.
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

// Bytes per tensor that owns memory (a view counts as its root).
struct TouchedBytes {
  std::map<std::string, std::uint64_t> read, written;
  friend bool operator==(const TouchedBytes&, const TouchedBytes&) = default;
};

// Tensors with content, and one op (or a pair that ggml fuses) on them. Make the leaves, then
// the op's nodes with ggml's functions on ctx(), then call finish() with the last node.
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

  // Builds the graph, allocates and fills it. The scene is immutable from here on.
  void finish(ggml_tensor* last);

  std::vector<const ggml_tensor*> nodes() const;
  // The integers of a tensor of this scene (also of a view), innermost dimension first.
  static std::vector<std::int64_t> integers(const ggml_tensor& tensor);

  // Measured by brute force. `only`: names of tensors to test; empty: all.
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
