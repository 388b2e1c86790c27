#include "tracer/format/file/blob_codec.h"
#include "tracer/format/model/lens_values.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "tests/support/allocation_meter.h"
#include "tests/support/sessions/random_session.h"
#include "tests/tracer/format/file/blob_bytes.h"
#include "tracer/format/file/byte_codec.h"

namespace tt {
namespace {

using test::bytes;
using test::Dice;

// The layout in docs/trace-format.md, byte by byte.
TEST(StepBlob, HasDocumentedLayout) {
  Step step;
  step.first_op = Ns{1000};
  step.op_ends = {Ns{1005}, Ns{1305}};
  step.slots = {{{7, 8, 9, 10, 11}, {}}, {{5, 3}, {1.0f}}};
  step.stats = {{OpId{1}, 0.0f, 1.0f, -2.0f, 0.5f, 0, 300}};
  const Blob expected = bytes({
      2,         5,    0xac, 0x02,                    // ends: +5, +300
      2,                                              // slots
      5 * 2 + 1, 14,   1,    2,    4, 0,              // +7 once, +1 four times; no floats
      2 * 2,     10,   3,    1,    0, 0, 0x80, 0x3f,  // +5, -2; 1.0f
      1,         1,                                   // stats of op 1
      0,         0,    0,    0,    0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0x3f,  //
      0,         0xac, 0x02,  // no NaN, 300 Inf
  });
  EXPECT_EQ(pack_step(step).value(), expected);
}

TEST(FaultsBlob, HasDocumentedLayout) {
  const StepFaults of{.step = StepId{3},
                      .count = 2,
                      .faults = {{.at = Ns{1005}, .address = 0x1000}, {Ns{1305}, 0xfff}}};
  const Blob expected = bytes({2, 5, 0x80, 0x40, 0xac, 0x02, 1});  // +5, +0x1000; +300, -1
  EXPECT_EQ(pack_faults(of, Ns{1000}).value(), expected);
}

TEST(FaultsBlob, RoundTripsAnyFaultsAndRejectsInvalidBytes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const StepFaults of = test::random_faults(dice, StepId{0});
    const Ns begin{dice.any_i64()};
    const Blob blob = pack_faults(of, begin).value();
    ASSERT_EQ(unpack_faults(blob, begin).value(), of.faults);
    EXPECT_FALSE(unpack_faults(std::span(blob).first(blob.size() - 1), begin).has_value());
    Blob longer = blob;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(unpack_faults(longer, begin).has_value());
  }
  const StepFaults many{
      .step = {}, .count = 0, .faults = std::vector<PageFault>(kMaxStepFaults + 1)};
  EXPECT_FALSE(pack_faults(many, Ns{}).has_value());
}

TEST(SplitsBlob, HasDocumentedLayout) {
  const StepSplits splits{.step = {},
                          .backends = {"CPU", "C0"},
                          .splits = {{.backend = 1,
                                      .first = OpId{3},
                                      .ops = 300,
                                      .begin = Ns{1'020},
                                      .end = Ns{1'021},
                                      .done = Ns{1'020},
                                      .copies = {{.tensor = TensorId{4},
                                                  .from = 0,
                                                  .bytes = 130,
                                                  .begin = Ns{1'005},
                                                  .end = Ns{1'015},
                                                  .wait = Ns{2},
                                                  .complete = true}}},
                                     {.begin = Ns{1'021}, .end = Ns{1'022}}}};
  const Blob expected = bytes({
      2,  3, 'C',  'P',  'U', 2,  'C', '0',  // backends
      2,                                     // splits
      1,  3, 0xac, 0x02, 1,                  // backend 1, ops 3 to 302, one copy:
      5,  1, 0x82, 0x01, 10,  20, 2,   1,    // tensor 4 from backend 0, 130 bytes, +5, +10, wait 2
      10, 2, 1,    1,                        // begin +5, end +1, done -1
      0,  0, 0,    0,    0,   2,  0,         // not done
  });
  const Blob packed = pack_splits(splits, Ns{1'000}).value();
  EXPECT_EQ(packed, expected);
  EXPECT_EQ(unpack_splits(packed, Ns{1'000}).value(), splits);
  for (const std::size_t backend : {9U, 15U}) {  // of a split, and of a copy
    Blob other = packed;
    other[backend] = std::byte{3};
    EXPECT_FALSE(unpack_splits(other, Ns{1'000}).has_value());
  }
}

TEST(SplitsBlob, RoundTripsAnyValuesAndRejectsInvalidBytes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const StepSplits splits = test::random_splits(dice, StepId{0}, 30, 20);
    const Ns begin{dice.any_i64()};
    Blob blob = pack_splits(splits, begin).value();
    ASSERT_EQ(unpack_splits(blob, begin).value(), splits);
    EXPECT_FALSE(unpack_splits(std::span(blob).first(blob.size() - 1), begin).has_value());
    blob.push_back(std::byte{0});
    EXPECT_FALSE(unpack_splits(blob, begin).has_value());
  }
  const StepSplits many{
      .step = {}, .backends = {"CPU"}, .splits = std::vector<BackendSplit>(kMaxStepSplits + 1)};
  EXPECT_FALSE(pack_splits(many, Ns{}).has_value());
}

Blob unzip(const Blob& frame) {
  Blob raw(ZSTD_getFrameContentSize(frame.data(), frame.size()));
  EXPECT_EQ(ZSTD_decompress(raw.data(), raw.size(), frame.data(), frame.size()), raw.size());
  return raw;
}

Blob zip(const Blob& raw) {
  Blob frame(ZSTD_compressBound(raw.size()));
  frame.resize(ZSTD_compress(frame.data(), frame.size(), raw.data(), raw.size(), 1));
  return frame;
}

TEST(ValuesBlob, HasDocumentedLayout) {
  const std::vector<OutputValues> outputs = {
      {.op = OpId{3}, .ne = {2, 1, 1, 1}, .values = {1.1f, -2.0f}},
      {.op = OpId{300}, .ne = {0, 5, 1, 1}, .values = {}},
      {.op = OpId{300}, .of = ValuesOf::Attention, .ne = {0, 5, 1, 1}, .values = {}},
      {.op = OpId{300}, .of = kLensValues, .ne = {0, 5, 1, 1}, .values = {}}};
  const Blob expected = bytes({
      4,  // outputs
      3,    2,    1,    1,    1,    0xcd, 0xcc, 0x8c, 0x3f,
      0,    0,    0,    0xc0,                             // op 3, 2 x 1 x 1 x 1: 1.1f, -2.0f
      0xac, 0x02, 0,    5,    1,    1,                    // op 300, no elements
      0xac, 0x82, 0x80, 0x80, 0x10, 0,    5,    1,    1,  // attention weights of op 300
      0xac, 0x82, 0x80, 0x80, 0x20, 0,    5,    1,    1,  // what the model would say after op 300
  });
  const Blob packed = pack_values(outputs).value();
  EXPECT_EQ(unzip(packed), expected);
  EXPECT_EQ(unpack_values(packed).value(), outputs);
}

TEST(ValuesBlob, RoundTripsAnyValuesAndRejectsInvalidBytes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const std::vector<OutputValues> outputs = test::random_values(dice, StepId{0}, 30).outputs;
    const Blob blob = pack_values(outputs).value();
    ASSERT_EQ(unpack_values(blob).value(), outputs);
    EXPECT_FALSE(unpack_values(std::span(blob).first(blob.size() - 1)).has_value());
    Blob raw = unzip(blob);
    raw.push_back(std::byte{0});
    EXPECT_FALSE(unpack_values(zip(raw)).has_value());
    raw.resize(raw.size() - 2);
    EXPECT_FALSE(unpack_values(zip(raw)).has_value());
  }
}

TEST(ValuesBlob, KeepsTheBitsOfNan) {
  const float payload = std::bit_cast<float>(0x7fc12345u);
  const auto back =
      unpack_values(pack_values(std::vector<OutputValues>{
                                    {.op = OpId{0}, .ne = {1, 1, 1, 1}, .values = {payload}}})
                        .value());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(std::bit_cast<std::uint32_t>(back->front().values.front()), 0x7fc12345u);
}

// Arrays of f16 values take two bytes per value and keep their bits: all 65,536 of them.
TEST(ValuesBlob, StoresValuesOfF16AsSuch) {
  OutputValues all{.op = OpId{7}, .of = ValuesOf{16}, .ne = {65'536, 1, 1, 1}, .values = {}};
  for (std::uint32_t half = 0; half < 65'536; ++half) {
    const float sign = half >= 0x8000 ? -1.0F : 1.0F;
    const auto exponent = static_cast<int>(half >> 10 & 31),
               fraction = static_cast<int>(half & 1023);
    float value = std::ldexp(static_cast<float>(exponent == 0 ? fraction : 1024 + fraction),
                             std::max(exponent, 1) - 25);
    if (exponent == 31)
      value = std::bit_cast<float>(0x7F80'0000U | static_cast<std::uint32_t>(fraction) << 13);
    all.values.push_back(std::copysign(value, sign));
  }
  const auto bits = [](const OutputValues& of) {
    std::vector<std::uint32_t> out;
    for (const float value : of.values) out.push_back(std::bit_cast<std::uint32_t>(value));
    return out;
  };
  const Blob blob = pack_values(std::vector{all}).value();
  EXPECT_LT(unzip(blob).size(), 2 * 65'536 + 64U);
  const auto back = unpack_values(blob);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(bits(back->front()), bits(all));
  EXPECT_EQ(back->front().of, all.of);
  // One other value, and all take four bytes: between two of them, too large, too small.
  for (const float other : {1.0F + 0x1p-11F, 65'520.0F, 0x1p-25F, 0x1.8p-24F}) {
    OutputValues most = all;
    most.values[100] = other;
    const Blob packed = pack_values(std::vector{most}).value();
    EXPECT_GT(unzip(packed).size(), 4 * 65'536U) << other;
    EXPECT_EQ(bits(unpack_values(packed).value().front()), bits(most)) << other;
  }
  // A kind that does not exist.
  all.of = ValuesOf{17};
  EXPECT_FALSE(unpack_values(pack_values(std::vector{all}).value()).has_value());
}

// What packing rejects is also what unpacking rejects.
TEST(ValuesBlob, RejectsShapesThatDoNotFitTheirValues) {
  using Outputs = std::vector<OutputValues>;
  const auto of = [](std::uint32_t op, std::array<std::uint64_t, 4> ne, std::size_t n) {
    return OutputValues{.op = OpId{op}, .ne = ne, .values = std::vector<float>(n)};
  };
  const std::pair<const char*, Outputs> cases[] = {
      {"a missing value", {of(1, {2, 1, 1, 1}, 1)}},
      {"the same op twice", {of(1, {1, 1, 1, 1}, 1), of(1, {1, 1, 1, 1}, 1)}},
      {"ops in reverse", {of(2, {1, 1, 1, 1}, 1), of(1, {1, 1, 1, 1}, 1)}},
      {"a product that wraps to 0", {of(1, {1ULL << 32, 1ULL << 32, 1, 1}, 0)}},
      {"no elements of a huge shape", {of(1, {1ULL << 63, 0, 1, 1}, 0)}},
      {"too many values",
       {of(1, {kMaxCapturedValues, 1, 1, 1}, kMaxCapturedValues), of(2, {1, 1, 1, 1}, 1)}},
  };
  for (const auto& [name, outputs] : cases) {
    EXPECT_FALSE(pack_values(outputs).has_value()) << name;
    ByteWriter out;
    out.varint(outputs.size());
    for (const OutputValues& output : outputs) {
      out.varint(output.op.v);
      for (const std::uint64_t ne : output.ne) out.varint(ne);
      out.append(std::as_bytes(std::span(output.values)));
    }
    EXPECT_FALSE(unpack_values(zip(out.take())).has_value()) << name;
  }
  EXPECT_FALSE(pack_values(Outputs(kMaxCapturedOutputs + 1)).has_value());
}

TEST(StepBlob, RoundTripsAnyStep) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const GraphTemplate graph = random_template(dice, {});
    const Step step = random_step(dice, graph);
    Step back = step;
    back.op_ends.clear();
    back.slots.clear();
    back.stats.clear();
    ASSERT_TRUE(unpack_step(pack_step(step).value(), back).has_value());
    ASSERT_EQ(back, step);
  }
}

TEST(StepBlob, RoundTripsNanBitsAndExtremes) {
  Step step;
  step.first_op = Ns{INT64_MIN};
  step.op_ends = {Ns{INT64_MAX}, Ns{INT64_MIN}, Ns{0}};
  const float payload = std::bit_cast<float>(0x7fc12345u);
  step.slots = {{{INT64_MAX, INT64_MIN, 0, INT64_MIN}, {payload, -0.0f}}};
  Step back;
  back.first_op = step.first_op;
  ASSERT_TRUE(unpack_step(pack_step(step).value(), back).has_value());
  EXPECT_EQ(back.op_ends, step.op_ends);
  EXPECT_EQ(back.slots[0].ints, step.slots[0].ints);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(back.slots[0].floats[0]), 0x7fc12345u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(back.slots[0].floats[1]), 0x80000000u);
}

TEST(StepBlob, EncodesConsecutivePositionsInFewBytes) {
  Step step;
  step.slots.resize(1);
  step.slots[0].ints.resize(100'000);
  std::iota(step.slots[0].ints.begin(), step.slots[0].ints.end(), 32);
  EXPECT_LT(pack_step(step)->size(), 16u);
}

TEST(StepBlob, RejectsPackingWhatUnpackRejects) {
  Step step;
  step.slots.resize(1);
  step.slots[0].ints.resize(kMaxStepValues);
  EXPECT_TRUE(pack_step(step).has_value());
  step.slots[0].floats.resize(1);
  EXPECT_FALSE(pack_step(step).has_value());
}

TEST(TemplateBlob, RoundTripsAnyTemplate) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const GraphTemplate graph = random_template(dice, {});
    auto back = unpack_template(pack_template(graph).value());
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->fingerprint, 0u);  // stored in a separate column
    back->fingerprint = graph.fingerprint;
    ASSERT_EQ(*back, graph);
  }
}

TEST(TemplateBlob, RejectsIndicesOutOfRange) {
  Dice dice(1);
  GraphTemplate good;
  while (good.slots.empty()) good = random_template(dice, {});
  using Break = void (*)(GraphTemplate&);
  const std::pair<const char*, Break> cases[] = {
      {"view", [](GraphTemplate& g) { g.tensors[0].view_of = TensorId{9999}; }},
      {"output", [](GraphTemplate& g) { g.nodes[0].output = kNoTensor; }},
      {"source", [](GraphTemplate& g) { g.nodes[0].src = {TensorId{9999}}; }},
      {"op", [](GraphTemplate& g) { g.ops.back().nodes = 3; }},
      {"empty op", [](GraphTemplate& g) { g.ops[0].nodes = 0; }},
      {"far op", [](GraphTemplate& g) { g.ops[0] = {NodeId{5}, 0xFFFFFFFFu, "", kNoLayer}; }},
      {"op twice", [](GraphTemplate& g) { g.ops.push_back(g.ops.back()); }},
      {"slot tensor", [](GraphTemplate& g) { g.slots[0].tensor = TensorId{9999}; }},
      {"slot op", [](GraphTemplate& g) { g.slots[0].read_at = OpId{9999}; }},
  };
  for (const auto& [name, corrupt] : cases) {
    GraphTemplate graph = good;
    corrupt(graph);
    EXPECT_FALSE(pack_template(graph).has_value()) << name;
  }
}

TEST(AllocationBlob, RoundTripsAnyAddresses) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Dice dice(seed);
    std::vector<std::uint64_t> addresses(dice.size(50));
    for (auto& a : addresses) a = dice.any_u64();
    ASSERT_EQ(unpack_addresses(pack_addresses(addresses).value()).value(), addresses) << seed;
  }
}

// ---------------------------------------------------------------------------
// Arbitrary bytes: no crash (asan), and no more memory than the limits allow.

void damage(Dice& dice, Blob& blob) {
  if (blob.empty()) return;
  for (std::size_t k = 1 + dice.size(3); k > 0 && !blob.empty(); --k) {
    const auto at = static_cast<std::size_t>(dice.below(blob.size()));
    switch (dice.below(5)) {
      case 0:
        blob[at] ^= static_cast<std::byte>(1u << dice.below(8));
        break;
      case 1:
        blob[at] = static_cast<std::byte>(dice.bits());
        break;
      case 2:  // the largest numbers
        for (std::size_t i = at; i < blob.size() && i < at + 9; ++i) blob[i] = std::byte{0xff};
        break;
      case 3:
        blob.resize(at);
        break;
      default:
        blob.insert(blob.begin() + static_cast<std::ptrdiff_t>(at), dice.size(8),
                    static_cast<std::byte>(dice.bits()));
    }
  }
}

constexpr std::size_t kMi = std::size_t{1} << 20;

TEST(Blobs, SurviveRandomDamage) {
  std::size_t still_valid = 0, worst_step = 0, worst_template = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const GraphTemplate graph = random_template(dice, {});
    Blob step_blob = pack_step(random_step(dice, graph)).value();
    damage(dice, step_blob);
    Step step;
    test::reset_allocation_peak();
    still_valid += unpack_step(step_blob, step).has_value();
    worst_step = std::max(worst_step, test::allocation_peak());
    ASSERT_LE(test::allocation_peak(), 8 * kMaxStepValues + 64 * step_blob.size() + kMi);

    // Damage inside the zstd frame, after decompression, where its checksum does not help.
    Blob raw = unzip(pack_template(graph).value());
    damage(dice, raw);
    const Blob frame = zip(raw);
    test::reset_allocation_peak();
    still_valid += unpack_template(frame).has_value();
    worst_template = std::max(worst_template, test::allocation_peak());
    ASSERT_LE(test::allocation_peak(), 32 * raw.size() + 64 * 1024);

    // Damage to the frame itself.
    Blob addresses = pack_addresses(std::vector<std::uint64_t>(dice.size(300), seed)).value();
    damage(dice, addresses);
    test::reset_allocation_peak();
    still_valid += unpack_addresses(addresses).has_value();
    ASSERT_LE(test::allocation_peak(), 9 * kMaxUnpackedBytes + kMi);

    // Damage inside the frame of captured values.
    Blob values = unzip(pack_values(test::random_values(dice, StepId{0}, 30).outputs).value());
    damage(dice, values);
    const Blob values_frame = zip(values);
    test::reset_allocation_peak();
    still_valid += unpack_values(values_frame).has_value();
    ASSERT_LE(test::allocation_peak(), 16 * values.size() + 64 * 1024);
  }
  std::printf(
      "40,000 damaged blobs: %zu still decoded; most memory: step %zu KiB, template %zu KiB\n",
      still_valid, worst_step / 1024, worst_template / 1024);
}

TEST(Blobs, AreInvalidWhenTruncated) {
  Dice dice(7);
  const GraphTemplate graph = random_template(dice, {});
  const Step original = random_step(dice, graph);
  const Blob blob = pack_step(original).value();
  for (std::size_t n = 0; n < blob.size(); ++n) {
    Step step;
    EXPECT_FALSE(unpack_step(std::span(blob).first(n), step).has_value()) << n;
  }
}

// Otherwise 216 bytes could encode an op whose accesses take minutes to enumerate.
TEST(Blobs, LimitPartsOfOneOp) {
  GraphTemplate graph;
  graph.tensors.resize(1);
  graph.nodes.resize(1);
  graph.nodes[0].output = TensorId{0};
  graph.nodes[0].src.assign(kMaxOpParts - 1, TensorId{0});
  graph.ops = {{.first = NodeId{0}, .nodes = 1, .device = "CPU", .layer = kNoLayer}};
  EXPECT_TRUE(pack_template(graph).has_value());
  graph.nodes[0].src.push_back(TensorId{0});
  EXPECT_FALSE(pack_template(graph).has_value());
  graph.nodes[0].src.clear();
  graph.nodes.resize(kMaxOpParts + 1, graph.nodes[0]);
  graph.ops[0].nodes = kMaxOpParts + 1;
  EXPECT_FALSE(pack_template(graph).has_value());
}

// Otherwise a few kilobytes could encode a graph whose accesses take minutes to enumerate.
TEST(Blobs, LimitPartsOfAllOps) {
  constexpr std::size_t kMost = kMaxOpPairs / (kMaxOpParts * kMaxOpParts);
  GraphTemplate graph;
  graph.tensors.resize(1);
  graph.nodes.resize(kMost);
  for (std::uint32_t i = 0; i < kMost; ++i) {
    graph.nodes[i].output = TensorId{0};
    graph.nodes[i].src.assign(kMaxOpParts - 1, TensorId{0});
    graph.ops.push_back({.first = NodeId{i}, .nodes = 1, .device = "CPU", .layer = kNoLayer});
  }
  EXPECT_TRUE(pack_template(graph).has_value());
  graph.nodes.emplace_back().output = TensorId{0};
  graph.ops.push_back({.first = NodeId{kMost}, .nodes = 1, .device = "CPU", .layer = kNoLayer});
  EXPECT_FALSE(pack_template(graph).has_value());
}

TEST(Blobs, RejectSizesAboveFormatLimits) {
  const Blob bomb = zip(Blob(kMaxUnpackedBytes + 1));
  EXPECT_FALSE(unpack_addresses(bomb).has_value());
  EXPECT_FALSE(unpack_template(bomb).has_value());
  const Blob values_bomb = zip(Blob(5 * kMaxCapturedValues));
  test::reset_allocation_peak();
  EXPECT_FALSE(unpack_values(values_bomb).has_value());
  EXPECT_LT(test::allocation_peak(), kMi);

  ByteWriter runs;  // ten bytes that claim more values than a step may have
  runs.varint(0);
  runs.varint(1);
  runs.varint(2 * (kMaxStepValues + 1) + 1);
  runs.zigzag(1);
  runs.varint(kMaxStepValues + 1);
  Step step;
  test::reset_allocation_peak();
  EXPECT_FALSE(unpack_step(runs.bytes(), step).has_value());
  EXPECT_LT(test::allocation_peak(), kMi);
}

TEST(StepOutline, MatchesFullyDecodedStep) {
  Dice dice(11);
  StepOutline outline;  // reused
  for (int round = 0; round < 300; ++round) {
    const GraphTemplate graph = test::random_template(dice, {});
    const Step step = test::random_step(dice, graph);
    const Blob blob = pack_step(step).value();
    ASSERT_TRUE(unpack_outline(blob, outline).has_value());
    std::vector<std::uint64_t> times;
    ASSERT_TRUE(unpack_times(std::span(blob).first(outline.times_bytes), times).has_value());
    EXPECT_EQ(times, outline.op_ns);
    StepOutline without;
    ASSERT_TRUE(unpack_outline(blob, without, OutlineTimes::Skip).has_value());
    EXPECT_TRUE(without.op_ns.empty());
    EXPECT_EQ(without.ops, outline.ops);
    EXPECT_EQ(without.times_bytes, outline.times_bytes);
    ASSERT_EQ(outline.op_ns.size(), step.op_ends.size());
    auto at = static_cast<std::uint64_t>(step.first_op.v);
    for (std::size_t i = 0; i < step.op_ends.size(); ++i)
      ASSERT_EQ(static_cast<std::int64_t>(at += outline.op_ns[i]), step.op_ends[i].v);
    ASSERT_EQ(outline.slots.size(), step.slots.size());
    for (std::size_t i = 0; i < step.slots.size(); ++i) {
      std::vector<std::int64_t> values;
      for (const StepOutline::Run& run : outline.runs_of(outline.slots[i])) {
        auto value = static_cast<std::uint64_t>(run.first);
        for (std::uint64_t k = 0; k < run.count; ++k) {
          values.push_back(static_cast<std::int64_t>(value));
          value += static_cast<std::uint64_t>(run.delta);
        }
      }
      ASSERT_EQ(values, step.slots[i].ints);
      ASSERT_EQ(outline.slots[i].values, step.slots[i].ints.size());
    }
  }
}

// Lists as sets: each distinct number below a limit.
TEST(StepOutline, ReadsListsAsSets) {
  Dice dice(13);
  StepOutline outline;  // reused
  std::uint64_t kept = 0;
  for (int round = 0; round < 300; ++round) {
    const GraphTemplate graph = test::random_template(dice, {});
    Step step = test::random_step(dice, graph);
    for (SlotValues& slot : step.slots) {  // like a list of experts
      if (dice.one_in(3)) continue;
      slot.ints.clear();
      for (std::size_t n = dice.size(30); n > 0; --n)
        slot.ints.push_back(static_cast<std::int64_t>(dice.below(300)) - 10);
    }
    std::vector<std::uint32_t> limits;  // of some lists, perhaps fewer than there are
    for (std::size_t n = dice.size(step.slots.size()); n > 0; --n)
      limits.push_back(dice.one_in(3) ? 0 : 1 + static_cast<std::uint32_t>(dice.below(512)));
    const Blob blob = pack_step(step).value();
    ASSERT_TRUE(unpack_outline(blob, outline, OutlineTimes::Skip, limits).has_value());
    ASSERT_EQ(outline.slots.size(), step.slots.size());
    for (std::size_t i = 0; i < step.slots.size(); ++i) {
      const StepOutline::Slot& slot = outline.slots[i];
      EXPECT_EQ(slot.values, step.slots[i].ints.size());
      const std::uint32_t limit = i < limits.size() ? limits[i] : 0;
      EXPECT_EQ(slot.words, (limit + 63) / 64);
      if (limit == 0) continue;
      EXPECT_EQ(slot.runs, 0U);
      std::vector<std::uint64_t> expected(slot.words);
      std::set<std::int64_t> numbers;
      for (const std::int64_t n : step.slots[i].ints) {
        if (n < 0 || n >= limit || !numbers.insert(n).second) continue;
        expected[static_cast<std::size_t>(n / 64)] |= std::uint64_t{1} << (n % 64);
      }
      EXPECT_TRUE(std::ranges::equal(outline.words_of(slot), expected));
      EXPECT_EQ(slot.distinct, numbers.size());
      kept += numbers.size();
    }
  }
  EXPECT_GT(kept, 500U);
}

// Rejects everything that the full decoder rejects before it reaches the statistics.
TEST(StepOutline, RejectsDamagedSteps) {
  Dice dice(12);
  StepOutline outline;
  for (int round = 0; round < 2000; ++round) {
    const GraphTemplate graph = test::random_template(dice, {});
    Step step = test::random_step(dice, graph);
    step.stats.clear();
    Blob blob = pack_step(step).value();
    for (std::size_t k = 1 + dice.size(2); k > 0; --k)
      blob[dice.below(blob.size())] = static_cast<std::byte>(dice.bits());
    if (dice.one_in(2)) blob.resize(dice.size(blob.size()));
    if (unpack_step(blob, step).has_value()) {
      EXPECT_TRUE(unpack_outline(blob, outline).has_value());
      const std::vector<std::uint32_t> limits(step.slots.size(), 40);
      EXPECT_TRUE(unpack_outline(blob, outline, OutlineTimes::Skip, limits).has_value());
    }
  }
}

}  // namespace
}  // namespace tt
