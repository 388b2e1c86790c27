// Snapshots of what of the model is in memory, compared with what the kernel says of each page.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analysis/tables/weight_residency.h"
#include "tests/support/models/model_on_disk.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kResidencyPage = 4096;

// Reads a part of the file, without readahead.
void read_part(const fs::path& file, std::uint64_t offset, std::uint64_t length) {
  const int fd = open(file.c_str(), O_RDONLY);
  EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
  std::vector<char> bytes(length);
  EXPECT_EQ(pread(fd, bytes.data(), length, static_cast<off_t>(offset)),
            static_cast<ssize_t>(length));
  close(fd);
}

// By page of the file: whether the kernel has it in memory.
std::vector<bool> pages_of(const fs::path& file) {
  const std::uint64_t size = fs::file_size(file);
  const int fd = open(file.c_str(), O_RDONLY);
  void* at = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  std::vector<unsigned char> present((size + kResidencyPage - 1) / kResidencyPage);
  EXPECT_EQ(mincore(at, size, present.data()), 0);
  munmap(at, size);
  close(fd);
  std::vector<bool> pages;
  for (const unsigned char page : present) pages.push_back((page & 1U) != 0);
  return pages;
}

std::map<std::uint32_t, StepResidency> snapshots_of(const SessionReader& reader) {
  std::map<std::uint32_t, StepResidency> snapshots;
  const auto read = reader.for_each_residency(StepId{0}, UINT32_MAX, [&](const StepResidency& of) {
    snapshots[of.step.v] = of;
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return snapshots;
}

bool covers(const StepResidency& snapshot, std::uint64_t page) {
  for (const FileRange& range : snapshot.resident)
    if (page * kResidencyPage >= range.offset &&
        (page + 1) * kResidencyPage <= range.offset + range.length)
      return true;
  return false;
}

TEST(Residency, EveryPageIsAsTheKernelSays) {
  const ModelOnDisk model;
  ModelOptions options;
  options.repack = false;
  TracedModel traced(model.path, TracedModel::small_context(), options);
  GenerationRequest request = greedy_tokens(8, 6);
  request.residency_interval_ms = 0;
  std::vector<bool> pages;
  const std::uint64_t quarter = fs::file_size(model.path) / 4;
  const auto run = traced.run(request, [&](std::uint32_t generated) {
    if (generated != 3) return;
    model.drop_pages();
    read_part(model.path, quarter, 40 * kResidencyPage);
    pages = pages_of(model.path);
  });
  EXPECT_EQ(run.info.fact("trace.residency"), "mincore");
  const SessionReader reader = run.reader();
  const auto snapshots = snapshots_of(reader);
  const std::vector<Step> steps = run.steps();
  ASSERT_EQ(snapshots.size(), steps.size());
  for (const Step& step : steps) {
    const StepResidency& snapshot = snapshots.at(step.id.v);
    EXPECT_LE(snapshot.at, step.begin);
    if (step.id.v > 0) {
      EXPECT_GE(snapshot.at, steps[step.id.v - 1].end);
    }
    std::uint64_t bytes = 0;
    for (const FileRange& range : snapshot.resident) bytes += range.length;
    EXPECT_EQ(step.conditions.resident_bytes, bytes);
  }

  // The first step is the prompt: the step after the third token is the fourth one.
  const StepResidency& after = snapshots.at(3);
  ASSERT_LE(after.unit, kResidencyPage) << "a page is a unit";
  const auto weights = weight_tensors(reader);
  ASSERT_TRUE(weights.has_value());
  std::size_t checked = 0, in_memory = 0;
  for (const WeightTensor& weight : *weights) {
    EXPECT_TRUE(weight.mapped) << weight.name;
    const std::uint64_t end = weight.file.offset + weight.file.length;
    std::uint64_t expected = 0;
    for (std::uint64_t at = weight.file.offset; at < end; ++at)
      expected += pages[at / kResidencyPage];
    // A page is shared by two tensors, and half of a unit counts as all of it.
    const auto bytes = resident_bytes(weight, after.resident);
    ASSERT_TRUE(bytes.has_value());
    EXPECT_NEAR(static_cast<double>(*bytes), static_cast<double>(expected), kResidencyPage)
        << weight.name;
    for (std::uint64_t page = weight.file.offset / kResidencyPage + 1;
         (page + 1) * kResidencyPage <= end; ++page) {
      EXPECT_EQ(covers(after, page), pages[page]) << weight.name << " page " << page;
      ++checked;
      in_memory += pages[page];
    }
  }
  EXPECT_GE(in_memory, 30U);
  EXPECT_LT(in_memory, checked / 2);
  // The step read its weights again.
  EXPECT_GT(steps[4].conditions.resident_bytes, steps[3].conditions.resident_bytes);

  EXPECT_EQ(check_session(run.file).value(), std::vector<std::string>{});
  EXPECT_EQ(residency_at(reader, StepId{2})->snapshot, snapshots.at(2));
}

TEST(Residency, IsRecordedOncePerIntervalAndOnlyOnRequest) {
  TracedModel traced(kTestPaths.bundled_model, TracedModel::small_context(), {.repack = false});
  GenerationRequest request = greedy_tokens(8, 6);
  const auto plain = traced.run(request);
  EXPECT_TRUE(snapshots_of(plain.reader()).empty());
  EXPECT_EQ(plain.info.fact("trace.residency"), "");
  EXPECT_FALSE(plain.steps()[0].conditions.resident_bytes.has_value());
  const auto none = residency_at(plain.reader(), StepId{2});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().kind, TraceError::Kind::NotFound);

  request.residency_interval_ms = 3'600'000;
  const auto once = traced.run(request);
  const auto snapshots = snapshots_of(once.reader());
  ASSERT_EQ(snapshots.size(), 1U);
  EXPECT_EQ(snapshots.begin()->first, 0U);
  EXPECT_EQ(residency_at(once.reader(), StepId{5})->snapshot, snapshots.at(0));
}

TEST(Residency, OfCopiedWeightsIsNotKnown) {
  TracedModel traced(kTestPaths.bundled_model, TracedModel::small_context(),
                     {.mmap = false, .repack = false});
  GenerationRequest request = greedy_tokens(8, 3);
  request.residency_interval_ms = 0;
  const auto run = traced.run(request);
  EXPECT_TRUE(snapshots_of(run.reader()).empty());
  EXPECT_EQ(run.info.fact("trace.residency"), "the weights were copied when the model was loaded");
}

}  // namespace
}  // namespace tt::test
