// The GGUF header reader: compared with llama.cpp's own, and on arbitrary bytes.
#include "tracer/gguf/gguf_header.h"

#include <ggml.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <format>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/modelgen/model_writer.h"

namespace tt {
namespace {

using test::TempFolder;

// ---------------------------------------------------------------- llama.cpp's reader

std::string scalar_text(const gguf_context* gguf, std::int64_t key) {
  switch (gguf_get_kv_type(gguf, key)) {
    case GGUF_TYPE_UINT8:
      return std::to_string(gguf_get_val_u8(gguf, key));
    case GGUF_TYPE_INT8:
      return std::to_string(gguf_get_val_i8(gguf, key));
    case GGUF_TYPE_UINT16:
      return std::to_string(gguf_get_val_u16(gguf, key));
    case GGUF_TYPE_INT16:
      return std::to_string(gguf_get_val_i16(gguf, key));
    case GGUF_TYPE_UINT32:
      return std::to_string(gguf_get_val_u32(gguf, key));
    case GGUF_TYPE_INT32:
      return std::to_string(gguf_get_val_i32(gguf, key));
    case GGUF_TYPE_UINT64:
      return std::to_string(gguf_get_val_u64(gguf, key));
    case GGUF_TYPE_INT64:
      return std::to_string(gguf_get_val_i64(gguf, key));
    case GGUF_TYPE_FLOAT32:
      return std::format("{}", gguf_get_val_f32(gguf, key));
    case GGUF_TYPE_FLOAT64:
      return std::format("{}", gguf_get_val_f64(gguf, key));
    case GGUF_TYPE_BOOL:
      return gguf_get_val_bool(gguf, key) ? "true" : "false";
    case GGUF_TYPE_STRING:
      return gguf_get_val_str(gguf, key);
    default:
      return std::format("{}[{}]", gguf_type_name(gguf_get_arr_type(gguf, key)),
                         gguf_get_arr_n(gguf, key));
  }
}

void expect_equal_to_llama(const std::filesystem::path& path) {
  SCOPED_TRACE(path);
  const GgufContext theirs(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
  ASSERT_NE(theirs, nullptr);
  const auto ours = read_gguf_header(path);
  ASSERT_TRUE(ours.has_value()) << ours.error();
  EXPECT_EQ(ours->data_offset, gguf_get_data_offset(theirs.get()));
  ASSERT_EQ(std::ssize(ours->metadata), gguf_get_n_kv(theirs.get()));
  for (std::int64_t i = 0; i < std::ssize(ours->metadata); ++i) {
    const GgufEntry& entry = ours->metadata[static_cast<std::size_t>(i)];
    EXPECT_EQ(entry.key, gguf_get_key(theirs.get(), i));
    EXPECT_EQ(entry.type, gguf_type_name(gguf_get_kv_type(theirs.get(), i)));
    EXPECT_EQ(value_text(entry), scalar_text(theirs.get(), i));
    const auto* array = std::get_if<GgufArray>(&entry.value);
    if (array == nullptr || array->type != "str") continue;
    for (std::size_t n = 0; n < array->first.size(); ++n)
      EXPECT_EQ(std::get<std::string>(array->first[n]), gguf_get_arr_str(theirs.get(), i, n));
  }
  ASSERT_EQ(std::ssize(ours->tensors), gguf_get_n_tensors(theirs.get()));
  for (std::int64_t i = 0; i < std::ssize(ours->tensors); ++i) {
    const GgufTensorInfo& tensor = ours->tensors[static_cast<std::size_t>(i)];
    EXPECT_EQ(tensor.name, gguf_get_tensor_name(theirs.get(), i));
    EXPECT_EQ(tensor.type, ggml_type_name(gguf_get_tensor_type(theirs.get(), i)));
    EXPECT_EQ(tensor.size, gguf_get_tensor_size(theirs.get(), i));
    EXPECT_EQ(tensor.offset,
              gguf_get_data_offset(theirs.get()) + gguf_get_tensor_offset(theirs.get(), i));
    const std::int64_t* ne = gguf_get_tensor_ne(theirs.get(), i);
    EXPECT_TRUE(std::equal(tensor.ne.begin(), tensor.ne.end(), ne)) << tensor.name;
  }
}

TEST(GgufHeader, MatchesLlamaCpp) {
  expect_equal_to_llama(kTestPaths.bundled_model);
  const TempFolder folder;
  int shapes = 0;
  for (const modelgen::NamedShape& shape : modelgen::named_shapes()) {
    if (shape.dims.embd > 512) continue;  // gigabytes
    modelgen::ModelSpec spec;
    spec.shape = shape.name;
    const auto path = folder.path() / (std::string(shape.name) + ".gguf");
    ASSERT_TRUE(modelgen::write_model(spec, path).has_value()) << shape.name;
    expect_equal_to_llama(path);
    std::filesystem::remove(path);
    ++shapes;
  }
  EXPECT_GE(shapes, 8);
}

// ---------------------------------------------------------------- arbitrary bytes

// Builds a GGUF file as a string.
class Bytes {
 public:
  template <class T>
  Bytes& add(T value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& add(std::string_view value) {
    add(std::uint64_t{value.size()});
    text += value;
    return *this;
  }
  Bytes& head(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
    text += "GGUF";
    return add(version).add(tensors).add(entries);
  }
  Bytes& entry(std::string_view key, std::int32_t type) { return add(key).add(type); }
  Bytes& tensor(std::string_view name, const std::vector<std::int64_t>& ne, std::int32_t type,
                std::uint64_t offset) {
    add(name).add(static_cast<std::uint32_t>(ne.size()));
    for (const std::int64_t n : ne) add(n);
    return add(type).add(offset);
  }
  std::string text;
};

// A value of each type, an array of each type, three tensors and their data.
std::string small_file() {
  Bytes b;
  b.head(3, 15);
  b.entry("general.architecture", GGUF_TYPE_STRING).add(std::string_view("llama"));
  b.entry("a", GGUF_TYPE_UINT8).add(std::uint8_t{200});
  b.entry("b", GGUF_TYPE_INT8).add(std::int8_t{-5});
  b.entry("c", GGUF_TYPE_UINT16).add(std::uint16_t{65535});
  b.entry("d", GGUF_TYPE_INT16).add(std::int16_t{-300});
  b.entry("e", GGUF_TYPE_UINT32).add(4'000'000'000u);
  b.entry("f", GGUF_TYPE_INT32).add(std::int32_t{-70000});
  b.entry("g", GGUF_TYPE_UINT64).add(std::numeric_limits<std::uint64_t>::max());
  b.entry("h", GGUF_TYPE_INT64).add(std::numeric_limits<std::int64_t>::min());
  b.entry("i", GGUF_TYPE_FLOAT32).add(0.1F);
  b.entry("j", GGUF_TYPE_FLOAT64).add(0.1);
  b.entry("k", GGUF_TYPE_BOOL).add(std::int8_t{1});
  b.entry("l", GGUF_TYPE_ARRAY).add(std::int32_t{GGUF_TYPE_INT16}).add(std::uint64_t{40});
  for (std::int16_t n = 0; n < 40; ++n) b.add(n);
  b.entry("m", GGUF_TYPE_ARRAY).add(std::int32_t{GGUF_TYPE_STRING}).add(std::uint64_t{20});
  for (int n = 0; n < 20; ++n) b.add(std::string_view(n % 2 == 0 ? "even" : "odd number"));
  b.entry("general.alignment", GGUF_TYPE_UINT32).add(64u);
  b.tensor("token_embd.weight", {32, 4}, GGML_TYPE_F32, 0);
  b.tensor("blk.0.attn_q.weight", {64, 3, 2}, GGML_TYPE_Q8_0, 512);
  b.tensor("blk.0.attn_norm.weight", {8}, GGML_TYPE_F16, 960);
  b.text.resize((b.text.size() + 63) / 64 * 64 + 1024 + 64);
  return b.text;
}

std::filesystem::path write(const TempFolder& folder, const std::string& bytes) {
  auto path = folder.path() / "file.gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(GgufHeader, ReadsEveryTypeOfValue) {
  const TempFolder folder;
  const auto path = write(folder, small_file());
  expect_equal_to_llama(path);
  const auto header = read_gguf_header(path);
  ASSERT_TRUE(header.has_value()) << header.error();
  EXPECT_EQ(value_of<std::uint64_t>(header->metadata, "g"), UINT64_MAX);
  EXPECT_EQ(value_of<std::int64_t>(header->metadata, "h"), INT64_MIN);
  EXPECT_EQ(value_of<float>(header->metadata, "i"), 0.1F);
  EXPECT_EQ(value_of<std::uint64_t>(header->metadata, "h"), std::nullopt) << "another type";
  EXPECT_EQ(value_of<std::uint64_t>(header->metadata, "none"), std::nullopt);
  const auto& array = std::get<GgufArray>(header->metadata[13].value);
  EXPECT_EQ(array.length, 20U);
  EXPECT_EQ(array.first.size(), GgufArray::kShownElements);
  EXPECT_EQ(std::get<std::string>(array.first[1]), "odd number");
  EXPECT_EQ(header->data_offset % 64, 0U);
}

TEST(GgufHeader, RejectsInvalidHeaders) {
  const auto one_tensor = [](const std::vector<std::int64_t>& ne, std::int32_t type,
                             std::uint64_t offset = 0) {
    return Bytes().head(1, 0).tensor("t", ne, type, offset).text + std::string(256, 0);
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 60;
  struct Case {
    const char* name;
    std::string bytes, says;
  };
  const Case cases[] = {
      {"version 1", Bytes().head(0, 0, 1).text, "version 1"},
      {"of the future", Bytes().head(0, 0, 4).text, "version 4"},
      {"of the other byte order", Bytes().head(0, 0, 0x03000000).text, "big-endian"},
      {"too many entries", Bytes().head(0, UINT64_MAX).text, "invalid counts"},
      {"too many tensors", Bytes().head(1u << 20, 0).text, "invalid counts"},
      {"a key without end", Bytes().head(0, 1).add(UINT64_MAX - 3).text, "metadata 1 of 1"},
      {"an unknown type", Bytes().head(0, 1).entry("a", 13).text, "metadata 1 of 1"},
      {"a negative type", Bytes().head(0, 1).entry("a", -1).text, "metadata 1 of 1"},
      {"an array of arrays",
       Bytes().head(0, 1).entry("a", GGUF_TYPE_ARRAY).add(9).add(std::uint64_t{0}).text,
       "metadata 1 of 1"},
      {"an array without end",
       Bytes().head(0, 1).entry("a", GGUF_TYPE_ARRAY).add(12).add(UINT64_MAX / 8).text,
       "metadata 1 of 1"},
      {"strings without end",
       Bytes().head(0, 1).entry("a", GGUF_TYPE_ARRAY).add(8).add(UINT64_MAX).text,
       "metadata 1 of 1"},
      {"a key twice",
       Bytes().head(0, 2).entry("a", 7).add('\1').entry("a", 7).add('\1').text + std::string(9, 0),
       "duplicate name"},
      {"no alignment", Bytes().head(0, 1).entry("general.alignment", 4).add(0u).text, "alignment"},
      {"an odd alignment", Bytes().head(0, 1).entry("general.alignment", 4).add(3u).text,
       "alignment"},
      {"an alignment in words",
       Bytes().head(0, 1).entry("general.alignment", 8).add(std::string_view("32")).text,
       "alignment"},
      {"five dimensions", one_tensor({1, 1, 1, 1, 1}, GGML_TYPE_F32), "tensor t has 5 dimensions"},
      {"a negative size", one_tensor({-1}, GGML_TYPE_F32), "tensor 1 of 1"},
      {"sizes that overflow", one_tensor({kHuge, kHuge, kHuge, kHuge}, GGML_TYPE_F32),
       "tensor 1 of 1"},
      {"half a block", one_tensor({16}, GGML_TYPE_Q8_0), "tensor t has rows of 16"},
      {"a type that was removed", one_tensor({32}, 4),
       "tensor t has the type 4, which llama.cpp has removed"},
      {"no such type", one_tensor({32}, 4000), "tensor 1 of 1: t"},
      {"beyond the end", one_tensor({4096}, GGML_TYPE_F32), "truncated: tensor t"},
      {"an offset that overflows", one_tensor({32}, GGML_TYPE_F32, UINT64_MAX - 64),
       "tensor t begins at byte 18446744073709551551"},
      {"a long name",
       Bytes().head(1, 0).tensor(std::string(64, 'x'), {1}, GGML_TYPE_F32, 0).text +
           std::string(256, 0),
       "has 64 bytes; llama.cpp allows 63"},
  };
  const TempFolder folder;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto header = read_gguf_header(write(folder, c.bytes));
    ASSERT_FALSE(header.has_value());
    EXPECT_TRUE(header.error().contains(c.says)) << header.error();
    EXPECT_TRUE(header.error().contains("file.gguf")) << header.error();
  }
}

TEST(GgufHeader, UsesNoMoreMemoryThanFileSize) {
  const TempFolder folder;
  // A file of the maximum size without content: counts of elements are not trusted.
  const auto sparse = write(
      folder, Bytes().head(0, 1).entry("a", GGUF_TYPE_ARRAY).add(8).add(UINT64_MAX / 16).text);
  std::filesystem::resize_file(sparse, std::uintmax_t{1} << 40);
  EXPECT_FALSE(read_gguf_header(sparse).has_value());
  // A pipe and an empty file are rejected.
  const auto pipe = folder.path() / "pipe.gguf";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(read_gguf_header(pipe).error().contains("not a regular file"));
  EXPECT_TRUE(read_gguf_header("/dev/zero").error().contains("not a regular file"));
  EXPECT_TRUE(read_gguf_header(folder.path()).error().contains("not a regular file"));
  EXPECT_TRUE(read_gguf_header(folder.path() / "none").error().contains("No such file"));
}

TEST(GgufHeader, ArbitraryBytesGiveValueOrError) {
  const TempFolder folder;
  const std::string whole = small_file();
  const std::size_t header = whole.size() - 1024 - 64;
  int read = 0;
  constexpr int kFiles = 10'000;
  for (std::uint32_t seed = 0; seed < kFiles; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 dice(seed);
    std::string bytes = whole;
    for (auto changes = 1 + dice() % 4; changes > 0; --changes) {
      const std::size_t at = dice() % header;
      switch (dice() % 4) {
        case 0:
          bytes[at] = static_cast<char>(dice());
          break;
        case 1:  // replaces a length or a count by a large one
          std::memset(bytes.data() + at, 0xFF, std::min<std::size_t>(8, bytes.size() - at));
          break;
        case 2:
          bytes.resize(at + 1);
          bytes.resize(whole.size());
          break;
        default:
          bytes.erase(at, dice() % 16);
      }
    }
    const auto found = read_gguf_header(write(folder, bytes));
    if (!found) {
      ASSERT_FALSE(found.error().empty());
      continue;
    }
    ++read;
    for (const GgufTensorInfo& tensor : found->tensors) {
      ASSERT_LE(tensor.offset, bytes.size());
      ASSERT_LE(tensor.size, bytes.size() - tensor.offset);
    }
  }
  std::printf("%d of %d are readable\n", read, kFiles);
  EXPECT_GT(read, kFiles / 20);
  EXPECT_LT(read, kFiles);
}

}  // namespace
}  // namespace tt
