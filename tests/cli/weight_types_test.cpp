// All quantization types that ggml knows, against the Python package gguf of llama.cpp.
#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/command_output.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/weights/block_parameters.h"
#include "tracer/weights/weight_reader.h"

namespace tt {
namespace {

using nlohmann::json;

// Of all types, against a decoder that is not ggml's. The bytes are random, but for the scales of
// the blocks, which would be NaN or too large: a block that ggml cannot decode to numbers is left
// out.
TEST(WeightReader, DecodesWhatGgufDecodes) {
  const test::TempFolder folder;
  constexpr std::int64_t kColumns = 256, kRows = 64;
  std::mt19937 random(11);
  gguf_context* const gguf = gguf_init_empty();
  ggml_context* const tensors =
      ggml_init({.mem_size = std::size_t{1} << 24, .mem_buffer = nullptr, .no_alloc = false});
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const auto type = static_cast<ggml_type>(i);
    const char* const name = ggml_type_name(type);
    if (name == nullptr || block_layout(name) == nullptr) continue;
    ggml_tensor* const tensor = ggml_new_tensor_2d(tensors, type, kColumns, kRows);
    ggml_set_name(tensor, name);
    auto* const bytes = static_cast<std::uint8_t*>(tensor->data);
    const std::size_t size = ggml_type_size(type);
    std::vector<float> decoded(static_cast<std::size_t>(ggml_blck_size(type)));
    for (std::size_t at = 0; at < ggml_nbytes(tensor); at += size) {
      do {
        for (std::size_t b = 0; b < size; ++b) bytes[at + b] = static_cast<std::uint8_t>(random());
        ggml_get_type_traits(type)->to_float(bytes + at, decoded.data(), ggml_blck_size(type));
      } while (!std::ranges::all_of(decoded, [](float v) { return std::abs(v) < 1e6F; }));
    }
    gguf_add_tensor(gguf, tensor);
  }
  ASSERT_TRUE(gguf_write_to_file(gguf, (folder / "all.gguf").c_str(), /*only_meta=*/false));
  ggml_free(tensors);
  gguf_free(gguf);
  const auto index = GgufIndex::open(folder / "all.gguf");
  ASSERT_TRUE(index.has_value()) << index.error();
  auto reader = WeightReader::open(*index);
  ASSERT_TRUE(reader.has_value());
  std::ofstream values(folder / "values", std::ios::binary);
  for (const GgufTensor& tensor : index->tensors()) {
    const auto read = reader->read(tensor, all_rows(tensor), [&](const WeightRows& rows) {
      values.write(reinterpret_cast<const char*>(rows.values.data()),
                   static_cast<std::streamsize>(rows.values.size_bytes()));
      return true;
    });
    ASSERT_TRUE(read.has_value()) << tensor.name;
  }
  values.close();
  const json wrong = json::parse(test::command_output(
      std::format("cd '{}' && python3 {} all.gguf values", folder.path().string(),
                  source_path("tests/cli/decode_with_gguf.py"))));
  EXPECT_EQ(wrong.size(), index->tensors().size());
  std::size_t decoded = 0;
  for (const auto& [type, count] : wrong.items()) {
    if (count.is_null()) continue;  // newer than the package
    ++decoded;
    EXPECT_EQ(count, 0) << type;
  }
  EXPECT_GE(decoded, 22U) << wrong;
}

}  // namespace
}  // namespace tt
