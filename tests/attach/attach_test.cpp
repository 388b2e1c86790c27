// tt attach on real programs of llama.cpp: what it records equals what tt record does, and the
// program computes what it does without it.
#include <ggml.h>
#include <gguf.h>

#include <array>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "tests/attach/attach_fixture.h"
#include "tests/support/models/arch_model.h"
#include "tests/support/small_disk.h"
#include "tracer/engine/machine_rate.h"
#include "tracer/engine/read_bandwidth.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"

namespace tt {
namespace {

// ---------------------------------------------------------------- equal to tt record

class EqualsRecord : public Attach, public ::testing::WithParamInterface<const char*> {};

constexpr char kSums[] =
    "SELECT step, op, operation_type, tensor_name, tensor_type, memory_source, write, "
    "expert_id, count(*) n, sum(size_bytes) bytes FROM access "
    "GROUP BY step, op, operation_type, tensor_name, tensor_type, memory_source, write, "
    "expert_id ORDER BY 1, 2, 4, 7, 8";

TEST_P(EqualsRecord, OpsListsAndAccessSums) {
  make_model(GetParam());
  const std::string completion =
      "llama-completion -m model.gguf -p 'The wind was cold' -n 6 --ignore-eos -no-cnv "
      "--no-warmup -t 1 -s 1 --temp 0 -c 512";
  const Result without = plain(completion);
  ASSERT_EQ(without.code, 0) << without.err;
  const Result with = attached(completion);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_FALSE(with.out.empty());
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  const SessionInfo info = *open(sessions()[0]).info();
  const std::string program =
      std::format("llama-completion, process {}, ggml {}", info.fact("attach.pid"), ggml_version());
  const Result shown = run_tt(folder, "show " + sessions()[0].string());
  EXPECT_TRUE(shown.out.contains("\nprogram    " + program + "\n")) << shown.out;
  const nlohmann::json in_json = run_json(folder, "show --json " + sessions()[0].string());
  EXPECT_EQ(in_json["program"], (nlohmann::json{{"name", "llama-completion"}, {"text", program}}));
  const Result report = run_tt(folder, "report --format md " + sessions()[0].string());
  EXPECT_TRUE(report.out.contains(", " + program + "\n")) << report.out;
  const Result recorded =
      run_tt(folder,
             "record -m model.gguf -p 'The wind was cold' -n 6 --ignore-eos -t 1 --temp 0 -c 512 "
             "-o r.ttrace");
  ASSERT_EQ(recorded.code, 0) << recorded.err;

  expect_same(sessions()[0]);
}

}  // namespace

void Attach::expect_same(const fs::path& file, std::uint32_t steps) {
  const SessionReader ours = open(folder / "r.ttrace"), theirs = open(file);
  ASSERT_EQ(*ours.step_count(), steps);
  ASSERT_EQ(*theirs.step_count(), steps);
  std::uint32_t ops = 0;
  for (std::uint32_t i = 0; i < steps; ++i) {
    SCOPED_TRACE(i);
    const Step a = *ours.step(StepId{i}), b = *theirs.step(StepId{i});
    EXPECT_EQ(a.n_tokens, b.n_tokens);
    EXPECT_EQ(a.phase, b.phase);
    EXPECT_EQ(a.op_ends.size(), b.op_ends.size());
    EXPECT_TRUE(a.slots == b.slots);
    const auto mine = ours.graph(a.graph), its = theirs.graph(b.graph);
    ASSERT_TRUE(mine.has_value() && its.has_value());
    EXPECT_EQ((*mine)->fingerprint, (*its)->fingerprint);
    EXPECT_TRUE(**mine == **its);
    ops += static_cast<std::uint32_t>((*its)->ops.size());
  }
  EXPECT_GT(ops, 300U);
  const auto tokens = *ours.tokens(0, 100), their_tokens = *theirs.tokens(0, 100);
  ASSERT_EQ(tokens.size(), their_tokens.size() + 1) << "the last one is not evaluated";
  for (std::size_t i = 0; i < their_tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].id, their_tokens[i].id);
    EXPECT_EQ(tokens[i].position, their_tokens[i].position);
    EXPECT_EQ(tokens[i].generated, their_tokens[i].generated);
  }
  const Result sums = run_tt(folder, std::format("sql r.ttrace '{}'", kSums));
  const Result their_sums = run_tt(folder, std::format("sql {} '{}'", file.string(), kSums));
  EXPECT_EQ(sums.code, 0) << sums.err;
  EXPECT_GT(std::ranges::count(sums.out, '\n'), 1000);
  EXPECT_EQ(sums.out, their_sums.out);
}

namespace {

// Of layers with attention and layers with a state.
TEST_F(Attach, HybridModelEqualsRecord) {
  fs::copy_file(test::arch_model("jamba-dense"), folder / "model.gguf");
  const Result with = attached(built_program("attached_program") + " model.gguf - 6");
  ASSERT_EQ(with.code, 0) << with.err;
  ASSERT_EQ(sessions().size(), 1U);
  const Result recorded = run_tt(folder,
                                 "record -m model.gguf --tokens 1,2,3,4 -n 6 --ignore-eos -t 1 "
                                 "--temp 0 -c 256 -o r.ttrace");
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  expect_same(sessions()[0]);
}

constexpr char kPrompt[] = "-p 'The wind was cold' -n 6 --ignore-eos -t 1 --temp 0 -c 512";

// The encoder reads the prompt in a step without a cache, before the steps of the decoder.
TEST_F(Attach, EncoderAndDecoderEqualRecord) {
  make_model("t5");
  const std::string command =
      std::format("llama-completion -m model.gguf -no-cnv --no-warmup {}", kPrompt);
  const Result without = plain(command), with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  ASSERT_EQ(sessions().size(), 1U) << with.err;
  expect_valid(sessions()[0]);
  EXPECT_EQ(open(sessions()[0]).step(StepId{0})->phase, Phase::Encode);
  EXPECT_EQ(open(sessions()[0]).step(StepId{1})->phase, Phase::Prompt);
  const Result recorded =
      run_tt(folder, std::format("record -m model.gguf {} -o r.ttrace", kPrompt));
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  expect_same(sessions()[0], 7);
}

// Its weights are in a buffer: they are found by their names and shapes.
TEST_F(Attach, ModelThatIsNotMappedIsFoundByItsTensors) {
  make_model("small");
  make_model("small --layers 3", "other");
  fs::copy_file(folder / "model.gguf", folder / "copy.gguf");
  const Result with = attached(
      std::format("llama-completion -m copy.gguf -no-cnv --no-warmup -lm none {}", kPrompt));
  ASSERT_EQ(with.code, 0) << with.err;
  ASSERT_EQ(sessions().size(), 1U) << with.err;
  expect_valid(sessions()[0]);
  const SessionInfo info = *open(sessions()[0]).info();
  ASSERT_EQ(info.model_files.size(), 1U);
  EXPECT_EQ(fs::path(info.model_files[0].path).filename(), "copy.gguf");
  EXPECT_EQ(info.fact("trace.offsets_by_address"), "0");
  EXPECT_GT(info.fact_number("trace.weights").value_or(0), 50U);
  EXPECT_EQ(info.fact("trace.offsets_by_name"), info.fact("trace.weights"));
  const Result recorded =
      run_tt(folder, std::format("record -m copy.gguf -lm none {} -o r.ttrace", kPrompt));
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  expect_same(sessions()[0]);
}

// An adapter of rank 2 for the query of the first layer; returns the bytes of its two tensors.
std::array<std::size_t, 2> write_adapter(const fs::path& model, const fs::path& file) {
  constexpr std::int64_t kRank = 2;
  const auto index = GgufIndex::open(model);
  EXPECT_TRUE(index.has_value());
  const std::string query = "blk.0.attn_q.weight";
  const GgufTensor* of = index->find(query);
  EXPECT_NE(of, nullptr);
  const GgmlContext tensors(
      ggml_init({.mem_size = 1 << 22, .mem_buffer = nullptr, .no_alloc = false}));
  const GgufContext gguf(gguf_init_empty());
  gguf_set_val_str(gguf.get(), "general.type", "adapter");
  gguf_set_val_str(gguf.get(), "general.architecture", "llama");
  gguf_set_val_str(gguf.get(), "adapter.type", "lora");
  gguf_set_val_f32(gguf.get(), "adapter.lora.alpha", 2);
  const auto add = [&](const std::string& name, std::int64_t columns, std::int64_t rows) {
    ggml_tensor* const one = ggml_new_tensor_2d(tensors.get(), GGML_TYPE_F32, columns, rows);
    ggml_set_name(one, name.c_str());
    for (std::int64_t i = 0; i < columns * rows; ++i)
      ggml_get_data_f32(one)[i] = static_cast<float>(i * 37 % 101 - 50) / 25;
    gguf_add_tensor(gguf.get(), one);
    return ggml_nbytes(one);
  };
  const std::array bytes = {add(query + ".lora_a", of->ne[0], kRank),
                            add(query + ".lora_b", kRank, of->ne[1])};
  EXPECT_TRUE(gguf_write_to_file(gguf.get(), file.c_str(), false));
  return bytes;
}

// The tensors of an adapter are read in each step, and the model is still found.
TEST_F(Attach, AdapterIsRecorded) {
  make_model("small");
  const auto bytes = write_adapter(folder / "model.gguf", folder / "adapter.gguf");
  const std::string command =
      std::format("llama-completion -m model.gguf -no-cnv --no-warmup {}", kPrompt);
  const Result bare = plain(command), without = plain(command + " --lora adapter.gguf");
  ASSERT_EQ(without.code, 0) << without.err;
  EXPECT_NE(without.out, bare.out) << "it has an effect";
  const Result with = attached(command + " --lora adapter.gguf");
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  ASSERT_EQ(sessions().size(), 1U) << with.err;
  expect_valid(sessions()[0]);
  EXPECT_EQ(fs::path(open(sessions()[0]).info()->model_files.at(0).path).filename(), "model.gguf");
  const Result read = run_tt(
      folder, std::format("sql {} \"SELECT tensor_name, count(DISTINCT step) AS steps, "
                          "sum(size_bytes) / count(DISTINCT step) AS bytes, "
                          "group_concat(DISTINCT memory_source) AS source FROM access "
                          "WHERE tensor_name LIKE '%.lora%' AND NOT write GROUP BY 1\" --csv",
                          sessions()[0].string()));
  EXPECT_EQ(read.out,
            std::format("tensor_name,steps,bytes,source\nblk.0.attn_q.weight.lora_a,6,{},buffer\n"
                        "blk.0.attn_q.weight.lora_b,6,{},buffer\n",
                        bytes[0], bytes[1]))
      << read.err;
}

INSTANTIATE_TEST_SUITE_P(Models, EqualsRecord, ::testing::Values("small", "moe", "mamba"),
                         [](const auto& param) { return std::string(param.param); });

// What the machine does per second is not measured while the program runs, but looked up.
TEST_F(Attach, TakesTheStoredRatesOfTheMachine) {
  make_model("small");
  const fs::path cache = folder / "cache", rates = cache / "tensor-trace";
  const auto record = [&] {
    fs::remove_all(folder / "traces");
    const Result result =
        run_tt(folder,
               std::format("attach -o traces -- {} model.gguf - 6 </dev/null",
                           built_program("attached_program")),
               std::format("{} XDG_CACHE_HOME={}", environment(), cache.string()));
    EXPECT_EQ(result.code, 0) << result.err;
    return open(sessions().at(0));
  };
  const SessionReader without = record();
  const SessionInfo before = *without.info();
  EXPECT_EQ(before.fact_number("host.last_cache_bytes").value_or(0), last_cache_bytes());
  EXPECT_EQ(before.fact("host.no_read_bandwidth"), "not_stored");
  EXPECT_EQ(before.fact("host.no_compute_peak"), "not_stored");
  EXPECT_FALSE(fs::exists(rates));
  const std::uint32_t threads = without.step(StepId{0})->threads;
  store_rate(read_bandwidth_file(rates), threads, 12'345'678'901);
  store_rate(compute_peak_file(rates), threads, 98'765'432'100);
  const SessionInfo after = *record().info();
  EXPECT_EQ(after.fact_number("host.read_bandwidth"), 12'345'678'901);
  EXPECT_EQ(after.fact_number("host.read_bandwidth_threads"), threads);
  EXPECT_EQ(after.fact("host.no_read_bandwidth"), "");
  EXPECT_EQ(after.fact_number("host.compute_peak"), 98'765'432'100);
  EXPECT_EQ(after.fact_number("host.compute_peak_threads"), threads);
}

// ---------------------------------------------------------------- programs with callbacks

TEST_F(Attach, ImatrixIsTheSameByteForByte) {
  make_model("small");
  std::ofstream(folder / "text.txt") << contents(source_path("docs/hacking.md")).substr(0, 6000);
  const std::string command = "llama-imatrix -m model.gguf -f text.txt -t 1 -c 128 --chunks 2 -o ";
  ASSERT_EQ(plain(command + "plain.im").code, 0);
  const Result result = attached(command + "attached.im");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_GT(contents(folder / "plain.im").size(), 1000U);
  EXPECT_EQ(contents(folder / "plain.im"), contents(folder / "attached.im"));
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// Its callback splits the graph after each node, so that no ops are fused.
TEST_F(Attach, NodesAreThoseOfEvalCallback) {
  make_model("small");
  const std::string command =
      std::string(kTestPaths.eval_callback) + " -m model.gguf -p Hello -t 1";
  const Result without = plain(command);
  const Result with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  std::vector<std::string> listed;
  std::istringstream lines(without.err + without.out);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kPrefix = "common_debug_cb_eval:";
    const auto end = line.find(" = (");
    if (!line.starts_with(kPrefix) || end == line.npos) continue;
    const auto begin = line.find_first_not_of(' ', kPrefix.size());
    listed.push_back(line.substr(begin, end - begin));
  }
  ASSERT_GT(listed.size(), 300U);
  const SessionReader reader = open(sessions()[0]);
  std::vector<std::string> recorded;
  for (std::uint32_t i = 0; i < *reader.step_count(); ++i) {
    const auto graph = reader.graph(reader.step(StepId{i})->graph);
    for (const Op& op : (*graph)->ops) EXPECT_EQ(op.nodes, 1U) << "not fused";
    for (const Node& node : (*graph)->nodes)
      recorded.push_back(trimmed((*graph)->tensor(node.output).name));
  }
  EXPECT_EQ(recorded, listed);
}

TEST_F(Attach, LlamaBench) {
  make_model("small");
  const Result result = attached("llama-bench -m model.gguf -p 16 -n 8 -r 1 -t 1");
  ASSERT_EQ(result.code, 0) << result.err;
  ASSERT_EQ(sessions().size(), 2U) << "a context for the prompt and one for generation";
  for (const fs::path& file : sessions()) expect_valid(file);
}

// ---------------------------------------------------------------- a program of its own

// Its abort callback is called as often as without; a forked child has a ring of its own.
TEST_F(Attach, TwoModelsThreeContextsOwnCallbackAndFork) {
  make_model("small");
  make_model("moe", "other");
  const std::string command = built_program("attached_program") + " model.gguf other.gguf 24 fork";
  const Result without = plain(command);
  ASSERT_EQ(without.code, 0) << without.err;
  const Result with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  const auto line = [](const std::string& text, std::size_t n) {
    std::istringstream lines(text);
    std::string out;
    for (std::size_t i = 0; i <= n; ++i) std::getline(lines, out);
    return out;
  };
  EXPECT_EQ(line(with.out, 0), line(without.out, 0)) << "what it computed";
  EXPECT_EQ(line(with.out, 2), line(without.out, 2)) << "what its child computed";
  // Splitting a new graph separates no op from its callback: at least as many calls.
  EXPECT_GE(std::stoi(line(with.out, 1)), std::stoi(line(without.out, 1)));
  ASSERT_EQ(sessions().size(), 4U) << with.err;
  std::map<std::string, int> models;
  std::map<std::string, int> processes;
  for (const fs::path& file : sessions()) {
    expect_valid(file);
    const SessionReader reader = open(file);
    const SessionInfo info = *reader.info();
    EXPECT_EQ(info.state, SessionState::Done);
    ASSERT_EQ(info.model_files.size(), 1U);
    ++models[fs::path(info.model_files[0].path).filename()];
    ++processes[std::string(info.fact("attach.pid"))];
    const std::uint32_t steps = *reader.step_count();
    EXPECT_TRUE(steps == 24 || steps == 3) << steps;
    EXPECT_EQ(*reader.losses(), LossCounters{});
  }
  EXPECT_EQ(models, (std::map<std::string, int>{{"model.gguf", 2}, {"other.gguf", 2}}));
  EXPECT_EQ(processes.size(), 2U);
}

// ---------------------------------------------------------------- versions of the library

#if defined(__x86_64__)
// The libraries of releases of node-llama-cpp, from December 2024 on, loaded as its add-on does.
class AttachVersions : public Attach, public ::testing::WithParamInterface<const char*> {};

TEST_P(AttachVersions, AreRecordedWithTheSameAgent) {
  make_model("small");
  const Result packed =
      plain(std::format("npm pack --silent @node-llama-cpp/linux-x64@{}", GetParam()));
  if (packed.code != 0) GTEST_SKIP() << "the package registry does not answer: " << packed.err;
  ASSERT_EQ(plain("tar xzf *.tgz").code, 0);
  std::string library;
  for (const auto& entry : fs::directory_iterator(folder / "package/bins/linux-x64")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("libllama") && !name.contains("common")) library = entry.path();
  }
  const std::string command =
      std::format("{} {} model.gguf 6", built_program("library_program"), library);
  const Result without = plain(command);
  ASSERT_EQ(without.code, 0) << without.err;
  const Result with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  ASSERT_EQ(sessions().size(), 1U) << with.err;
  EXPECT_FALSE(with.err.contains("tt attach:")) << with.err;
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(*reader.step_count(), 6U);
  EXPECT_GT(reader.step(StepId{5})->op_ends.size(), 150U);
  EXPECT_EQ(reader.step(StepId{5})->timing, Timing::Fast);
}

INSTANTIATE_TEST_SUITE_P(Releases, AttachVersions,
                         ::testing::Values("3.3.0", "3.6.0", "3.9.0", "3.14.0", "3.19.0", "3.22.1"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST_F(Attach, AddOnOfNodeAnswersTheSameByteForByte) {
  make_model("small");
  const Result packed = plain("npm pack --silent @node-llama-cpp/linux-x64@3.22.1");
  if (packed.code != 0) GTEST_SKIP() << "the package registry does not answer: " << packed.err;
  ASSERT_EQ(plain("tar xzf *.tgz").code, 0);
  const std::string command =
      std::format("node {} {} model.gguf 20", source_path("tests/attach/greedy.mjs"),
                  (folder / "package/bins/linux-x64").string());
  // log_flush is no library for node.
  const Result without = plain("env -u LD_PRELOAD " + command);
  ASSERT_EQ(without.code, 0) << without.err;
  EXPECT_GT(without.out.size(), 100U);
  const Result with = run_tt(folder, "attach -o traces -- " + command);
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  ASSERT_EQ(sessions().size(), 1U) << with.err;
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(reader.info()->fact("attach.program"), "node");
  std::string tokens;  // the last one is not evaluated
  for (const Token& token : *reader.tokens(0, 100))
    tokens += token.generated ? std::format(" {}", token.id) : "";
  EXPECT_EQ(std::ranges::count(tokens, ' '), 19);
  EXPECT_TRUE(without.out.contains(tokens + " ")) << tokens;
}
#endif

// ---------------------------------------------------------------- killed and stopped

std::string long_completion(int tokens) {
  return std::format(
      "llama-completion -m model.gguf -p Hello -n {} --ignore-eos -no-cnv --no-warmup -t 1 -s 1 "
      "--temp 0 -c 1024",
      tokens);
}

TEST_F(Attach, KilledProgramLeavesItsSteps) {
  make_model("small");
  Background background(folder, "attach -o traces -- " + long_completion(900));
  ASSERT_TRUE(test::wait_until([&] { return steps_in(sessions()) > 20; }));
  const pid_t program = background.child();
  ASSERT_GT(program, 0);
  ASSERT_EQ(::kill(program, SIGKILL), 0);
  EXPECT_EQ(background.wait(), 128 + SIGKILL);
  ASSERT_EQ(sessions().size(), 1U);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(reader.info()->state, SessionState::Failed);
  EXPECT_NE(reader.info()->error.find("ended by signal 9"), std::string::npos);
  EXPECT_GT(*reader.step_count(), 20U);
  expect_valid(sessions()[0]);
}

TEST_F(Attach, ProgramContinuesWhenItsCollectorIsKilled) {
  make_model("small");
  const std::string command = long_completion(200);
  const Result without = plain(command);
  ASSERT_EQ(without.code, 0);
  Background background(folder, "attach -o traces -- " + command, environment());
  ASSERT_TRUE(test::wait_until([&] { return steps_in(sessions()) > 5; }));
  const pid_t program = background.child();
  ASSERT_EQ(::kill(background.pid(), SIGKILL), 0);
  EXPECT_EQ(background.wait(), -1);
  ASSERT_TRUE(test::wait_until([&] { return ::kill(program, 0) != 0; })) << "it ends by itself";
  EXPECT_EQ(contents(folder / "out"), without.out);
  // The file is recovered when it is opened.
  ASSERT_EQ(sessions().size(), 1U);
  EXPECT_EQ(run_tt(folder, "show " + sessions()[0].string()).code, 0);
  EXPECT_EQ(open(sessions()[0]).info()->state, SessionState::Recovered);
  expect_valid(sessions()[0]);
}

// SIGUSR1 begins and ends the recording.
TEST_F(Attach, RecordsBetweenTwoSignals) {
  make_model("small");
  Background background(folder, "attach --paused -o traces -- " + long_completion(900));
  ASSERT_TRUE(test::wait_until([&] { return contents(folder / "out").size() > 200; }));
  EXPECT_TRUE(sessions().empty()) << "it runs, and nothing is recorded";
  ASSERT_EQ(::kill(background.pid(), SIGUSR1), 0);
  ASSERT_TRUE(test::wait_until([&] { return steps_in(sessions()) > 5; }));
  ASSERT_EQ(::kill(background.pid(), SIGUSR1), 0);
  EXPECT_EQ(background.wait(), 0);
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  const std::uint32_t steps = steps_in(sessions());
  EXPECT_GT(steps, 5U);
  EXPECT_LT(steps, 800U);
  EXPECT_GT(open(sessions()[0]).tokens(0, 1)->front().position, 10);
}

// The collector is stopped while the program fills its ring.
TEST_F(Attach, FullRingLosesTimesAndKeepsTokens) {
  make_model("small");
  Background background(folder, "attach --ring 1 -o traces -- " + long_completion(700));
  ASSERT_TRUE(test::wait_until([&] { return steps_in(sessions()) > 5; }));
  ASSERT_EQ(::kill(background.pid(), SIGSTOP), 0);
  const pid_t program = background.child();
  // A zombie until the collector waits for it.
  ASSERT_TRUE(test::wait_until([&] {
    std::ifstream in(std::format("/proc/{}/stat", program));
    return contents(std::format("/proc/{}/stat", program)).contains(") Z ");
  }));
  ASSERT_EQ(::kill(background.pid(), SIGCONT), 0);
  EXPECT_EQ(background.wait(), 0);
  ASSERT_EQ(sessions().size(), 1U);
  const SessionReader reader = open(sessions()[0]);
  const LossCounters losses = *reader.losses();
  EXPECT_GT(losses.steps_without_times, 0U);
  EXPECT_EQ(losses.steps_not_written, 0U);
  EXPECT_EQ(*reader.step_count(), 700U) << "no token is lost";
  const auto validation = validate(sessions()[0]);
  EXPECT_EQ(validation->verdict(),
            std::format("valid, times of {} steps missing", losses.steps_without_times));
}

// The steps before the error are in the file, and it says how many are missing.
TEST_F(Attach, DiskThatBecomesFullCountsTheStepsAfterIt) {
  make_model("small");
  const test::SmallDisk disk(1);
  ASSERT_EQ(disk.problem(), "");
  fs::create_directory_symlink(disk.path(), folder / "traces");
  constexpr int kTokens = 400;
  const Result without = plain(long_completion(kTokens));
  ASSERT_EQ(without.code, 0) << without.err;
  const Result with = attached(long_completion(kTokens));
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_TRUE(with.err.contains("full")) << with.err;
  ASSERT_EQ(sessions().size(), 1U);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(reader.info()->state, SessionState::Failed);
  const std::uint32_t steps = *reader.step_count();
  EXPECT_GT(steps, 0U);
  EXPECT_GT(reader.losses()->steps_not_written, 0U);
  EXPECT_EQ(steps + reader.losses()->steps_not_written, std::uint64_t{kTokens});
  EXPECT_TRUE(with.err.contains(std::format(": {} steps, ", steps))) << with.err;
}

TEST_F(Attach, FullDiskIsSaidOnceAndTheProgramContinues) {
  make_model("small");
  const test::SmallDisk disk(1);
  ASSERT_EQ(disk.problem(), "");
  fs::create_directory_symlink(disk.path(), folder / "traces");
  for (std::ofstream filler(disk / "filler", std::ios::binary); filler;)
    filler << std::string(4096, 'x') << std::flush;
  const Result without = plain(long_completion(20));
  const Result with = attached(long_completion(20));
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(with.out, without.out);
  EXPECT_TRUE(sessions().empty());
  const std::size_t said = with.err.find("tt attach: ");
  ASSERT_NE(said, std::string::npos) << with.err;
  EXPECT_EQ(with.err.find("tt attach: ", said + 1), std::string::npos) << with.err;
  EXPECT_TRUE(with.err.substr(said).starts_with(
      "tt attach: The program continues and is not recorded: the disk that holds "))
      << with.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(disk.path()), {}), 1) << "no partial file";
  EXPECT_NE(attached("llama-completion -m absent.gguf").code, 0) << "its own exit status";
}
TEST_F(Attach, RefusesAnotherRule) {
  for (const char* rule : {"slower-than 200ms", "faster-than 1ms/token", "slower-than 1m/token",
                           "slower-than ms/token", "slower-than 0ms/token"}) {
    const Result result = attached("true", std::format("--when '{}'", rule));
    EXPECT_NE(result.code, 0);
    EXPECT_TRUE(result.err.contains(
        std::format("--when: must be a rule such as 'slower-than 200ms/token', not '{}'", rule)))
        << result.err;
  }
}
}  // namespace
}  // namespace tt
