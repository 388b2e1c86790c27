// The byte rules against the kernels: for every op, the derived accesses of a small graph must
// sum to exactly what the real CPU backend reads and writes.
#include <ggml-backend.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/tracer/format/access/op_cases.h"
#include "tests/tracer/format/access/op_coverage.h"
#include "tracer/format/access/access.h"

namespace tt::test {

void PrintTo(const TouchedBytes& bytes, std::ostream* out) {
  for (const auto& [name, n] : bytes.read) *out << "\n  reads " << n << " of " << name;
  for (const auto& [name, n] : bytes.written) *out << "\n  writes " << n << " of " << name;
}

namespace {

// The slot values that the probe would have recorded.
SlotValues slot_values(const Slot& slot, const ggml_tensor& tensor) {
  SlotValues values;
  if (slot.kind != SlotKind::AttendedCells) {
    if (tensor.type == GGML_TYPE_I32 || tensor.type == GGML_TYPE_I64) {
      values.ints = OpScene::integers(tensor);
    }
    return values;
  }
  for (std::int64_t cell = 0; cell < tensor.ne[0]; ++cell) {
    for (std::int64_t query = 0; query < tensor.ne[1]; ++query) {
      const char* p = static_cast<const char*>(tensor.data) +
                      static_cast<std::size_t>(cell) * tensor.nb[0] +
                      static_cast<std::size_t>(query) * tensor.nb[1];
      if (ggml_fp16_to_fp32(*reinterpret_cast<const ggml_fp16_t*>(p)) == 0.0f) {
        values.ints.push_back(cell);
        break;
      }
    }
  }
  return values;
}

// The bytes per root tensor according to the byte rules.
TouchedBytes bytes_by_rules(const OpScene& scene) {
  const ProbedGraph built = built_from(scene);
  Step step;
  step.op_ends.resize(built.graph.ops.size());
  for (const Slot& slot : built.graph.slots) {
    step.slots.push_back(slot_values(slot, *built.tensors[slot.tensor.v]));
  }
  TouchedBytes out;
  const std::vector<Access> accesses = accesses_of(built.graph);
  for_each_access(built.graph, accesses, step, [&](const StepAccess& access) {
    const std::string& name = built.graph.tensor(built.graph.root(access.tensor)).name;
    (access.write ? out.written : out.read)[name] += access.touched.v;
  });
  return out;
}

class KernelBytes : public ::testing::TestWithParam<OpCase> {};

TEST_P(KernelBytes, DerivedBytesMatchKernel) {
  OpScene scene(cpu_backend());
  scene.finish(GetParam().build(scene));
  const TouchedBytes really = scene.touched();  // runs the op, so indices are in memory
  EXPECT_EQ(bytes_by_rules(scene), really);
}

// With 64 queries or more the CPU kernel works in tiles of 64 cells and loads a whole tile if
// any query attends to one of its cells. The attended cells are a property of the model, the
// extra loads one of the kernel. The rule counts attended cells; this test bounds the
// difference.
TEST(KernelBytesOfLongPrompts, AttentionReadsAtMostTilesOfAttendedCells) {
  OpScene scene(cpu_backend());
  constexpr std::int64_t kCells = 192, kAttended = 70, kTile = 64, kCellBytes = 16;
  scene.finish(ggml_flash_attn_ext(
      scene.ctx(), scene.f32("q", {8, 64, 1}), scene.f16("k", {8, kCells, 1}),
      scene.f16("v", {8, kCells, 1}),
      scene.mask("mask", GGML_TYPE_F16, {kCells, 64},
                 [](std::int64_t cell, std::int64_t query) { return cell <= query + 6; }),
      0.25f, 0.0f, 0.0f));
  const TouchedBytes really = scene.touched({"k", "v"});
  const TouchedBytes rule = bytes_by_rules(scene);
  for (const char* tensor : {"k", "v"}) {
    EXPECT_EQ(rule.read.at(tensor), kAttended * kCellBytes);
    EXPECT_GE(really.read.at(tensor), rule.read.at(tensor));
    EXPECT_LE(really.read.at(tensor), (kAttended + kTile - 1) / kTile * kTile * kCellBytes);
  }
}

std::string case_name(const ::testing::TestParamInfo<OpCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Matrix, KernelBytes, ::testing::ValuesIn(matrix_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Rows, KernelBytes, ::testing::ValuesIn(row_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Moves, KernelBytes, ::testing::ValuesIn(move_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Elementwise, KernelBytes, ::testing::ValuesIn(elementwise_cases()),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Attention, KernelBytes, ::testing::ValuesIn(attention_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Recurrent, KernelBytes, ::testing::ValuesIn(recurrent_cases()), case_name);

}  // namespace
}  // namespace tt::test
