// tt attach on a program whose graphs run on several backends: each split and each copy, as the
// scheduler lists them itself. The second backend is llama.cpp's RPC server on this machine.
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/backends/split_times.h"
#include "tests/attach/attach_fixture.h"
#include "tests/support/rpc_server.h"

namespace tt {
namespace {

// Of one graph, in order: the backend of each split, and the names of its inputs.
struct ListedSplit {
  std::string backend;
  std::vector<std::string> inputs;
  friend bool operator==(const ListedSplit&, const ListedSplit&) = default;
};
using ListedSplits = std::vector<ListedSplit>;

// The last graph that GGML_SCHED_DEBUG lists.
ListedSplits last_listed(std::string_view log) {
  ListedSplits splits;
  constexpr std::string_view kBegin = "## SPLIT #";
  for (std::size_t at = 0; (at = log.find(kBegin, at)) != log.npos;) {
    at += kBegin.size();
    if (log[at] == '0' && log[at + 1] == ':') splits.clear();
    at = log.find(": ", at) + 2;
    const std::string_view rest =
        log.substr(at, std::min(log.find('\n', at), log.find(kBegin, at)) - at);
    ListedSplit& split = splits.emplace_back();
    split.backend = rest.substr(0, rest.find(" # "));
    std::size_t input = rest.find(" inputs");
    while ((input = rest.find('[', input)) != rest.npos) {
      ++input;
      const std::size_t size = rest.rfind(" (", rest.find(")]", input));  // " (  13K)]"
      split.inputs.emplace_back(rest.substr(input, size - input));
    }
  }
  return splits;
}

// "RPC0[127.0.0.1:5000]#inp_pos#0" is the copy of "inp_pos".
std::string original_of(const std::string& name) {
  const std::size_t first = name.find('#'), last = name.rfind('#');
  return first == last ? name : name.substr(first + 1, last - first - 1);
}

class AttachDevices : public Attach {
 protected:
  std::string completion(const std::string& options) const {
    return std::format(
        "llama-completion -m model.gguf --rpc {} {} -p 'The wind was cold' -n 6 --ignore-eos "
        "-no-cnv --no-warmup -t 1 -s 1 --temp 0 -c 512",
        server_.endpoint(), options);
  }
  std::vector<StepSplits> splits_of(const SessionReader& reader) const {
    std::vector<StepSplits> all;
    const auto read = reader.for_each_splits(StepId{0}, UINT32_MAX, [&](const StepSplits& of) {
      all.push_back(of);
      return true;
    });
    EXPECT_TRUE(read.has_value());
    return all;
  }
  test::RpcServer server_;
};

// The weights of layer 9 are on the CPU, its cache and the layers around it on the server.
TEST_F(AttachDevices, SplitsAndCopiesAreThoseOfTheScheduler) {
  make_model("small");
  const std::string command = completion(R"(-ngl 8 -ot 'blk\.9\..*=CPU')");
  const Result listed = plain("GGML_SCHED_DEBUG=1 " + command + " -v");
  const Result without = plain(command);
  ASSERT_EQ(without.code, 0) << without.err;
  const ListedSplits expected = last_listed(listed.err);
  ASSERT_EQ(expected.size(), 8U) << listed.err;

  const Result with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_FALSE(with.err.contains("lost:")) << with.err;
  ASSERT_EQ(sessions().size(), 1U) << with.err;
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  ASSERT_EQ(*reader.step_count(), 6U);
  const std::vector<StepSplits> all = splits_of(reader);
  ASSERT_EQ(all.size(), 6U);
  std::uint64_t copied = 0;
  for (const StepSplits& of : all) {
    SCOPED_TRACE(of.step.v);
    const Step step = *reader.step(of.step);
    const auto graph = *reader.graph(step.graph);
    EXPECT_EQ(step.timing, Timing::None) << "nothing is split for a callback";
    EXPECT_TRUE(step.op_ends.empty());
    ListedSplits recorded;
    Ns now = step.begin;
    std::uint32_t next_op = 0;
    for (const BackendSplit& split : of.splits) {
      ListedSplit& row = recorded.emplace_back();
      row.backend = of.backends[split.backend];
      for (const BackendCopy& copy : split.copies) {
        ASSERT_NE(copy.tensor, kNoTensor);
        const Tensor& tensor = graph->tensor(copy.tensor);
        row.inputs.push_back(original_of(tensor.name));
        ASSERT_LT(copy.from, of.backends.size());
        EXPECT_NE(copy.from, split.backend);
        EXPECT_TRUE(copy.complete) << "the RPC backend copies in the call";
        EXPECT_GE(copy.begin, now);
        EXPECT_GE(copy.end, copy.begin);
        EXPECT_LE(copy.wait, copy.end - copy.begin);
        now = copy.end;
        copied += copy.bytes;
        // Contiguous tensors of the input's shape.
        std::uint64_t bytes = tensor.block_bytes;
        for (const std::int64_t n : tensor.ne) bytes *= static_cast<std::uint64_t>(n);
        EXPECT_EQ(copy.bytes, bytes / tensor.block_elements) << tensor.name;
      }
      EXPECT_EQ(split.first.v, next_op) << "each op is in one split";
      next_op += split.ops;
      EXPECT_GE(split.begin, now);
      EXPECT_GE(split.end, split.begin);
      ASSERT_TRUE(split.done.has_value());
      EXPECT_GE(*split.done, split.end);
      EXPECT_LE(*split.done, step.end);
      now = split.end;
    }
    EXPECT_EQ(next_op, graph->ops.size());
    if (step.phase == Phase::Generate) {
      EXPECT_EQ(recorded, expected);
    }
  }
  const LossCounters losses = *reader.losses();
  EXPECT_EQ(losses, LossCounters{});
  // The lists that both backends read are there: they were copied before the graph ran.
  const Step last = *reader.step(StepId{5});
  const auto graph = *reader.graph(last.graph);
  for (std::size_t i = 0; i < graph->slots.size(); ++i)
    if (graph->slots[i].kind == SlotKind::Positions) {
      EXPECT_EQ(last.slots[i].ints.size(), 1U) << graph->tensor(graph->slots[i].tensor).name;
    }

  // The same in SQL, and added up.
  const Result sums = run_tt(
      folder, std::format("sql {} --csv \"SELECT (SELECT count(*) FROM split), (SELECT sum(ops) "
                          "FROM split), (SELECT sum(size_bytes) FROM split_copy), (SELECT "
                          "sum(copied_bytes) FROM split)\"",
                          sessions()[0].string()));
  EXPECT_TRUE(
      sums.out.ends_with(std::format("\n48,{},{},{}\n", 6 * graph->ops.size(), copied, copied)))
      << sums.out << sums.err;
  const SplitTimes times = *split_times(reader);
  EXPECT_EQ(times.total, 6U);
  EXPECT_EQ(times.disturbed, 0U);
  EXPECT_FALSE(times.verdict) << "the waits of another program are not recorded";
  std::uint64_t splits = 0, ops = 0;
  Bytes bytes{};
  Ns time{};
  for (const BackendTime& row : times.backends) {
    splits += row.splits;
    ops += row.ops;
    time = time + row.time;
    EXPECT_EQ(row.not_waited, 0U);
  }
  for (const BackendTransfer& row : times.transfers) {
    bytes += row.bytes;
    time = time + row.time + row.wait;
    EXPECT_NE(row.from, row.to);
  }
  EXPECT_EQ(times.backends.size(), 4U) << "two phases, two backends";
  EXPECT_EQ(splits, 48U);
  EXPECT_EQ(ops, 6 * graph->ops.size());
  EXPECT_EQ(bytes.v, copied);
  EXPECT_LE(time, times.time) << "nothing overlaps here";
  const Result shown = run_tt(folder, "show " + sessions()[0].string());
  EXPECT_TRUE(shown.out.contains("\nbackends   ")) << shown.out;
  EXPECT_TRUE(shown.out.contains("RPC0[" + server_.endpoint() + "]")) << shown.out;
}

// With --exact each op has a time, as in a session of tt record, and the same accesses.
TEST_F(AttachDevices, ExactTimesEachOp) {
  make_model("small");
  const std::string command = completion("-ngl 6");
  const Result without = plain(command);
  ASSERT_EQ(without.code, 0) << without.err;
  ASSERT_EQ(attached(command, "--exact").out, without.out);
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  {
    const SessionReader reader = open(sessions()[0]);
    EXPECT_TRUE(splits_of(reader).empty());
    const Step step = *reader.step(StepId{4});
    EXPECT_EQ(step.timing, Timing::Exact);
    EXPECT_EQ(step.op_ends.size(), (*reader.graph(step.graph))->ops.size());
  }
  const std::string sums =
      "\"SELECT step, tensor_name, write, sum(size_bytes) FROM access GROUP BY 1, 2, 3 "
      "ORDER BY 1, 2, 3\"";
  const Result exact = run_tt(folder, std::format("sql {} {}", sessions()[0].string(), sums));
  fs::remove_all(folder / "traces");
  ASSERT_EQ(attached(command).out, without.out);
  ASSERT_EQ(sessions().size(), 1U);
  const Result by_splits = run_tt(folder, std::format("sql {} {}", sessions()[0].string(), sums));
  EXPECT_GT(std::ranges::count(exact.out, '\n'), 500);
  EXPECT_EQ(by_splits.out, exact.out);
}

// All of a mixture on the server: what its routers choose is computed there, and not read.
TEST_F(AttachDevices, ChoicesOfADeviceAreCountedAsMissing) {
  make_model("moe");
  const std::string command = completion("-ngl 99");
  const Result without = plain(command), with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  ASSERT_EQ(sessions().size(), 1U) << with.err;
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(*reader.step_count(), 6U);
  EXPECT_EQ(splits_of(reader).size(), 6U);
  EXPECT_GT(reader.losses()->slot_values_dropped, 0U);
  EXPECT_EQ(validate(sessions()[0])->verdict().find("NOT"), std::string::npos)
      << validate(sessions()[0])->verdict();
}

// A device that is there and computes nothing changes nothing.
TEST_F(AttachDevices, UnusedDeviceLeavesOpsTheirTimes) {
  make_model("small");
  const Result with = attached(completion("-ngl 0 -nkvo --no-op-offload"));
  ASSERT_EQ(with.code, 0) << with.err;
  ASSERT_EQ(sessions().size(), 1U) << with.err;
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_TRUE(splits_of(reader).empty());
  EXPECT_EQ(reader.step(StepId{5})->timing, Timing::Fast);
}

}  // namespace
}  // namespace tt
