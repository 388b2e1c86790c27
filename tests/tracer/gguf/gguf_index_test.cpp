#include "tracer/gguf/gguf_index.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>

#include "tests/support/models/traced_model.h"
#include "tests/support/temp_folder.h"
#include "tracer/engine/model_check.h"
#include "tracer/gguf/mapped_files.h"

namespace tt::test {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::filesystem::path rwkv() { return generated_model({.shape = "rwkv"}); }

std::filesystem::path in_three_parts() { return generated_model({.shape = "small", .splits = 3}); }

TEST(GgufIndex, ListsEveryTensorWithFileRange) {
  const auto path = rwkv();
  const auto index = GgufIndex::open(path);
  ASSERT_TRUE(index.has_value()) << index.error();
  ASSERT_EQ(index->files().size(), 1U);
  EXPECT_EQ(index->files()[0].path, path.string());
  EXPECT_EQ(index->files()[0].size, std::filesystem::file_size(path));
  EXPECT_EQ(index->files()[0].header_hash.size(), 16U);
  std::uint64_t end = 0;
  for (const GgufTensor& tensor : index->tensors()) {
    EXPECT_GE(tensor.file.offset, end) << tensor.name << " overlaps the one before";
    end = tensor.file.offset + tensor.file.length;
    EXPECT_EQ(index->find(tensor.name), &tensor);
  }
  EXPECT_LE(end, index->files()[0].size);
  EXPECT_EQ(index->find("blk.0.none"), nullptr);
  const auto found = std::ranges::find(index->metadata(), "general.architecture", &GgufEntry::key);
  ASSERT_NE(found, index->metadata().end());
  EXPECT_EQ(value_text(*found), "rwkv7");
}

TEST(GgufIndex, FindsPartsOfSplitModel) {
  const auto first = in_three_parts();
  const auto index = GgufIndex::open(first);
  ASSERT_TRUE(index.has_value()) << index.error();
  EXPECT_EQ(index->files().size(), 3U);
  std::set<std::uint32_t> used;
  for (const GgufTensor& tensor : index->tensors()) {
    ASSERT_LT(tensor.file.file, 3U);
    used.insert(tensor.file.file);
    EXPECT_LE(tensor.file.offset + tensor.file.length, index->files()[tensor.file.file].size);
  }
  EXPECT_EQ(used.size(), 3U);
}

TEST(GgufIndex, RejectsUnreadableFilesWithReason) {
  const TempFolder folder;
  const std::string whole = bytes_of(rwkv());
  struct Case {
    const char* name;
    std::string bytes, says;
  };
  const Case cases[] = {
      {"empty.gguf", "", "not a GGUF file"},
      {"text.gguf", "Once upon a time", "not a GGUF file"},
      {"magic-only.gguf", "GGUF", "damaged or truncated"},
      {"header-cut.gguf", whole.substr(0, 1000), "damaged or truncated"},
      {"data-cut.gguf", whole.substr(0, whole.size() - 4096), "truncated: tensor"},
  };
  for (const Case& c : cases) {
    const auto path = folder / c.name;
    write(path, c.bytes);
    const auto index = GgufIndex::open(path);
    ASSERT_FALSE(index.has_value()) << c.name;
    EXPECT_TRUE(index.error().contains(c.says)) << index.error();
    EXPECT_TRUE(index.error().contains(path.string())) << index.error();
  }
  const auto missing = GgufIndex::open(folder / "none.gguf");
  ASSERT_FALSE(missing.has_value());
  EXPECT_TRUE(missing.error().contains("No such file")) << missing.error();
  EXPECT_FALSE(GgufIndex::open(folder.path()).has_value()) << "a folder is not a model";
}

TEST(GgufIndex, NamesMissingPart) {
  const TempFolder folder;
  const auto first = in_three_parts();
  const auto parts = GgufIndex::open(first)->files();
  for (const std::size_t part : {0U, 2U}) {
    std::filesystem::copy(parts[part].path, folder.path());
  }
  const auto index = GgufIndex::open(folder.path() / first.filename());
  ASSERT_FALSE(index.has_value());
  EXPECT_TRUE(index.error().contains("00002-of-00003")) << index.error();
  EXPECT_TRUE(index.error().contains("No such file")) << index.error();

  const auto third =
      GgufIndex::open(folder.path() / std::filesystem::path(parts[2].path).filename());
  ASSERT_FALSE(third.has_value());
  EXPECT_TRUE(third.error().contains("part 3 of 3")) << third.error();
  EXPECT_TRUE(third.error().ends_with(first.filename().string() + ".")) << third.error();

  std::filesystem::rename(folder.path() / first.filename(), folder / "renamed.gguf");
  const auto renamed = GgufIndex::open(folder / "renamed.gguf");
  ASSERT_FALSE(renamed.has_value());
  EXPECT_TRUE(renamed.error().contains("Restore the original file names")) << renamed.error();
}

TEST(CheckPatience, CountsBytesOfEveryPart) {
  const TempFolder folder;
  const auto first = in_three_parts();
  std::uint64_t bytes = 0;
  for (const ModelFile& part : GgufIndex::open(first)->files()) {
    std::filesystem::copy(part.path, folder.path());
    bytes += part.size;
  }
  const auto last =
      folder.path() / std::filesystem::path(GgufIndex::open(first)->files()[2].path).filename();
  constexpr std::uint64_t kMore = 40'000'000'000;
  std::filesystem::resize_file(last, std::filesystem::file_size(last) + kMore);  // sparse
  const auto patience = model_check_timeout(folder.path() / first.filename());
  EXPECT_EQ(patience,
            std::chrono::minutes(2) + std::chrono::milliseconds((bytes + kMore) / 10'000));
  EXPECT_EQ(model_check_timeout(folder / "none.gguf"), std::chrono::minutes(2));
}

// Random header bytes must not crash the reader.
TEST(GgufIndex, SurvivesDamagedHeaders) {
  const TempFolder folder;
  const std::string whole = bytes_of(rwkv());
  const std::uint64_t header = GgufIndex::open(rwkv())->tensors()[0].file.offset;
  int rejected = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::string bytes = whole.substr(0, header);
    for (int i = 0; i < 3; ++i) bytes[random() % header] = static_cast<char>(random());
    const auto path = folder / "damaged.gguf";
    write(path, bytes);
    std::filesystem::resize_file(path, whole.size());  // sparse: only the header matters
    const auto index = GgufIndex::open(path);
    if (!index) {
      ++rejected;
      EXPECT_FALSE(index.error().empty());
      continue;
    }
    for (const GgufTensor& tensor : index->tensors()) {
      ASSERT_LE(tensor.file.offset, index->files()[0].size);
      ASSERT_LE(tensor.file.length, index->files()[0].size - tensor.file.offset);
    }
  }
  std::printf("%d of 150 damaged headers rejected\n", rejected);
}

TEST(MappedFiles, FindsFileOfAddress) {
  const auto path = rwkv();
  const auto index = GgufIndex::open(path);
  const std::uint64_t size = index->files()[0].size;
  const std::string whole = bytes_of(path);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  constexpr std::uint64_t kFrom = 8192;
  auto* base = static_cast<char*>(
      ::mmap(nullptr, size - kFrom, PROT_READ, MAP_SHARED, file, static_cast<off_t>(kFrom)));
  ::close(file);
  ASSERT_NE(base, MAP_FAILED);
  // madvise splits a mapping into several lines of /proc/self/maps.
  ::madvise(base + 16384, 4096, MADV_RANDOM);
  const auto mapped = MappedFiles::of_this_process(index->files());
  const auto locate = [](const MappedFiles& files, const void* at, std::uint64_t length) {
    return files.locate(reinterpret_cast<std::uint64_t>(at), length);
  };
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{10'000}, size - kFrom - 64}) {
    const auto range = locate(mapped, base + at, 64);
    ASSERT_TRUE(range.has_value()) << at;
    EXPECT_EQ(range->file, 0U);
    EXPECT_EQ(range->offset, kFrom + at);
    EXPECT_EQ(range->length, 64U);
    EXPECT_EQ(std::string(base + at, 64), whole.substr(range->offset, 64));
  }
  EXPECT_TRUE(locate(mapped, base + 8192, 16384).has_value()) << "across two lines of the map";
  EXPECT_FALSE(locate(mapped, &size, sizeof size).has_value()) << "the stack is not in a model";
  EXPECT_FALSE(locate(mapped, base + size - kFrom, 1 << 20).has_value()) << "exceeds the file";
  ::munmap(base, size - kFrom);
  EXPECT_FALSE(locate(MappedFiles::of_this_process(index->files()), base, 64).has_value());
}

}  // namespace
}  // namespace tt::test
