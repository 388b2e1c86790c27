// What is recognised instead of "damaged": each file with its kind, tensor, value and advice.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/support/models/tensor_entry.h"
#include "tests/support/temp_folder.h"
#include "tracer/gguf/gguf_header.h"
#include "tracer/modelgen/model_writer.h"

namespace tt {
namespace {

using namespace std::string_literals;
using test::TempFolder;
using test::TensorEntry;
using Kind = GgufFault::Kind;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::filesystem::path write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string small_model() {
  static const std::string bytes = [] {
    const TempFolder folder;
    modelgen::ModelSpec spec;
    spec.shape = "small";
    spec.dims.layers = 2;
    const auto made = modelgen::write_model(spec, folder / "small.gguf");
    EXPECT_TRUE(made.has_value());
    return bytes_of(folder / "small.gguf");
  }();
  return bytes;
}

TEST(GgufFaults, OtherFormatsAreNamed) {
  struct Case {
    const char* name;
    std::string bytes;
    Kind kind;
    const char *says, *advises;
  };
  const Case cases[] = {
      {"empty.gguf", "", Kind::Incomplete, "it is empty", "Download"},
      {"zeros.gguf", std::string(9000, '\0'), Kind::Incomplete, "begins with zeros", "Download"},
      {"x.gguf.part", "", Kind::Incomplete, "empty", "the download has not finished"},
      {"x.gguf.crdownload", std::string(50, '\0'), Kind::Incomplete, "zeros",
       "the download has not finished"},
      {"lfs.gguf",
       "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 4081004224\n",
       Kind::OtherFormat,
       "a Git LFS pointer, not the model: the file itself has 4081004224 bytes "
       "(oid sha256:4d7a21)",
       "git lfs pull"},
      {"page.gguf", "\n<!DOCTYPE html>\n<html><title>Log in</title>", Kind::OtherFormat,
       "a web page (HTML)", "may need a login"},
      {"page2.gguf", "<HTML><body>", Kind::OtherFormat, "a web page (HTML)", "link"},
      {"s3.gguf", "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>", Kind::OtherFormat,
       "an XML text", "login"},
      {"error.gguf", R"({"error":"Repository not found"})", Kind::OtherFormat,
       R"(a JSON text, not a GGUF file. It begins with "{"error":"Repository not found"}")",
       "login"},
      {"text.gguf", "Entry not found", Kind::OtherFormat, "\"Entry not found\"", "link"},
      {"m.safetensors", "\x40\0\0\0\0\0\0\0{\"a\":1}"s, Kind::OtherFormat, "a safetensors file",
       "convert_hf_to_gguf.py"},
      {"m.bin", "PK\x03\x04"s + std::string(26, '\0') + "archive/data.pkl", Kind::OtherFormat,
       "a PyTorch file", "convert_hf_to_gguf.py"},
      {"m.pt", "\x80\x02}q"s, Kind::OtherFormat, "a PyTorch file", "convert_hf_to_gguf.py"},
      {"m.zip", "PK\x03\x04"s + std::string(26, '\0') + "m.gguf", Kind::OtherFormat,
       "a zip archive", "Unpack"},
      {"m.gz", "\x1F\x8B\x08\0"s, Kind::OtherFormat, "a gzip archive", "Unpack"},
      {"m.zst", "\x28\xB5\x2F\xFD\0"s, Kind::OtherFormat, "a zstd archive", "Unpack"},
      {"ggml.bin", "lmgg\0\0\0\0"s, Kind::OtherFormat, "the old format GGML", "as GGUF"},
      {"ggjt.bin", "tjgg\x03\0\0\0"s, Kind::OtherFormat, "the old format GGJT", "as GGUF"},
      {"noise.gguf", "\x01\x02\x03\xFF\xFE\x80 noise", Kind::OtherFormat, "does not start with",
       "Give the path"},
  };
  const TempFolder folder;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto contents = inspect_gguf(write(folder / c.name, c.bytes));
    ASSERT_EQ(contents.faults.size(), 1U);
    const GgufFault& fault = contents.faults[0];
    EXPECT_EQ(fault.kind, c.kind) << fault.message;
    EXPECT_TRUE(fault.message.contains(c.says)) << fault.message;
    EXPECT_TRUE(fault.message.contains(c.advises)) << fault.message;
    EXPECT_TRUE(fault.message.starts_with((folder / c.name).string())) << fault.message;
    EXPECT_FALSE(fault.message.contains("damaged")) << fault.message;
  }
  // aria2 keeps a file beside the download.
  write(folder / "zeros.gguf.aria2", "x");
  EXPECT_TRUE(inspect_gguf(folder / "zeros.gguf")
                  .faults[0]
                  .message.contains("zeros.gguf.aria2 exists: the download has not finished"));
}

TEST(GgufFaults, FolderSaysWhatIsInIt) {
  const TempFolder folder;
  const auto message = [&] { return inspect_gguf(folder.path()).faults.at(0).message; };
  EXPECT_TRUE(message().contains("a folder, not a regular file")) << message();
  write(folder / "config.json", "{}");
  EXPECT_TRUE(message().contains("convert_hf_to_gguf.py")) << message();
  write(folder / "model.GGUF", "x");
  EXPECT_TRUE(message().contains((folder / "model.GGUF").string())) << message();
}

TEST(GgufFaults, UnknownTypeIsListedWithItsNumberAndSize) {
  const TempFolder folder;
  std::string bytes = small_model();
  const auto sound = inspect_gguf(write(folder / "sound.gguf", bytes));
  ASSERT_TRUE(sound.faults.empty());
  constexpr std::size_t kTensor = 5;
  const GgufTensorInfo& tensor = sound.header.tensors.at(kTensor);
  TensorEntry(bytes, tensor.name).set_type(144);
  const auto found = inspect_gguf(write(folder / "fork.gguf", bytes));
  ASSERT_EQ(found.faults.size(), 1U);
  const GgufFault& fault = found.faults[0];
  EXPECT_EQ(fault.kind, Kind::UnknownType);
  EXPECT_EQ(fault.tensor, tensor.name);
  EXPECT_EQ(fault.value, "144");
  EXPECT_TRUE(fault.message.contains("tensor " + tensor.name + " has the type 144"))
      << fault.message;
  EXPECT_TRUE(fault.message.contains("Downloading the file again does not help")) << fault.message;
  ASSERT_EQ(found.header.tensors.size(), sound.header.tensors.size());
  EXPECT_EQ(found.header.tensors[kTensor].type, "?144");
  EXPECT_EQ(found.header.tensors[kTensor].size,
            sound.header.tensors[kTensor + 1].offset - tensor.offset);
  // The last tensor extends to the end of the file.
  bytes = small_model();
  const GgufTensorInfo& last = sound.header.tensors.back();
  TensorEntry(bytes, last.name).set_type(337);
  const auto at_end = inspect_gguf(write(folder / "end.gguf", bytes));
  EXPECT_EQ(at_end.header.tensors.back().size, bytes.size() - last.offset);
  // A number that no fork uses is damage.
  bytes = small_model();
  TensorEntry(bytes, tensor.name).set_type(0x7F000001);
  EXPECT_EQ(inspect_gguf(write(folder / "damaged.gguf", bytes)).faults.at(0).kind, Kind::Damaged);
}

TEST(GgufFaults, DuplicatesOverlapsAndGapsNameTheTensor) {
  const TempFolder folder;
  const std::string first = "blk.0.attn_q.weight", second = "blk.1.attn_q.weight";
  std::string bytes = small_model();
  TensorEntry(bytes, second).set_name(first);
  const auto twice = inspect_gguf(write(folder / "twice.gguf", bytes)).faults.at(0);
  EXPECT_EQ(twice.kind, Kind::Duplicate);
  EXPECT_EQ(twice.tensor, first);
  EXPECT_TRUE(twice.message.contains("tensor " + first + " is listed twice")) << twice.message;

  bytes = small_model();
  const std::uint64_t inside = TensorEntry(bytes, first).offset() + 32;
  TensorEntry(bytes, second).set_offset(inside);
  const auto overlap = inspect_gguf(write(folder / "overlap.gguf", bytes)).faults.at(0);
  EXPECT_EQ(overlap.kind, Kind::Misplaced);
  EXPECT_EQ(overlap.tensor, second);
  EXPECT_EQ(overlap.value, std::to_string(inside));
  EXPECT_TRUE(overlap.message.contains("inside tensor " + first)) << overlap.message;
  EXPECT_TRUE(overlap.message.contains("overlap")) << overlap.message;

  bytes = small_model();
  TensorEntry(bytes, second).set_offset(TensorEntry(bytes, second).offset() + 8);
  const auto odd = inspect_gguf(write(folder / "odd.gguf", bytes)).faults.at(0);
  EXPECT_EQ(odd.kind, Kind::Misplaced);
  EXPECT_TRUE(odd.message.contains("expects it at byte")) << odd.message;
}

// As many as a header may have. Each of them would be compared with all others.
TEST(GgufFaults, OnlyTheFirstOfManyMisplacedTensorsAreListed) {
  const TempFolder folder;
  constexpr std::uint64_t kTensors = 1U << 16;
  std::string bytes = "GGUF";
  const auto number = [&](auto value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  number(std::uint32_t{3});
  number(kTensors);
  number(std::uint64_t{0});
  for (std::uint64_t i = 0; i < kTensors; ++i) {
    const std::string name = std::format("t{}", i);
    number(std::uint64_t{name.size()});
    bytes += name;
    number(std::uint32_t{1});
    number(std::int64_t{8});
    number(std::int32_t{0});     // f32
    number(std::uint64_t{512});  // all at one place
  }
  bytes.resize(bytes.size() + 4096);
  const auto contents = inspect_gguf(write(folder / "many.gguf", bytes));
  EXPECT_EQ(contents.header.tensors.size(), kTensors);
  ASSERT_EQ(contents.faults.size(), GgufContents::kMaxFaults);
  for (std::size_t i = 0; i < contents.faults.size(); ++i) {
    EXPECT_EQ(contents.faults[i].kind, Kind::Misplaced);
    EXPECT_EQ(contents.faults[i].tensor, std::format("t{}", i));
  }
}

TEST(GgufFaults, BigEndianFileIsRecognised) {
  const TempFolder folder;
  std::string bytes = small_model();
  std::swap(bytes[4], bytes[7]);  // the version
  const auto fault = inspect_gguf(write(folder / "big.gguf", bytes)).faults.at(0);
  EXPECT_EQ(fault.kind, Kind::ByteOrder);
  EXPECT_TRUE(fault.message.contains("big-endian")) << fault.message;
  EXPECT_TRUE(fault.message.contains("s390x")) << fault.message;
}

TEST(GgufFaults, SecondFileBehindTheTensorsIsANote) {
  const TempFolder folder;
  const std::string bytes = small_model();
  const auto joined = inspect_gguf(write(folder / "two.gguf", bytes + bytes));
  ASSERT_EQ(joined.faults.size(), 1U);
  EXPECT_EQ(joined.faults[0].kind, Kind::SecondFile);
  EXPECT_EQ(joined.faults[0].value, std::to_string(bytes.size()));
  EXPECT_TRUE(joined.faults[0].is_note());
  EXPECT_TRUE(read_gguf_header(folder / "two.gguf").has_value()) << "llama.cpp loads the first";
  EXPECT_TRUE(inspect_gguf(write(folder / "tail.gguf", bytes + "tail")).faults.empty());
}

TEST(GgufFaults, TruncationAndHolesOfDownloads) {
  const TempFolder folder;
  const std::string bytes = small_model();
  const std::string half = bytes.substr(0, bytes.size() / 2);
  const auto says = [&](const char* name) {
    const auto contents = inspect_gguf(write(folder / name, half));
    EXPECT_EQ(contents.faults.at(0).kind, Kind::Truncated);
    return contents.faults.at(0).message;
  };
  EXPECT_TRUE(says("m.gguf").contains("Download or copy it again")) << says("m.gguf");
  EXPECT_TRUE(says("m.gguf.part").contains("has not finished"));
  EXPECT_TRUE(says("m.gguf.part1of2").contains("join all pieces with cat"));
  EXPECT_TRUE(says("m.gguf-split-a").contains("join all pieces with cat"));
  EXPECT_TRUE(says("m.gguf.aa").contains("join all pieces with cat"));

  // The whole size is reserved, but only a part was written.
  modelgen::ModelSpec spec;
  spec.shape = "small";
  spec.quant = "f32";
  ASSERT_TRUE(modelgen::write_model(spec, folder / "large.gguf").has_value());
  const std::string large = bytes_of(folder / "large.gguf");
  const auto sparse = write(folder / "sparse.gguf", large.substr(0, large.size() / 2));
  std::filesystem::resize_file(sparse, large.size());
  const auto contents = inspect_gguf(sparse);
  ASSERT_EQ(contents.faults.size(), 1U);
  EXPECT_EQ(contents.faults[0].kind, Kind::Holes);
  EXPECT_TRUE(contents.faults[0].is_note());
}

}  // namespace
}  // namespace tt
