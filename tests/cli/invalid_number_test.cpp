// Where the first NaN of a run appears, as tt show says and as the session's statistics
// have it, with damaged weights of a real model.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tracer/gguf/gguf_index.h"

namespace tt {
namespace {

using nlohmann::json;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class InvalidNumber : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_tt(folder_, "model small --layers 3 --quant f32 -q -o a.gguf").code, 0);
  }
  // Writes the value over the first elements of a weight.
  void damage(const std::string& weight, float value, std::size_t elements) {
    const auto index = GgufIndex::open(folder_ / "a.gguf");
    ASSERT_TRUE(index.has_value());
    std::fstream file(folder_ / "a.gguf", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(index->find(weight)->file.offset));
    for (std::size_t i = 0; i < elements; ++i)
      file.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  Result record(const std::string& options) {
    return run_tt(folder_,
                  "record -m a.gguf -p 'Once upon a time' -n 3 -t 1 --temp 0 -q --force "
                  "-o s.ttrace " +
                      options);
  }
  std::string shown() { return run_tt(folder_, "show s.ttrace").out; }
  // The first op whose output has more than 0 in this column.
  json first_op(const std::string& column) {
    return run_json(folder_, "sql s.ttrace \"SELECT op, tensor_name, operation_type, " + column +
                                 " FROM op WHERE " + column +
                                 " > 0 ORDER BY step, op LIMIT 1\"")["rows"][0];
  }
  const test::TempFolder folder_;
};

TEST_F(InvalidNumber, IsFoundWithTheWeightThatMadeIt) {
  damage("blk.1.ffn_up.weight", kNan, 1);
  const Result failed = record("--level verbose");
  EXPECT_NE(failed.code, 0);
  EXPECT_TRUE(failed.err.contains("name the op of the first one")) << failed.err;
  const json op = first_op("output_nan");
  const std::string said = shown();
  EXPECT_TRUE(said.contains("is in " + op[1].get<std::string>() + " (op " + op[0].dump() + ", "))
      << said;
  EXPECT_TRUE(said.contains(" of layer 1) in step 0: " + op[3].dump() + " of ")) << said;
  EXPECT_TRUE(said.contains("blk.1.ffn_up.weight")) << said;
  EXPECT_FALSE(said.contains("blk.0.") || said.contains("blk.2.")) << said;
  // The debugger, which sees every op.
  const Result debugged = run_tt(folder_, "debug a.gguf -t 1 -n 3",
                                 "printf 'break if nan\\nrun Once upon a time\\nquit\\n' |");
  EXPECT_TRUE(debugged.out.contains("ffn_up-1")) << debugged.out << debugged.err;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(said, match, std::regex("one of the ops (\\d+) to (\\d+)")))
      << said;
  const json up = run_json(
      folder_, "sql s.ttrace \"SELECT op FROM op WHERE tensor_name = 'ffn_up-1'\"")["rows"][0][0];
  EXPECT_GE(up, std::stoi(match[1]));
  EXPECT_LE(up, std::stoi(match[2]));
}

// The NaN appears later, when a norm multiplies infinity by 0.
TEST_F(InvalidNumber, IsFoundAsInfinityBefore) {
  damage("blk.1.attn_output.weight", std::numeric_limits<float>::infinity(), 1);
  record("--level verbose");
  const json nan = first_op("output_nan"), inf = first_op("output_inf");
  ASSERT_LT(inf[0], nan[0]);
  const std::string said = shown();
  EXPECT_TRUE(said.contains("is in " + inf[1].get<std::string>() + " (op " + inf[0].dump() + ", "))
      << said;
  EXPECT_TRUE(said.contains(" are infinite") && said.contains("blk.1.attn_output.weight")) << said;
}

// −∞ in the mask of attention, with and without flash attention, is no invalid number.
TEST_F(InvalidNumber, SoundRunsHaveNone) {
  for (const char* attention : {"on", "off"}) {
    ASSERT_EQ(record(std::string("--level verbose -fa ") + attention).code, 0);
    EXPECT_FALSE(shown().contains("invalid number of the run")) << attention;
  }
  // NaN in a weight that is only read for a token which the run has not.
  damage("token_embd.weight", kNan, 1);
  ASSERT_EQ(record("--level verbose").code, 0);
  EXPECT_FALSE(shown().contains("invalid number of the run"));
}

TEST_F(InvalidNumber, NeedsTheStatistics) {
  damage("blk.1.ffn_up.weight", kNan, 1);
  record("");
  const std::string said = shown();
  EXPECT_FALSE(said.contains("invalid number of the run"));
  EXPECT_TRUE(said.contains("The run ended because the model computed an invalid number")) << said;
  EXPECT_TRUE(said.contains("At level detailed the values of the ops were not recorded.")) << said;
}

}  // namespace
}  // namespace tt
