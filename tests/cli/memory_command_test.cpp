// tt memory: predictions for a session, and measurements.
#include <gtest/gtest.h>

#include <linux/magic.h>
#include <sys/vfs.h>
#include <filesystem>
#include <format>
#include <limits>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/cli/tt_program.h"
#include "tracer/modelgen/model_writer.h"

namespace tt {
namespace {

using nlohmann::json;

constexpr double kMebi = 1U << 20;

json outlook_of(const test::TempFolder& folder, const std::string& arguments) {
  const Result result = run_tt(folder, "memory " + arguments + " --json");
  EXPECT_EQ(result.code, 0) << result.err;
  return json::parse(result.out);
}

const json& way_named(const json& outlook, const std::string& name) {
  for (const json& way : outlook["ways"])
    if (way["way"] == name) return way;
  throw std::runtime_error(name);
}

bool is_on_disk(const test::TempFolder& folder) {
  struct statfs where{};
  EXPECT_EQ(::statfs(folder.path().c_str(), &where), 0);
  return where.f_type != TMPFS_MAGIC;
}

// 48 MiB, of which a token reads 36 MiB.
void record_dense(const test::TempFolder& folder, const std::string& options) {
  ASSERT_EQ(
      run_tt(folder, "model small --layers 4 --embd 1024 --heads 8 --ff 4096 --force -o m.gguf")
          .code,
      0);
  ASSERT_EQ(run_tt(folder,
                   "record -m m.gguf --tokens 1,2,3,4,5,6,7,8 --ubatch-size 4 -n 6 --ignore-eos "
                   "-o s.ttrace " +
                       options)
                .code,
            0);
}

TEST(MemoryCommand, PredictsEveryWayForASession) {
  const test::TempFolder folder;
  record_dense(folder, "--no-repack");
  const json outlook = outlook_of(folder, "s.ttrace --budget 20MiB");
  const double weights = outlook["weights_bytes"];
  EXPECT_GT(weights, 30 * kMebi);
  EXPECT_LT(weights, 48 * kMebi);
  const double least = outlook["least"]["bytes_per_token"];
  EXPECT_EQ(least, weights - 20 * kMebi);
  const auto bytes = [&](const char* way) {
    return way_named(outlook, way)["predicted"]["bytes_per_token"].get<double>();
  };
  const auto rate = [&](const char* way) {
    return way_named(outlook, way)["predicted"]["tokens_per_second"].get<double>();
  };
  EXPECT_GE(bytes("plain"), weights);
  EXPECT_GE(bytes("pin+prefetch"), least);
  EXPECT_LT(bytes("pin+prefetch"), 1.6 * least);
  EXPECT_GT(bytes("prefetch"), bytes("pin+prefetch"));
  // Both read by faults. Whether reading ahead is faster depends on rates that are measured one
  // after the other, on a busy machine too.
  EXPECT_GT(rate("pin"), rate("plain"));
  const double disk_rate = outlook["disk_bytes_per_second"];
  const double fault_rate = outlook["fault_bytes_per_second"].is_null()
                                ? disk_rate
                                : outlook["fault_bytes_per_second"].get<double>();
  EXPECT_LE(way_named(outlook, "plain")["predicted"]["low"], rate("plain"));
  EXPECT_GE(way_named(outlook, "plain")["predicted"]["high"], rate("plain"));
  // Unknown on a machine that is busy in every step.
  EXPECT_EQ(outlook["compute_seconds"].is_null(), outlook["disturbed_steps"] == 5);
  if (is_on_disk(folder)) {
    EXPECT_GE(outlook["fault_bytes"], 4096);
    EXPECT_LE(outlook["fault_bytes"], 48 * kMebi);
    EXPECT_GT(outlook["fault_bytes_per_second"], 0);
  } else {
    EXPECT_TRUE(outlook["fault_bytes"].is_null());
  }
  EXPECT_GT(outlook["recorded"]["evaluated_per_second"], 0);
  EXPECT_TRUE(outlook["advice"].get<std::string>().starts_with("Use --memory-budget 20MiB"))
      << outlook["advice"];
  // A prompt: compute time hides what must be read, but no more than plain waits. Its second pass:
  // the first one is learned. Unknown on a machine that is busy meanwhile.
  const json& prompt = outlook["prompt"];
  if (!prompt.is_null()) {
    EXPECT_EQ(prompt["tokens"], 4);
    const double compute = prompt["compute_seconds"];
    EXPECT_NEAR(prompt["plain_seconds"], compute + weights / fault_rate, 1e-6);
    EXPECT_NEAR(prompt["least_seconds"], std::max(compute, least / disk_rate), 1e-6);
    EXPECT_GT(prompt["times_plain_at_most"], 1);
  }

  const json fits = outlook_of(folder, "s.ttrace --budget 1GiB");
  EXPECT_EQ(fits["least"]["bytes_per_token"], 0);
  if (!fits["prompt"].is_null()) {
    EXPECT_EQ(fits["prompt"]["times_plain_at_most"], 1);
  }
  EXPECT_EQ(fits["advice"], "All weights fit into the budget: a memory budget changes nothing.");
  // The file was just written, so its pages are in memory.
  const char* in_memory = "the weights were in memory when it was recorded";
  const Result small = run_tt(folder, "memory s.ttrace --budget 20MiB");
  EXPECT_TRUE(small.out.contains(in_memory)) << small.out;
  const Result large = run_tt(folder, "memory s.ttrace --budget 1GiB");
  EXPECT_FALSE(large.out.contains(in_memory)) << large.out;
  const Result text = run_tt(folder, "memory s.ttrace");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* word : {"weights", "limit", "disk", "recorded", "waits", "least", "plain",
                           "pin+prefetch", "when it was recorded"})
    EXPECT_TRUE(text.out.contains(word)) << text.out;
  // The same sentence as in the report and in the summary of the page.
  const Result report = run_tt(folder, "report s.ttrace --format md");
  const std::string enough = text.out.substr(text.out.find("enough     ") + 11);
  EXPECT_TRUE(report.out.contains(enough.substr(0, enough.find(". Not counted")))) << text.out;
  EXPECT_TRUE(enough.contains(" of RAM are enough, so that ")) << text.out;
  const json facts = json::parse(run_tt(folder, "show s.ttrace --json").out)["facts"];
  std::uint64_t beside = 0;
  for (const char* name : {"result.kv_bytes", "result.compute_bytes", "result.logits_bytes"})
    beside += std::stoull(facts.at(name).get<std::string>());
  EXPECT_EQ(outlook_of(folder, "s.ttrace")["kv_and_buffer_bytes"], beside);
}

// The recording itself says that the plan was active, and so does what is read from it.
TEST(MemoryCommand, ABudgetIsReported) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model small --layers 4 --embd 1024 --heads 8 --ff 4096 -o m.gguf").code,
            0);
  // The plan is made beside the first steps: on a busy machine it may come after many of them.
  Result recorded;
  for (int tokens = 6; tokens <= 384; tokens *= 4) {
    recorded = run_tt(folder, std::format("record -m m.gguf --tokens 1,2,3 -n {} --ignore-eos "
                                          "--memory-budget 24MiB -o s.ttrace --force",
                                          tokens));
    EXPECT_EQ(recorded.code, 0) << recorded.err;
    if (!recorded.err.contains("memory budget learning: ")) break;
  }
  EXPECT_TRUE(recorded.err.contains("memory budget active: ")) << recorded.err;
  const Result shown = run_tt(folder, "show s.ttrace");
  EXPECT_TRUE(shown.out.contains("\nbudget     active: ")) << shown.out;
  // What the plan had, not what would be free now.
  const Result memory = run_tt(folder, "memory s.ttrace");
  EXPECT_TRUE(memory.out.contains("for weights, as the plan of the session had")) << memory.out;
  EXPECT_LE(outlook_of(folder, "s.ttrace")["budget"], 24 * kMebi);
  const Result report = run_tt(folder, "report s.ttrace --format md");
  EXPECT_TRUE(report.out.contains("Memory budget active: ")) << report.out;
}

// Times of a disturbed recording are no base of a prediction, and the answer says so.
TEST(MemoryCommand, NamesWhatDisturbedTheRecording) {
  const test::TempFolder folder;
  const unsigned threads = 4 * std::thread::hardware_concurrency();
  record_dense(folder, "--no-repack -t " + std::to_string(threads));
  const std::string machine = outlook_of(folder, "s.ttrace --budget 20MiB")["machine"];
  EXPECT_TRUE(machine.contains("contended")) << machine;
  const Result text = run_tt(folder, "memory s.ttrace --budget 20MiB");
  EXPECT_TRUE(text.out.contains("\nmachine    " + machine)) << text.out;
}

// The weights of a repacked session are planned as if they had been mapped.
TEST(MemoryCommand, RepackingDoesNotChangeThePlan) {
  const test::TempFolder folder;
  record_dense(folder, "--no-repack");
  const json mapped = outlook_of(folder, "s.ttrace --budget 20MiB");
  record_dense(folder, "--force --repack");
  const json repacked = outlook_of(folder, "s.ttrace --budget 20MiB");
  EXPECT_EQ(mapped["weights_bytes"], repacked["weights_bytes"]);
  // The plans depend on the speed of the disk, which is measured each time.
  EXPECT_EQ(mapped["least"]["bytes_per_token"], repacked["least"]["bytes_per_token"]);
}

TEST(MemoryCommand, ReplaysTheExpertsOfASession) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe --layers 6 --embd 512 --ff 512 -o m.gguf").code, 0);
  ASSERT_EQ(run_tt(folder,
                   "record -m m.gguf --tokens 1,2,3 -n 24 --ignore-eos --temp 1 --seed 1 "
                   "-o s.ttrace")
                .code,
            0);
  const json outlook = outlook_of(folder, "s.ttrace --budget 24MiB");
  EXPECT_GT(outlook["expert_bytes"], outlook["expert_bytes_per_token"]);
  EXPECT_GT(outlook["expert_bytes_per_token"], 0);
  EXPECT_GT(outlook["expert_hits_uniform"], 0);
  EXPECT_LT(outlook["expert_hits_uniform"], 1);
  EXPECT_GT(outlook["expert_hits"], 0);
  const Result text = run_tt(folder, "memory s.ttrace --budget 24MiB");
  EXPECT_TRUE(text.out.contains("of the used experts are in the cache")) << text.out;
}

// No way reads less than the bound or is faster, and the advice is the best row, at every budget.
// Both count the same tokens, and every way has the same memory.
TEST(MemoryCommand, NoRowIsBelowTheBoundAndTheAdviceIsTheBestRow) {
  for (const char* shape : {"small", "moe", "qwen3-moe-like", "gpt-oss-like"}) {
    SCOPED_TRACE(shape);
    const test::TempFolder folder;
    ASSERT_EQ(run_tt(folder, std::format("model {} -o m.gguf", shape)).code, 0);
    ASSERT_EQ(run_tt(folder,
                     "record -m m.gguf --tokens 1,2,3 -n 40 --ignore-eos --temp 1 --seed 1 -q -t 1 "
                     "--no-repack -o s.ttrace")
                  .code,
              0);
    const double size = static_cast<double>(std::filesystem::file_size(folder / "m.gguf"));
    double last_least = std::numeric_limits<double>::max();
    for (const double part : {0.1, 0.5, 0.9, 1.5}) {
      SCOPED_TRACE(part);
      const json outlook = outlook_of(
          folder, std::format("s.ttrace --budget {}KiB", static_cast<int>(part * size / 1024)));
      const json& least = outlook["least"];
      const double bytes = least["bytes_per_token"];
      EXPECT_LE(bytes, last_least);
      last_least = bytes;
      // What is used per token and not kept, however well it is chosen.
      const double used =
          outlook["weights_bytes"].get<double>() + outlook["expert_bytes_per_token"].get<double>();
      EXPECT_GE(bytes + 1, used - part * size);
      EXPECT_LE(bytes, used);
      json plain;
      for (const json& way : outlook["ways"]) {
        const json& predicted = way["predicted"];
        if (predicted.is_null()) continue;
        EXPECT_GE(predicted["bytes_per_token"].get<double>(), bytes * (1 - 1e-9)) << way;
        EXPECT_LE(predicted["tokens_per_second"].get<double>(),
                  least["tokens_per_second"].get<double>() * (1 + 1e-9))
            << way;
        if (way["way"] == "plain") plain = predicted["tokens_per_second"];
      }
      const std::string advice = outlook["advice"];
      const bool fits =
          outlook["weights_bytes"].get<double>() + outlook["expert_bytes"].get<double>() <
          part * size - 65536;
      if (fits) {
        EXPECT_TRUE(advice.starts_with("All weights fit")) << advice;
        continue;
      }
      if (advice.starts_with("All weights fit")) continue;  // the last page decides
      double most = 0;
      for (const json& way : outlook["ways"])
        if (!way["predicted"].is_null())
          most = std::max(most, way["predicted"]["tokens_per_second"].get<double>());
      if (most < 1.02 * plain.get<double>()) {
        EXPECT_EQ(advice, "No way is faster than plain: do not set a budget.");
        continue;
      }
      const bool pins = !advice.contains("--no-pin"), reads = !advice.contains("--no-prefetch");
      const std::string advised = pins && reads ? "pin+prefetch" : pins ? "pin" : "prefetch";
      EXPECT_TRUE(advice.starts_with("Use --memory-budget")) << advice;
      EXPECT_GE(way_named(outlook, advised)["predicted"]["tokens_per_second"].get<double>(),
                0.98 * most)
          << advice << " " << outlook["ways"];
    }
  }
}

// Where routing is near uniform, it says that choosing experts cannot help, and only there.
TEST(MemoryCommand, SaysWhetherRoutingIsUniform) {
  for (const float skew : {1.0F, 8.0F}) {
    SCOPED_TRACE(skew);
    const test::TempFolder folder;
    modelgen::ModelSpec spec;
    spec.shape = "moe";
    spec.router_skew = skew;
    ASSERT_TRUE(modelgen::write_model(spec, folder / "m.gguf").has_value());
    ASSERT_EQ(run_tt(folder,
                     "record -m m.gguf --no-repack -p 'Once upon a time' -n 60 -t 1 "
                     "--ignore-eos -q -o s.ttrace")
                  .code,
              0);
    const Result text = run_tt(folder, "memory s.ttrace --budget 12MiB");
    ASSERT_EQ(text.code, 0) << text.err;
    const json outlook = outlook_of(folder, "s.ttrace --budget 12MiB");
    const bool is_uniform =
        outlook["expert_hits"].get<double>() < 1.1 * outlook["expert_hits_uniform"].get<double>();
    EXPECT_EQ(text.out.contains("Routing is near uniform: choosing which experts to keep"),
              is_uniform)
        << text.out;
  }
}

TEST(MemoryCommand, TriesEveryWay) {
  const test::TempFolder folder;
  record_dense(folder, "--no-repack");
  const json outlook = outlook_of(folder, "s.ttrace --budget 20MiB --try -n 6 -t 1");
  EXPECT_TRUE(outlook["tried"].get<std::string>().contains("memory limit"));
  const bool on_disk = is_on_disk(folder);
  ASSERT_EQ(outlook["ways"].size(), 5U);
  for (const json& way : outlook["ways"]) {
    SCOPED_TRACE(way["way"]);
    // llama.cpp's own means is measured beside: it may lock as much as it is allowed to.
    if (way["way"] == "mmap+mlock") {
      EXPECT_TRUE(way["predicted"].is_null());
      EXPECT_TRUE(way["measured"].is_object() || !way["problem"].get<std::string>().empty());
      continue;
    }
    ASSERT_EQ(way["problem"], "");
    EXPECT_GT(way["measured"]["tokens_per_second"], 0);
    if (on_disk && way["way"].get<std::string>().contains("prefetch")) {
      EXPECT_GT(way["measured"]["bytes_per_token"], 8 * kMebi);
    }
  }
  EXPECT_LE(outlook["budget"], 20 * kMebi);
  EXPECT_GT(outlook["budget"], 10 * kMebi);
}

TEST(MemoryCommand, ModelIsRecordedFirst) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model small -o m.gguf").code, 0);
  const json outlook = outlook_of(folder, "--model m.gguf -n 3 -t 1");
  EXPECT_GT(outlook["weights_bytes"], 0);
  EXPECT_GT(outlook["recorded"]["evaluated_per_second"], 0);
}

TEST(MemoryCommand, ErrorsHaveDistinctExitCodes) {
  const test::TempFolder folder;
  EXPECT_EQ(run_tt(folder, "memory none.ttrace").code, 1);
  EXPECT_EQ(run_tt(folder, "memory --model none.gguf").code, 1);
  const Result neither = run_tt(folder, "memory");
  EXPECT_EQ(neither.code, 2);
  EXPECT_TRUE(neither.err.contains("--model")) << neither.err;
  EXPECT_EQ(run_tt(folder, "memory none.ttrace --model none.gguf").code, 2);
  EXPECT_EQ(run_tt(folder, "memory none.ttrace --budget much").code, 2);
}

}  // namespace
}  // namespace tt
