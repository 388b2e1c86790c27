#include "tests/api/exchange/round_trip_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <format>
#include <fstream>

#include "analysis/tables/op_table.h"
#include "api/exchange/import/import.h"
#include "api/exchange/run_folder/run_folder.h"
#include "tests/api/exchange/export_check.h"
#include "tests/support/temp_folder.h"

namespace tt::test {

using namespace tt::exchange;

std::vector<std::string> accesses_in(const SessionReader& reader) {
  std::vector<std::string> lines;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0) return true;
    const auto graph = reader.graph(step.graph);
    EXPECT_TRUE(graph.has_value());
    const auto addresses = step.allocation.v == 0
                               ? std::vector<std::uint64_t>{}
                               : reader.allocation(step.allocation).value().addresses;
    const auto accesses = accesses_of(**graph);
    for_each_access(**graph, accesses, step, [&](const StepAccess& access) {
      const Tensor& tensor = (*graph)->tensor(access.tensor);
      const Op& op = (*graph)->op(access.op);
      const std::uint32_t i = access.op.v;
      const bool timed = i < step.op_ends.size();
      std::uint64_t address = access.tensor.v < addresses.size() ? addresses[access.tensor.v] : 0;
      if (address != 0 && access.expert >= 0)
        address += static_cast<std::uint64_t>(access.expert) * accesses[access.access].stride;
      lines.push_back(std::format(
          "step {} op {} {} on '{}' layer {}: {} {} {} {} layer {} {} {} {}, {} bytes at {:x}, "
          "file "
          "{} {}+{}, expert {} rank {} score {}, {}..{}",
          step.id.v, i, op_name(**graph, op), op.device, op.layer.v,
          access.write ? "writes" : "reads", tensor.name, tensor.type, to_text(tensor.kind),
          tensor.layer.v, to_text(tensor.component), to_text(tensor.role), to_text(tensor.source),
          access.touched.v, address, access.range.empty() ? 0 : access.range.file,
          access.range.empty() ? 0 : access.range.offset, access.range.length, access.expert,
          access.rank, std::isnan(access.score) ? -1 : access.score,
          !timed   ? -1
          : i == 0 ? step.first_op.v
                   : step.op_ends[i - 1].v,
          timed ? step.op_ends[i].v : -1));
    });
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return lines;
}

namespace {

std::vector<StepFaults> faults_in(const SessionReader& reader, FaultKind kind) {
  std::vector<StepFaults> all;
  const auto add = [&](const StepFaults& faults) {
    all.push_back(faults);
    return true;
  };
  EXPECT_TRUE(reader.for_each_faults(StepId{0}, UINT32_MAX, add, kind).has_value());
  return all;
}

std::vector<StepResidency> residency_in(const SessionReader& reader) {
  std::vector<StepResidency> all;
  const auto add = [&](const StepResidency& residency) {
    all.push_back(residency);
    return true;
  };
  EXPECT_TRUE(reader.for_each_residency(StepId{0}, UINT32_MAX, add).has_value());
  return all;
}

std::vector<StepValues> values_in(const SessionReader& reader) {
  std::vector<StepValues> all;
  const auto add = [&](const StepValues& values) {
    all.push_back(values);
    return true;
  };
  EXPECT_TRUE(reader.for_each_values(StepId{0}, UINT32_MAX, add).has_value());
  return all;
}

std::vector<StepSplits> splits_in(const SessionReader& reader) {
  std::vector<StepSplits> all;
  const auto add = [&](const StepSplits& splits) {
    all.push_back(splits);
    return true;
  };
  EXPECT_TRUE(reader.for_each_splits(StepId{0}, UINT32_MAX, add).has_value());
  return all;
}

// `expected`: accesses_in(before).
void expect_same(const SessionReader& before, const std::vector<std::string>& expected,
                 const SessionReader& after) {
  EXPECT_EQ(walked_totals(after), walked_totals(before));
  const auto got = accesses_in(after);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]) << "access " << i;

  SessionInfo from = before.info().value(), to = after.info().value();
  ASSERT_FALSE(to.facts.empty());
  EXPECT_EQ(to.facts.back().first, "trace.imported_from");
  to.facts.pop_back();
  EXPECT_EQ(to, from);
  EXPECT_EQ(after.losses().value(), before.losses().value());
  EXPECT_EQ(after.tokens(0, UINT32_MAX).value(), before.tokens(0, UINT32_MAX).value());
  ASSERT_EQ(after.step_count().value(), before.step_count().value());
  for (std::uint32_t i = 0; i < before.step_count().value(); ++i) {
    Step a = before.step(StepId{i}).value(), b = after.step(StepId{i}).value();
    if (a.graph.v != 0) {
      EXPECT_EQ(*after.graph(b.graph).value(), *before.graph(a.graph).value()) << "step " << i;
    }
    if (a.allocation.v != 0) {
      EXPECT_EQ(after.allocation(b.allocation).value().addresses,
                before.allocation(a.allocation).value().addresses)
          << "step " << i;
    }
    for (Step* step : {&a, &b}) {
      step->graph = {};
      step->allocation = {};
    }
    EXPECT_EQ(b, a) << "step " << i;
  }
  for (const FaultKind kind : {FaultKind::Major, FaultKind::Minor})
    EXPECT_EQ(faults_in(after, kind), faults_in(before, kind)) << to_text(kind);
  EXPECT_EQ(residency_in(after), residency_in(before));
  EXPECT_TRUE(values_in(after) == values_in(before)) << "captured values";
  EXPECT_TRUE(splits_in(after) == splits_in(before)) << "splits";
}

}  // namespace

void expect_same_session(const SessionReader& before, const SessionReader& after) {
  expect_same(before, accesses_in(before), after);
}

void expect_round_trips(const SessionReader& reader) {
  const TempFolder folder;
  const WriteResult log = export_session(
      reader, {.format = Format::Ndjson}, [&](std::string_view bytes) -> WriteResult {
        std::ofstream(folder / "s.ndjson", std::ios::app) << bytes;
        return {};
      });
  ASSERT_TRUE(log.has_value()) << log.error().message;
  const WriteResult run = export_run_folder(reader, {}, folder / "run");
  ASSERT_TRUE(run.has_value()) << run.error().message;
  const FiveTotals walked = walked_totals(reader);
  const std::vector<std::string> accesses = accesses_in(reader);
  for (const char* way : {"log", "folder"}) {
    SCOPED_TRACE(way);
    const auto path = folder.path() / (std::string(way) + ".ttrace");
    const auto imported = way == std::string("log") ? import_log(folder / "s.ndjson", path)
                                                    : import_run_folder(folder / "run", path);
    ASSERT_TRUE(imported.has_value()) << imported.error().message;
    EXPECT_EQ(imported->accesses, walked.accesses);
    EXPECT_EQ(imported->bytes, walked.read + walked.written);
    const auto problems = check_session(path);
    ASSERT_TRUE(problems.has_value());
    EXPECT_TRUE(problems->empty()) << problems->front();
    expect_same(reader, accesses, SessionReader::open(path).value());
  }
}

}  // namespace tt::test
