// The cells that a mask lets queries attend to, for any length and pattern.
#include "tracer/probe/slot_copy.h"

#include <ggml.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

#include "tests/support/sessions/random_session.h"

namespace tt::test {
namespace {

class Mask {
 public:
  Mask(ggml_type type, std::int64_t cells, std::int64_t queries)
      : context_(ggml_init({.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = false})),
        tensor_(ggml_new_tensor_2d(context_, type, cells, queries)) {}
  ~Mask() { ggml_free(context_); }
  void set(std::int64_t cell, std::int64_t query, bool attended) {
    const float value = attended ? 0.0F : -std::numeric_limits<float>::infinity();
    const auto at = static_cast<std::size_t>(query * tensor_->ne[0] + cell);
    if (tensor_->type == GGML_TYPE_F16) {
      static_cast<ggml_fp16_t*>(tensor_->data)[at] = ggml_fp32_to_fp16(value);
    } else {
      static_cast<float*>(tensor_->data)[at] = value;
    }
  }
  std::vector<std::int32_t> attended() const {
    StepBuffer buffer(1, 4096);
    EXPECT_TRUE(copy_slot(*tensor_, slot_plan(*tensor_, SlotCopy::AttendedCells), 0, buffer));
    const auto* ids = reinterpret_cast<const std::int32_t*>(buffer.arena.get());
    return {ids, ids + buffer.captured.at(0).count};
  }

 private:
  ggml_context* context_;
  ggml_tensor* tensor_;
};

TEST(SlotCopy, ListsCellsThatAnyQueryAttendsTo) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const auto cells = static_cast<std::int64_t>(1 + dice.below(70));
    const auto queries = static_cast<std::int64_t>(1 + dice.below(3));
    Mask mask(dice.one_in(2) ? GGML_TYPE_F16 : GGML_TYPE_F32, cells, queries);
    std::set<std::int32_t> expected;
    for (std::int64_t query = 0; query < queries; ++query) {
      // Runs of any length, single cells, all, none.
      const std::uint64_t change = 1 + dice.below(20);
      bool attended = dice.one_in(2);
      for (std::int64_t cell = 0; cell < cells; ++cell) {
        if (dice.one_in(change)) attended = !attended;
        mask.set(cell, query, attended);
        if (attended) expected.insert(static_cast<std::int32_t>(cell));
      }
    }
    ASSERT_EQ(mask.attended(), std::vector<std::int32_t>(expected.begin(), expected.end()));
  }
}

}  // namespace
}  // namespace tt::test
