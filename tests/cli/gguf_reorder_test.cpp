// tt analyze file-order against numpy, and tt gguf reorder against llama.cpp's own reader and
// program.
#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/exchange/rows/byte_sink.h"
#include "tests/cli/tt_program.h"
#include "tests/support/command_output.h"
#include "tests/support/small_disk.h"
#include "tracer/gguf/gguf_header.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/gguf/reordered_gguf.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A model m.gguf, and a session s.ttrace of some of its tokens.
void record(const test::TempFolder& folder, const std::string& shape) {
  ASSERT_EQ(run_tt(folder, "model " + shape + " -q -o m.gguf").code, 0);
  const Result recorded = run_tt(
      folder,
      "record -m m.gguf --no-repack -p 'Once upon' -n 6 -t 1 --temp 0 --ignore-eos -o s.ttrace");
  ASSERT_EQ(recorded.code, 0) << recorded.err;
}

Result reorder(const test::TempFolder& folder, const std::string& more = "") {
  return run_tt(folder, "gguf reorder m.gguf --by-use s.ttrace -o new.gguf " + more);
}

// The tensors of a file in the order of their offsets, read by llama.cpp.
std::vector<std::pair<std::string, std::string>> tensors_of(const fs::path& path) {
  ggml_context* data = nullptr;
  const GgufContext file(gguf_init_from_file(path.c_str(), {.no_alloc = false, .ctx = &data}));
  EXPECT_NE(file, nullptr);
  const GgmlContext owner(data);
  std::map<std::size_t, std::pair<std::string, std::string>> by_offset;
  for (std::int64_t i = 0; file != nullptr && i < gguf_get_n_tensors(file.get()); ++i) {
    const ggml_tensor* tensor = ggml_get_tensor(data, gguf_get_tensor_name(file.get(), i));
    std::string bytes(static_cast<const char*>(tensor->data), ggml_nbytes(tensor));
    bytes += std::format(" {} {} {} {}", ggml_type_name(tensor->type), tensor->ne[0], tensor->ne[1],
                         tensor->ne[2]);
    EXPECT_TRUE(by_offset
                    .emplace(gguf_get_tensor_offset(file.get(), i),
                             std::pair(std::string(tensor->name), std::move(bytes)))
                    .second);
  }
  std::vector<std::pair<std::string, std::string>> out;
  for (auto& [offset, tensor] : by_offset) out.push_back(std::move(tensor));
  return out;
}

std::vector<std::string> names_of(const std::vector<std::pair<std::string, std::string>>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : tensors) names.push_back(name);
  return names;
}

// The script was written with numpy from the documentation, and reads the accesses from SQL.
TEST(FileOrderAnalysis, EqualsNumpy) {
  for (const char* shape : {"small", "moe --experts 16"}) {
    SCOPED_TRACE(shape);
    const test::TempFolder folder;
    record(folder, shape);
    const auto save = [&](const char* file, const std::string& statement) {
      const Result rows = run_tt(folder, std::format("sql s.ttrace --csv \"{}\"", statement));
      ASSERT_EQ(rows.code, 0) << rows.err;
      std::ofstream(folder / file) << rows.out;
    };
    save("accesses.csv",
         "SELECT step, op, access, file_offset, file_bytes, expert_id, memory_source FROM access "
         "WHERE phase = 'generate' AND NOT write AND file_offset IS NOT NULL "
         "ORDER BY step, op, access, part");
    save("tensors.csv",
         "SELECT DISTINCT tensor_name, file_offset, file_bytes, ne2 FROM tensor "
         "WHERE view_of IS NULL AND file_offset IS NOT NULL");
    for (const std::uint64_t gap : {0U, 131072U}) {
      SCOPED_TRACE(gap);
      const json numpy = json::parse(test::command_output(
          std::format("cd {} && python3 {} accesses.csv tensors.csv {}", folder.path().string(),
                      source_path("tests/cli/file_order.py"), gap)));
      const json found =
          run_json(folder, std::format("analyze file-order s.ttrace gap={} limit=1000", gap));
      EXPECT_EQ(found["layouts"], numpy["layouts"]);
      ASSERT_EQ(found["layouts"].size(), std::string_view(shape) == "small" ? 2U : 3U);
      ASSERT_EQ(found["tensors"].size(), numpy["order"].size());
      EXPECT_GT(found["tensors"].size(), 50U);
      for (std::size_t i = 0; i < found["tensors"].size(); ++i) {
        EXPECT_EQ(found["tensors"][i]["tensor"], numpy["order"][i]);
        EXPECT_EQ(found["tensors"][i]["new_offset"], numpy["offsets"][i]);
      }
    }
  }
}

TEST(GgufReorder, KeepsMetadataAndBytesOfAllTensors) {
  for (const char* shape : {"small", "moe", "mamba"}) {
    SCOPED_TRACE(shape);
    const test::TempFolder folder;
    record(folder, shape);
    const json done = json::parse(reorder(folder, "--json").out);
    const auto before = tensors_of(folder / "m.gguf"), after = tensors_of(folder / "new.gguf");
    EXPECT_NE(names_of(after), names_of(before));
    EXPECT_EQ((std::map(before.begin(), before.end())), (std::map(after.begin(), after.end())));
    EXPECT_EQ(done["tensors"], after.size());
    EXPECT_EQ(done["files"][0]["tensors_xxh128"], done["files"][1]["tensors_xxh128"]);
    EXPECT_EQ(done["files"][1]["size"], fs::file_size(folder / "new.gguf"));

    const GgufHeader was = read_gguf_header(folder / "m.gguf").value();
    const std::string old_bytes = contents(folder / "m.gguf"),
                      bytes = contents(folder / "new.gguf");
    EXPECT_EQ(bytes.substr(0, was.records_offset), old_bytes.substr(0, was.records_offset));

    // The places that the analysis said, and all reads of a token of a dense model in order.
    const json said = run_json(folder, "analyze file-order s.ttrace limit=1000");
    std::map<std::string, std::uint64_t> offsets;
    for (const GgufTensorInfo& tensor : read_gguf_header(folder / "new.gguf").value().tensors)
      offsets[tensor.name] = tensor.offset;
    for (const json& tensor : said["tensors"])
      EXPECT_EQ(offsets[tensor["tensor"]], tensor["new_offset"]) << tensor;
    ASSERT_EQ(
        run_tt(folder,
               "record -m new.gguf --no-repack -p 'Once upon' -n 6 -t 1 --temp 0 --ignore-eos -o "
               "t.ttrace")
            .code,
        0);
    const json seen = run_json(folder, "analyze file-order t.ttrace");
    json expected = said["layouts"][1];
    expected["layout"] = "stored";
    EXPECT_EQ(seen["layouts"][0], expected) << "the what-if of the old file";
    EXPECT_EQ(done["used"], said["total"]);
    EXPECT_GT(expected["sequential"], said["layouts"][0]["sequential"]);
  }
}

TEST(GgufReorder, GivesTheSameTextInLlamaCpp) {
  for (const char* shape : {"small", "moe"}) {
    SCOPED_TRACE(shape);
    const test::TempFolder folder;
    record(folder, shape);
    ASSERT_EQ(reorder(folder).code, 0);
    // The program writes in a thread and does not wait for it: the end of a text may be missing, on
    // a busy machine all of it.
    const auto text_of = [&](const char* model) {
      std::string text;
      for (int i = 0; i < 20 && text.size() <= 40; ++i)
        text = test::command_output(
            std::format("cd {} && (llama-completion -m {} -p 'Once upon a time' -n 24 --temp 0 "
                        "--ignore-eos -no-cnv -t 1 2>/dev/null)",
                        folder.path().string(), model));
      return text;
    };
    const std::string text = text_of("m.gguf"), again = text_of("new.gguf");
    const std::size_t length = std::min(text.size(), again.size());
    EXPECT_GT(length, 40U);
    EXPECT_EQ(again.substr(0, length), text.substr(0, length));
  }
}

// Tensors that are not in the list keep their order, after those that are.
TEST(GgufReorder, KeepsOtherTensorsInOrder) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model small --layers 2 -q -o m.gguf").code, 0);
  const auto plan = ReorderedGguf::plan(
      folder / "m.gguf", std::vector<std::string>{"blk.1.attn_norm.weight", "output_norm.weight"});
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  std::string bytes;
  const auto hashes = plan->write(
      [&](std::string_view block) {
        bytes += block;
        return Status{};
      },
      {});
  ASSERT_TRUE(hashes.has_value());
  EXPECT_EQ(bytes.size(), plan->bytes());
  std::ofstream(folder / "out.gguf") << bytes;
  const auto before = tensors_of(folder / "m.gguf"), after = tensors_of(folder / "out.gguf");
  std::vector<std::string> expected = {"blk.1.attn_norm.weight", "output_norm.weight"};
  for (const auto& [name, data] : before)
    if (!std::ranges::contains(expected, name)) expected.push_back(name);
  EXPECT_EQ(names_of(after), expected);
  EXPECT_EQ((std::map(before.begin(), before.end())), (std::map(after.begin(), after.end())));
  for (const GgufTensorInfo& tensor : read_gguf_header(folder / "out.gguf").value().tensors)
    EXPECT_EQ(tensor.offset % 32, 0U) << tensor.name;
  EXPECT_EQ(tensor_hashes(folder / "out.gguf", {}).value(), *hashes);
  EXPECT_EQ(tensor_hashes(folder / "m.gguf", {}).value(), *hashes);
}

// One bit of a tensor is another hash; its name is part of it, too.
TEST(GgufReorder, HashesEveryByte) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model small --layers 1 -q -o m.gguf").code, 0);
  const TensorHashes sound = tensor_hashes(folder / "m.gguf", {}).value();
  for (const GgufTensorInfo& tensor : read_gguf_header(folder / "m.gguf").value().tensors) {
    std::string bytes = contents(folder / "m.gguf");
    bytes[tensor.offset + tensor.size - 1] ^= 1;
    std::ofstream(folder / "bad.gguf") << bytes;
    TensorHashes changed = tensor_hashes(folder / "bad.gguf", {}).value();
    EXPECT_NE(hash_of(changed), hash_of(sound));
    EXPECT_NE(changed[tensor.name], sound.at(tensor.name)) << tensor.name;
    changed[tensor.name] = sound.at(tensor.name);
    EXPECT_EQ(changed, sound);
  }
  TensorHashes renamed = sound;
  std::swap(renamed.begin()->second, std::next(renamed.begin())->second);
  EXPECT_NE(hash_of(renamed), hash_of(sound));
}

// Cancelled after each part of the work: no file is left.
TEST(GgufReorder, LeavesNoFileIfCancelled) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model small --layers 1 -q -o m.gguf").code, 0);
  const auto plan = ReorderedGguf::plan(folder / "m.gguf", {});
  ASSERT_TRUE(plan.has_value());
  int calls = 0;
  const auto cancelled_at = [&](int call) {
    calls = 0;
    auto file = exchange::OutputFile::create(folder / "new.gguf");
    const auto done =
        plan->write(file->sink(), [&](std::uint64_t, std::uint64_t) { return ++calls != call; });
    EXPECT_TRUE(fs::exists(folder / "new.gguf-new"));
    return !done && done.error().kind == TraceError::Kind::Cancelled;
  };
  EXPECT_FALSE(cancelled_at(0));
  const int all = calls;
  EXPECT_GT(all, 10);
  for (int call = 1; call <= all; ++call) {
    EXPECT_TRUE(cancelled_at(call));
    EXPECT_EQ(calls, call);
    EXPECT_FALSE(fs::exists(folder / "new.gguf-new"));
  }
  EXPECT_FALSE(fs::exists(folder / "new.gguf"));
}

TEST(GgufReorder, RefusesWhatItCannotDo) {
  const test::TempFolder folder;
  record(folder, "small --layers 2");
  ASSERT_EQ(run_tt(folder, "model small --layers 2 --splits 2 -q -o parts.gguf").code, 0);
  ASSERT_EQ(run_tt(folder, "model mamba --layers 1 -q -o other.gguf").code, 0);
  ASSERT_EQ(run_tt(folder, "model bert --layers 1 -q -o bert.gguf").code, 0);
  ASSERT_EQ(run_tt(folder, "record -m bert.gguf -p Hello -t 1 -o bert.ttrace").code, 0);
  const std::string model = contents(folder / "m.gguf"), session = contents(folder / "s.ttrace");
  std::ofstream(folder / "short.gguf") << model.substr(0, model.size() - 4096);
  std::ofstream(folder / "there.gguf") << "there";
  const struct {
    std::string arguments, message;
    int code = 1;
  } cases[] = {
      {"m.gguf --by-use s.ttrace -o there.gguf", "there.gguf already exists"},
      {"m.gguf --by-use s.ttrace -o m.gguf --force", "is the same file as the input m.gguf"},
      {"m.gguf --by-use s.ttrace -o s.ttrace --force", "is the same file as the input s.ttrace"},
      {"m.gguf --by-use s.ttrace -o none/new.gguf", "does not exist. Create it"},
      {"parts-00001-of-00002.gguf --by-use s.ttrace -o new.gguf",
       "is one of the parts of a split model. Join them first: llama-gguf-split --merge"},
      {"other.gguf --by-use s.ttrace -o new.gguf",
       "which s.ttrace uses. Record a session of this model."},
      {"m.gguf --by-use bert.ttrace -o new.gguf", "bert.ttrace has no generated token"},
      {"short.gguf --by-use s.ttrace -o new.gguf", "short.gguf: truncated"},
      {"m.gguf --by-use m.gguf -o new.gguf", "m.gguf"},
      {"none.gguf --by-use s.ttrace -o new.gguf", "No such file"},
      {"m.gguf -o new.gguf", "tt gguf reorder: --by-use is required", 2},
      {"m.gguf --by-use s.ttrace", "tt gguf reorder: --output is required", 2},
      {"", "tt gguf reorder: model is required", 2},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.arguments);
    const Result result = run_tt(folder, "gguf reorder " + c.arguments);
    EXPECT_EQ(result.code, c.code);
    EXPECT_TRUE(result.err.contains(c.message)) << result.err;
    EXPECT_TRUE(result.err.starts_with("tt gguf reorder: ")) << result.err;
    EXPECT_FALSE(fs::exists(folder / "new.gguf"));
    EXPECT_FALSE(fs::exists(folder / "new.gguf-new"));
  }
  EXPECT_EQ(contents(folder / "m.gguf"), model);
  EXPECT_EQ(contents(folder / "s.ttrace"), session);
  EXPECT_EQ(contents(folder / "there.gguf"), "there");
  EXPECT_EQ(run_tt(folder, "gguf reorder m.gguf --by-use s.ttrace -o there.gguf --force").code, 0);
  EXPECT_GT(fs::file_size(folder / "there.gguf"), 5U);
  // The verb without the part: its own errors and help.
  EXPECT_TRUE(run_tt(folder, "gguf").err.starts_with("tt gguf: model is required"));
  EXPECT_EQ(run_tt(folder, "help gguf reorder").out, run_tt(folder, "gguf reorder --help").out);
}

TEST(GgufReorder, ChecksTheSpaceBefore) {
  const test::TempFolder folder;
  record(folder, "small --layers 2");
  const test::SmallDisk disk(1);
  ASSERT_EQ(disk.problem(), "");
  const fs::path output = disk / "new.gguf";
  const Result result =
      run_tt(folder, "gguf reorder m.gguf --by-use s.ttrace -o " + output.string());
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(result.err.contains("left. Choose a folder on another disk.")) << result.err;
  EXPECT_FALSE(fs::exists(output.string() + "-new"));
}

}  // namespace
}  // namespace tt
