// tt compare --values of runs whose kernels differ, against numpy.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/tt_program.h"
#include "tests/support/command_output.h"

namespace tt {
namespace {

using nlohmann::json;

class ComparedRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_tt(folder_, "model small --layers 2 -q -o a.gguf").code, 0);
    record("left", "a.gguf -t 1");
  }
  void record(const std::string& name, const std::string& options,
              const std::string& environment = "") {
    const Result result = run_tt(
        folder_,
        std::format("record -m {} -p 'Once upon a time there was' -n 2 --temp 0 --ignore-eos "
                    "-q --capture '.*' -o {}.ttrace",
                    options, name),
        environment);
    ASSERT_EQ(result.code, 0) << result.err;
    ASSERT_EQ(
        run_tt(folder_, std::format("values {0}.ttrace --safetensors {0}.safetensors", name)).code,
        0);
  }
  // What tt compare --values says of the run and the left one; numpy says the same.
  json compared(const std::string& name, double tolerance) {
    const json ours = run_json(folder_, std::format("compare --values left.ttrace {}.ttrace "
                                                    "--tolerance {} --limit 100000",
                                                    name, tolerance));
    const json numpy = json::parse(test::command_output(std::format(
        "cd '{}' && python3 {} left.safetensors {}.safetensors {}", folder_.path().string(),
        source_path("tests/cli/first_difference.py"), name, tolerance)));
    EXPECT_EQ(ours["total"], numpy["compared"]);
    EXPECT_EQ(ours["different"], numpy["different"]);
    const json &first = ours["first_beyond"], &theirs = numpy["first"];
    EXPECT_EQ(first.is_null(), theirs.is_null());
    if (first.is_null() || theirs.is_null()) return ours;
    for (const char* field : {"step", "op", "tensor_name"})
      EXPECT_EQ(first[field], theirs[field]) << field;
    if (first["same_shape"] != false) {
      EXPECT_EQ(first["max_error"].get<double>(), theirs["max_error"].get<double>());
      EXPECT_NEAR(first["relative_error"].get<double>(), theirs["relative_error"].get<double>(),
                  1e-9 * theirs["relative_error"].get<double>());
    }
    return ours;
  }
  // The first op of the left run for which the condition holds.
  std::uint64_t first_op(const std::string& condition) {
    const json rows =
        run_json(folder_, "sql left.ttrace \"SELECT min(op) FROM access WHERE step = 0 AND " +
                              condition + "\"")["rows"];
    return rows[0][0].is_null() ? UINT64_MAX : rows[0][0].get<std::uint64_t>();
  }
  const test::TempFolder folder_;
};

TEST_F(ComparedRuns, OfTheSameKernelsAreEqual) {
  record("again", "a.gguf -t 1");
  EXPECT_EQ(compared("again", 1e-9)["different"], 0);
}

// How ops are divided over threads may change the order of sums, nothing else.
TEST_F(ComparedRuns, OfOtherThreadsDifferByRoundingAtMost) {
  record("threads", "a.gguf -t 2");
  compared("threads", 1e-9);
  EXPECT_EQ(compared("threads", 1e-5)["first_beyond"], nullptr);
}

// Repacked weights have kernels of their own: the first op that differs is the first that reads
// one.
TEST_F(ComparedRuns, WithoutRepackingDifferFirstWhereARepackedWeightIsRead) {
  record("plain", "a.gguf -t 1 --no-repack");
  const std::uint64_t repacked = first_op("memory_source = 'repacked'");
  if (repacked == UINT64_MAX) GTEST_SKIP() << "this processor has no kernel for repacked weights";
  const json found = compared("plain", 1e-9);
  ASSERT_TRUE(found["first_beyond"].is_object());
  EXPECT_GE(found["first_beyond"]["op"].get<std::uint64_t>(), repacked);
  EXPECT_EQ(found["first_beyond"]["operation_type"], "MUL_MAT");
  EXPECT_EQ(compared("plain", 0.1)["first_beyond"], nullptr);
}

// The first op that differs writes to the cache, or reads from it.
TEST_F(ComparedRuns, OfAnotherCacheTypeDifferFirstAtTheCache) {
  record("cache", "a.gguf -t 1 --cache-type-k q4_0");
  const json found = compared("cache", 1e-4);
  ASSERT_TRUE(found["first_beyond"].is_object());
  EXPECT_EQ(found["first_beyond"]["op"].get<std::uint64_t>(),
            first_op(std::format("op >= {} AND tensor_kind = 'kv'",
                                 found["first_beyond"]["op"].get<std::uint64_t>())));
  EXPECT_EQ(found["first_beyond"]["layer_id"], 0);
}

// The first op that reads a weight whose type differs.
TEST_F(ComparedRuns, OfAnotherQuantizationDifferFirstWhereItsTypeIsRead) {
  test::command_output(std::format(
      "cd '{}' && llama-quantize --allow-requantize --tensor-type 'blk\\.1\\.ffn_up=q8_0' a.gguf "
      "b.gguf Q4_K_M",
      folder_.path().string()));
  // Only this tensor, and those whose types the program chooses otherwise.
  std::string changed;
  std::map<std::string, json> types;
  for (const json& tensor : run_json(folder_, "gguf a.gguf")["tensors"])
    types[tensor["name"]] = tensor["type"];
  for (const json& tensor : run_json(folder_, "gguf b.gguf")["tensors"])
    if (types.at(tensor["name"]) != tensor["type"])
      changed +=
          std::format("{}'{}'", changed.empty() ? "" : ", ", tensor["name"].get<std::string>());
  ASSERT_TRUE(changed.contains("blk.1.ffn_up.weight")) << changed;
  record("quantized", "b.gguf -t 1");
  const json found = compared("quantized", 1e-5);
  ASSERT_TRUE(found["first_beyond"].is_object());
  EXPECT_EQ(found["first_beyond"]["op"].get<std::uint64_t>(),
            first_op(std::format("tensor_name IN ({})", changed)));
}

// A fault of one kernel is found as the first op: see wrong_rotation.cpp.
TEST_F(ComparedRuns, FirstDifferenceIsTheOpWithAFaultyKernel) {
  record("wrong", "a.gguf -t 1", std::format("LD_PRELOAD='{}'", TT_WRONG_ROTATION));
  const json found = compared("wrong", 1e-5);
  ASSERT_TRUE(found["first_beyond"].is_object());
  EXPECT_EQ(found["first_beyond"]["operation_type"], "ROPE");
  EXPECT_EQ(found["first_beyond"]["layer_id"], 0);
  EXPECT_EQ(found["first_beyond"]["op"].get<std::uint64_t>(), first_op("operation_type = 'ROPE'"));
  EXPECT_LT(found["first_beyond"]["relative_error"], 0.002);
  for (const json& output : found["outputs"])
    if (output["step"] == 0 && output["op"] < found["first_beyond"]["op"]) {
      EXPECT_EQ(output["max_error"], 0) << output;
    }
}

}  // namespace
}  // namespace tt
