// Report text for given figures: each advice appears exactly when its condition holds.
#include "analysis/report/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/findings/session_findings.h"
#include "api/text/finding_text.h"
#include "tests/analysis/report/report_check.h"
#include "tests/support/command_output.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

BreakdownRow row(const char* name, double bytes, double time_ns) {
  const TraceSums sums{.bytes_read = bytes,
                       .bytes_written = 0,
                       .reads = 1,
                       .writes = 0,
                       .executions = 1,
                       .time_ns = time_ns};
  return {.name = name, .key = 0, .all = sums, .prompt = {}, .generate = sums, .step = {}};
}

// The same rows, of one step.
StepCosts costs(const Breakdown& of) {
  StepCosts out{.steps = 1, .timed = {.used = 1, .verdict = {}}, .total = of.total.all, .rows = {}};
  for (const BreakdownRow& row : of.rows)
    out.rows.push_back({.name = row.name, .key = row.key, .sums = row.all});
  for (StepCost& row : out.rows) row.share = row.sums.time_ns / out.total.time_ns;
  return out;
}

// 10 MiB of weights read twice in 1 ms, in enough memory: there is nothing to advise.
ReportData default_figures() {
  ReportData f;
  f.info = SmallSession::small_info();
  f.info.facts = {{"context.threads", "8"},
                  {"host.cores", "8"},
                  {"host.ram_bytes", "1000000000"},
                  {"context.repack", "on"}};
  f.generated_tokens = 2;
  f.generate_time = Ns{1'000'000};
  f.speed = {.tokens = 1, .ns = 1'000'000, .first_token_ns = 2'000'000, .sample_ns = 100'000};
  f.token_ms = {0.4, 0.6};
  f.by_op_kind.rows = {row("MUL_MAT", 1e6, 1e5), row("GLU", 1e6, 9e5)};
  f.by_op_kind.total = row("all", 2e6, 1e6);
  f.by_op_kind.disk.bytes_read = 2e6;
  f.by_tensor = f.by_op_kind;
  for (const Axis by : {Axis::OpKind, Axis::Component, Axis::Layer})
    f.costs[by] = costs(f.by_op_kind);
  f.weights_read = Bytes{20 << 20};
  f.weights_distinct = Bytes{10 << 20};
  f.mapped_read = f.weights_read;
  f.mapped_distinct = f.weights_distinct;
  f.available = Bytes{1'000'000'000};
  f.lru = {{.capacity = Bytes{0}},
           {.capacity = Bytes{5 << 20}},
           {.capacity = Bytes{10 << 20}, .reads = 2, .bytes = Bytes{10 << 20}}};
  f.pin = f.belady = f.lru;
  f.pin[1].bytes = f.belady[1].bytes = Bytes{5 << 20};
  f.room.pins = {.memory = Bytes{5 << 20},
                 .held = Bytes{5 << 20},
                 .saved = Bytes{5 << 20},
                 .weights = {{.tensor = "output.weight",
                              .experts = {},
                              .held = Bytes{5 << 20},
                              .reads = 2,
                              .saved = Bytes{5 << 20}}}};
  f.room.belady = f.belady[1];
  f.devices = {{.name = "CPU", .ns = 1e6, .slowest = "MUL_MAT", .slowest_ns = 9e5}};
  return f;
}

std::vector<std::string> findings_of(const ReportData& data) {
  std::vector<std::string> findings;
  for (const Finding& one : session_findings(data)) findings.push_back(finding_text(one));
  return findings;
}

std::string headline_limit(const ReportData& data) {
  return headline_of(session_findings(data)).back().value;
}

// Steps that read 6 to 7 GB/s, on a machine that reads `bandwidth` bytes per second.
void set_bandwidth(ReportData& f, std::uint64_t bandwidth) {
  f.info.facts.emplace_back("host.read_bandwidth", std::to_string(bandwidth));
  f.info.facts.emplace_back("host.read_bandwidth_threads", "8");
  for (int i = 0; i < 20; ++i) f.read_rates.clean.push_back(6e9 + 5e7 * i);
}

std::set<std::string> first_words(const std::vector<Advice>& advice) {
  std::set<std::string> words;
  for (const Advice& one : advice) {
    const std::string text = advice_text(one).advice;
    words.insert(text.substr(0, text.find(' ', text.find(' ') + 1)));
  }
  return words;
}

TEST(Report, ReportsPageFaultsByTensor) {
  const auto text_of = [](const ReportData& f) {
    const Report report = report_of(f);
    std::string all;
    for (const Finding& finding : report.findings) all += finding_text(finding) + "\n";
    for (const ReportSection& section : report.sections) {
      for (const std::string& text : section.text) all += text + "\n";
      if (section.title != "Page faults by tensor") continue;
      for (const auto& cells : section.rows)
        for (const std::string& cell : cells) all += cell + "|";
    }
    return all;
  };
  ReportData f = default_figures();
  EXPECT_NE(text_of(f).find("Page faults were not recorded"), std::string::npos);
  f.info.facts.emplace_back("trace.page_faults", "perf");
  EXPECT_NE(text_of(f).find("No page fault was recorded"), std::string::npos);
  f.by_tensor.rows = {row("a", 1, 1), row("b", 1, 1), row("c", 1, 1)};
  f.by_tensor.rows[0].all.faults = 1;
  f.by_tensor.rows[1].all.faults = 6;
  f.by_tensor.rows[1].prompt.faults = 4;
  f.by_tensor.rows[1].generate.faults = 2;
  f.by_tensor.total.all.faults = 8;
  f.by_tensor.total.generate.faults = 3;
  const std::string text = text_of(f);
  EXPECT_NE(text.find("waited for the disk 8 times (page faults), 3 of these while tokens were "
                      "generated, most often for b (75 %)."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("8 times (page faults), 3 of these while"), std::string::npos) << text;
  EXPECT_NE(text.find("b|6|75 %|4|2|a|1|12.5 %|0|0|"), std::string::npos) << text;
}

// "-ngl 99" of "Let the device compute (-ngl 99)."
void add_options(const std::string& text, std::set<std::string>& options) {
  static const std::regex kOption(
      "(?:^|[ (])(--?[a-z][a-z-]*(?: (?:on|auto|mmap\\+mlock|[0-9]+))?)");
  for (std::sregex_iterator match(text.begin(), text.end(), kOption), end; match != end; ++match)
    options.insert((*match)[1]);
}

// tt record, which has the options of tt-server (program/tracer_options.h), and llama.cpp accept
// the option.
void expect_obeyed(const std::string& option) {
  const bool is_count = option == "-t" || option == "-ngl";
  const char* value = is_count ? " 1" : option == "--memory-budget" ? " 1GiB" : "";
  const std::string line = option + value;
  const CommandResult ours = run_command(kTestPaths.tt + (" record -p x -o unused.ttrace " + line) +
                                         " -m /no/such/model.gguf");
  EXPECT_NE(ours.status, 0) << line;
  EXPECT_TRUE(ours.output.contains("/no/such/model.gguf: no such file")) << ours.output;
  // An option of tt-server and tt record, and one of older versions, as the text says.
  if (option.starts_with("--memory-budget") || option == "--mlock") return;
  // It parses its options in order; its log can be lost when it ends.
  const CommandResult theirs = run_command("llama-completion " + line + " --version");
  EXPECT_EQ(theirs.status, 0) << theirs.output;
}

TEST(Report, GivesAdviceOnlyWithAReason) {
  std::set<std::string> named;
  struct Case {
    const char* what;
    std::function<void(ReportData&)> change;
    std::set<std::string> advice;
  };
  const Case cases[] = {
      {"defaults", [](ReportData&) {}, {"Change nothing:"}},
      {"no weights", [](ReportData& f) { f.weights_read = Bytes{}; }, {}},
      {"unknown memory", [](ReportData& f) { f.available.reset(); }, {"Change nothing:"}},
      {"less memory than weights",
       [](ReportData& f) { f.available = Bytes{6'000'000}; },
       {"Pin 5.00"}},
      {"less memory than weights that were copied to memory",
       [](ReportData& f) {
         f.available = Bytes{6'000'000};
         f.mapped_distinct = f.mapped_read = Bytes{};
       },
       {"Change nothing:"}},
      {"less memory than weights, with a budget",
       [](ReportData& f) {
         f.available = Bytes{6'000'000};
         f.info.facts.emplace_back("context.memory_budget", "auto");
       },
       {"Change nothing:"}},
      {"less memory than weights, and none read twice",
       [](ReportData& f) {
         f.available = Bytes{6'000'000};
         f.room.pins.weights.clear();
       },
       {"Use a"}},
      {"less memory than weights, and LRU is as good as pinning",
       [](ReportData& f) {
         f.available = Bytes{6'000'000};
         f.room.lru.bytes = f.room.pins.saved;
       },
       {"Use a"}},
      {"half of the cores", [](ReportData& f) { f.info.facts[0].second = "4"; }, {"Try more"}},
      {"half of the cores, beside other programs",
       [](ReportData& f) {
         f.info.facts[0].second = "4";
         f.conditions.verdict = Verdict::Contended;
       },
       {"Stop other"}},
      {"stopped by a CPU limit",
       [](ReportData& f) { f.conditions.verdict = Verdict::Throttled; },
       {"Raise the"}},
      {"more threads than cores",
       [](ReportData& f) { f.info.facts[0].second = "9"; },
       {"Use fewer"}},
      {"a CPU limit of half of the cores",
       [](ReportData& f) { f.info.facts.emplace_back("host.cpu_limit", "4.50"); },
       {"Use fewer"}},
      {"no repacking with a budget",
       [](ReportData& f) {
         f.info.facts[3].second = "off";
         f.info.facts.emplace_back("context.memory_budget", "1000000000");
       },
       {"Change nothing:"}},
      {"no repacking, and no memory for copies",
       [](ReportData& f) {
         f.info.facts[3].second = "off";
         f.available = Bytes{6'000'000};
       },
       {"Pin 5.00"}},
      {"no repacking", [](ReportData& f) { f.info.facts[3].second = "off"; }, {"Let weights"}},
      {"no repacking because it is not possible",
       [](ReportData& f) { f.info.facts[3].second = "off: AMX"; },
       {"Change nothing:"}},
      {"memory-bound", [](ReportData& f) { set_bandwidth(f, 7'000'000'000); }, {"Read fewer"}},
      {"memory-bound, but a third of the time is sampling",
       [](ReportData& f) {
         set_bandwidth(f, 7'000'000'000);
         f.speed.sample_ns = 333'000;
       },
       {"Use fewer"}},
      {"sampling with a grammar takes 21 % of the time",
       [](ReportData& f) {
         f.speed.sample_ns = 210'000;
         f.info.facts.emplace_back("request.grammar", "root ::= [a-z]*");
       },
       {"Use a"}},
      {"memory-bound, but other programs disturbed the session",
       [](ReportData& f) {
         set_bandwidth(f, 7'000'000'000);
         f.conditions.verdict = Verdict::Contended;
       },
       {"Stop other"}},
      {"near the bandwidth only in some steps",
       [](ReportData& f) { set_bandwidth(f, 9'000'000'000); },
       {"Change nothing:"}},
      {"far from the bandwidth",
       [](ReportData& f) { set_bandwidth(f, 20'000'000'000); },
       {"Change nothing:"}},
      {"weights that fit into the last cache",
       [](ReportData& f) {
         set_bandwidth(f, 7'000'000'000);
         f.info.facts.emplace_back("host.last_cache_bytes", "104857600");
       },
       {"Change nothing:"}},
      {"attention without flash attention",
       [](ReportData& f) {
         f.by_op_kind.rows = {row("SOFT_MAX", 1e6, 1e5)};
         f.costs[Axis::Component].rows = {
             {.name = "attention", .sums = {.time_ns = 5e5}, .share = 0.5}};
       },
       {"Try flash"}},
      {"CPU and another device compute",
       [](ReportData& f) { f.devices.push_back({.name = "RPC0", .ns = 9e6}); },
       {"Give the"}},
      {"a few ops on the CPU",
       [](ReportData& f) { f.devices.push_back({.name = "RPC0", .ns = 99e6}); },
       {"Change nothing:"}},
      {"a device that runs nothing",
       [](ReportData& f) { f.info.facts.emplace_back("host.devices", "Vulkan0"); },
       {"Let the"}},
      {"each token waits for the disk",
       [](ReportData& f) { f.by_tensor.total.generate.faults = 2; },
       {"Keep the"}},
      {"not every token waits for the disk",
       [](ReportData& f) { f.by_tensor.total.generate.faults = 1; },
       {"Change nothing:"}},
      {"the prompt waits for the disk",
       [](ReportData& f) { f.by_tensor.total.prompt.faults = 9; },
       {"Change nothing:"}},
      {"no conditions of the machine",
       [](ReportData& f) { f.conditions.text = "unknown: the recording has none."; },
       {"Nothing is"}},
      {"validation failed",
       [](ReportData& f) {
         f.validation.checks = {{.check = Check::Ops,
                                 .status = CheckStatus::Failed,
                                 .items_checked = 1,
                                 .wrong = 1,
                                 .summary = {},
                                 .evidence = {"step 3"}}};
       },
       {"Do not"}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    ReportData figures = default_figures();
    one.change(figures);
    EXPECT_EQ(first_words(advice_of(figures)), one.advice);
    for (const Advice& advice : advice_of(figures)) {
      const AdviceText words = advice_text(advice);
      add_options(words.advice + words.because, named);
    }
  }
  EXPECT_EQ(named, (std::set<std::string>{"--load-mode mmap+mlock", "--memory-budget",
                                          "--memory-budget auto", "--mlock", "--no-repack",
                                          "-fa on", "-ngl", "-ngl 99", "-t", "-t 4", "-t 8"}));
  for (const std::string& option : named) expect_obeyed(option);
}

TEST(Report, SaysWhatMemoryWouldGain) {
  const auto finding = [](const ReportData& f) {
    for (const std::string& text : findings_of(f))
      if (text.starts_with("Memory: ")) return text;
    return std::string();
  };
  ReportData f = default_figures();
  EXPECT_EQ(finding(f),
            "Memory: the 10.0 MiB of mapped weights that were read fit into the 954 MiB of "
            "available memory. Pinning or caching them would gain nothing after their first read.");
  f.mapped_distinct = Bytes{4 << 20};
  f.available = Bytes{3 << 20};
  EXPECT_EQ(finding(f),
            "Memory: the 4.00 MiB of mapped weights that were read do not fit into the 3.00 MiB of "
            "available memory; 6.00 MiB more are copies in memory, made at load.");
  const auto advice = advice_of(f);
  ASSERT_EQ(advice.size(), 1U);
  const AdviceText words = advice_text(advice[0]);
  EXPECT_EQ(words.advice, "Pin 5.00 MiB with --memory-budget auto: output.weight.");
  EXPECT_EQ(
      words.because,
      "The session reads 4.00 MiB of mapped weights and 3.00 MiB of memory are available. The "
      "kernel's cache (LRU) can serve 0 % of the bytes read, pinned weights 25 %; no policy "
      "serves more than 25 %. The gain is 5.00 MiB less to read from the disk in 2 generated "
      "tokens and the prompt, by simulation. --memory-budget is an option of tt-server and tt "
      "record; "
      "llama.cpp has none that pins chosen weights: its --load-mode mmap+mlock locks the file "
      "from its start. The budget switches repacking off.");
  f.mapped_distinct = Bytes{};
  EXPECT_EQ(finding(f),
            "Memory: the 10.0 MiB of weights that were read are copies in memory, made at load "
            "(repacked, or not mapped). Pinning or caching parts of the model file would gain "
            "nothing.");
}

std::string text_of(const ReportData& f, FindingKind kind) {
  for (const Finding& one : session_findings(f))
    if (one.kind == kind) return finding_text(one);
  return "";
}

TEST(Report, SaysAtLeastWhereTheComputeBuffersAreNotKnown) {
  ReportData f = default_figures();
  f.memory = {.file = Bytes{10 << 20},
              .repacked = {},
              .kv = Bytes{4 << 20},
              .recurrent = {},
              .touched_compute = Bytes{253 << 10},
              .compute = Bytes{14 << 20},
              .cache_tokens = 512};
  EXPECT_TRUE(
      text_of(f, FindingKind::EnoughMemory)
          .starts_with("28.0 MiB of RAM are enough, so that each weight is read from the disk "
                       "only once: 10.0 MiB for the weights in the file, 4.00 MiB of KV cache "
                       "(reserved for 512 tokens) and 14.0 MiB of compute buffers. Not counted: "
                       "the program itself (its code, the vocabulary and the recording)."));
  // The simulated sizes are 0, 5 and 10 MiB; what is read first comes from the disk.
  EXPECT_TRUE(
      text_of(f, FindingKind::EnoughMemory)
          .ends_with(" Of the sizes of memory for weights that were simulated (no memory budget), "
                     "the step from 5.00 MiB to 10.0 MiB saves the most: with 5.00 MiB, 100 % of "
                     "the bytes of weights that the ops read come from the disk, with 10.0 MiB, "
                     "50 %."))
      << text_of(f, FindingKind::EnoughMemory);
  // On it depends the size of the compute buffers.
  f.memory.flash_attention = "off";
  EXPECT_TRUE(text_of(f, FindingKind::EnoughMemory)
                  .contains("and 14.0 MiB of compute buffers (flash attention off). Not"));
  // Recovered, imported and old sessions.
  f.memory.compute.reset();
  const std::string text = text_of(f, FindingKind::EnoughMemory);
  EXPECT_TRUE(text.starts_with("At least 14.2 MiB of RAM are needed, so that ")) << text;
  EXPECT_TRUE(text.contains("at least 253 KiB of compute buffers, whose size was not recorded"));
  // Mamba has a state, which does not depend on the context.
  f.memory.recurrent = std::exchange(f.memory.kv, Bytes{});
  const std::string recurrent = text_of(f, FindingKind::EnoughMemory);
  EXPECT_TRUE(recurrent.contains("4.00 MiB of recurrent state and")) << recurrent;
  EXPECT_FALSE(recurrent.contains("KV cache"));
}

// A session whose only step was cancelled describes what ran, and says so.
TEST(Report, SaysThatNoStepRanToItsEnd) {
  ReportData f = default_figures();
  f.memory.file = Bytes{10 << 20};
  f.memory.kv = Bytes{4 << 20};
  f.memory.compute = Bytes{14 << 20};
  f.only_interrupted = true;
  const std::string enough = text_of(f, FindingKind::EnoughMemory);
  EXPECT_TRUE(enough.starts_with("At least 28.0 MiB of RAM are needed, so that ")) << enough;
  EXPECT_TRUE(enough.contains(" No step ran to its end: ")) << enough;
  const std::string bytes = text_of(f, FindingKind::TokenBytes);
  EXPECT_TRUE(bytes.starts_with("No step ran to its end. The ops that ran read ")) << bytes;
}

// Other programs only slow steps down: the fastest step says how near the bandwidth is at least.
TEST(Report, SaysHowFastADisturbedSessionReadAtLeast) {
  ReportData f = default_figures();
  set_bandwidth(f, 10'000'000'000);
  f.conditions.verdict = Verdict::Contended;
  f.read_rates.clean.clear();
  f.read_rates.fastest = 4e9;
  const std::string text = text_of(f, FindingKind::SpeedLimit);
  EXPECT_TRUE(
      text.contains(" Its fastest step read 3.73 GiB/s, 40 % of the 9.31 GiB/s that this "
                    "machine can read."))
      << text;
}

// A bandwidth that was measured on a busy machine is stored and can be far too low: no sentence may
// use it as a bound.
TEST(Report, DoesNotUseABandwidthThatAStepExceeded) {
  const auto has_figure = [](const ReportData& f, std::string_view name) {
    for (const Finding& one : session_findings(f))
      if (one.kind == FindingKind::SpeedLimit) return one.figures.number(name).has_value();
    return false;
  };
  ReportData f = default_figures();
  set_bandwidth(f, 8'000'000'000);
  f.conditions.verdict = Verdict::Clean;
  f.read_rates.fastest = 8.7e9;  // as exact as the measurement is
  EXPECT_EQ(headline_limit(f), "memory bandwidth");
  EXPECT_TRUE(has_figure(f, "bound_speed"));
  f.read_rates.fastest = 8.9e9;
  EXPECT_EQ(headline_limit(f), "unknown: faster than the measured bandwidth");
  EXPECT_FALSE(has_figure(f, "bound_speed"));
  constexpr const char* kExceeded =
      "its fastest step read 8.29 GiB/s, faster than the read bandwidth that was measured on this "
      "machine (7.45 GiB/s). Either other programs disturbed that measurement, or caches served a "
      "part of the bytes. To measure it again, remove the stored result "
      "(~/.cache/tensor-trace/read_bandwidth) and load the model while no other program runs.";
  EXPECT_TRUE(
      text_of(f, FindingKind::SpeedLimit).contains(std::string(" is unknown: ") + kExceeded))
      << text_of(f, FindingKind::SpeedLimit);
  for (const Advice& advice : advice_of(f)) EXPECT_NE(advice.kind, AdviceKind::FewerBytes);
  f.conditions.verdict = Verdict::Contended;
  const std::string text = text_of(f, FindingKind::SpeedLimit);
  EXPECT_TRUE(text.contains(std::string("bound is not known either: ") + kExceeded)) << text;
  EXPECT_FALSE(text.contains("that this machine can read")) << text;
  EXPECT_FALSE(text.contains("allows at most")) << text;
}

// As in attached sessions: steps that wait for a processor read as slowly as those that compute.
TEST(Report, SlowReadsAreComputationOnlyIfWaitsWereRecorded) {
  ReportData f = default_figures();
  set_bandwidth(f, 20'000'000'000);
  f.conditions.verdict = Verdict::Clean;
  EXPECT_TRUE(text_of(f, FindingKind::SpeedLimit).starts_with("Computation limits the speed"))
      << text_of(f, FindingKind::SpeedLimit);
  f.conditions.verdict = std::nullopt;
  EXPECT_TRUE(text_of(f, FindingKind::SpeedLimit)
                  .contains("unknown: whether the steps waited for a processor was not recorded"))
      << text_of(f, FindingKind::SpeedLimit);
}

// What a user compares the speed with.
TEST(Report, SaysWhichSpeedTheBandwidthAllows) {
  ReportData f = default_figures();
  set_bandwidth(f, 10'000'000'000);
  f.generated_tokens = 50;
  f.by_op_kind.total.generate.bytes_read = 50 * 4e8;
  const auto text = [&] { return text_of(f, FindingKind::SpeedLimit); };
  const char* const bound = " What a token reads, at 9.31 GiB/s, allows at most 25.0 tokens/s.";
  EXPECT_TRUE(text().contains(bound)) << text();
  f.info.facts.emplace_back("host.last_cache_bytes", "1099511627776");
  EXPECT_FALSE(text().contains("at most")) << text();  // memory is hardly read
}

// The speed of a model that is read from the disk is not rounded to nothing.
TEST(Report, SlowSpeedsHaveTwoDigits) {
  ReportData f = default_figures();
  f.speed = {.tokens = 17, .ns = 200'000'000'000, .first_token_ns = 2'000'000'000, .sample_ns = 1};
  EXPECT_TRUE(text_of(f, FindingKind::SpeedLimit).contains("(0.085 tokens/s without the prompt)"))
      << text_of(f, FindingKind::SpeedLimit);
}

TEST(Report, SaysWhatPartOfTheBytesIsReadFromTheFile) {
  ReportData f = default_figures();
  f.by_source.rows = {row("disk", 25, 0), row("repacked", 75, 0)};
  f.read_order = {.reads = 9, .sequential = 1, .bytes = Bytes{25}, .sequential_bytes = Bytes{20}};
  EXPECT_EQ(text_of(f, FindingKind::ReadInOrder),
            "Of the bytes that are read from the mapped model file, 80 % are read in file order: "
            "from at most 128 KiB after the end of the read before. The other weights are read "
            "from copies in memory.");
  f.read_order = {};
  EXPECT_EQ(text_of(f, FindingKind::ReadInOrder),
            "No weights are read from the mapped model file: they are copies in memory.");
}

// One short prompt has no times of a usual step, but bytes.
TEST(Report, SaysWhatATokenOfThePromptCostsBesideAGeneratedOne) {
  ReportData f = default_figures();
  EXPECT_EQ(text_of(f, FindingKind::PromptAndGeneration), "");  // no prompt
  const auto times = [](std::int64_t ns) {
    return CountedTimes{.steps = {}, .spread = Spread{}, .per_token = Ns{ns}};
  };
  f.phase_costs[Phase::Prompt] = {.steps = 2, .tokens = 64, .bytes_read = 2048, .times = {}};
  f.phase_costs[Phase::Generate] = {
      .steps = 3, .tokens = 3, .bytes_read = 4096, .times = times(1'500)};
  const auto text = [&] { return text_of(f, FindingKind::PromptAndGeneration); };
  EXPECT_EQ(text(),
            "A token of the prompt reads 2.00 KiB and a generated token 4.00 KiB: a step of the "
            "prompt evaluates 32 tokens, which share the weights. Time per token, of the "
            "evaluation in undisturbed steps: not measured (each step of it was disturbed, "
            "interrupted or the first of its graph) in the prompt, 1.50 µs in generation.");
  f.phase_costs.at(Phase::Prompt).times = times(500);
  EXPECT_TRUE(
      text().ends_with(" Time per token, of the evaluation in undisturbed steps: 500 ns in "
                       "the prompt, 1.50 µs in generation."))
      << text();
  f.phase_costs.at(Phase::Prompt).times = f.phase_costs.at(Phase::Generate).times = {};
  EXPECT_TRUE(
      text().ends_with(" Time per token: not measured, because each step was disturbed, "
                       "interrupted or the first of its graph."))
      << text();
}

// A mapped byte is in RAM or on the disk: the sentence on the bytes says where they came from.
TEST(Report, SaysWhetherTheBytesOfATokenCameFromTheDisk) {
  ReportData f = default_figures();
  f.by_op_kind.total.generate.bytes_read = 100;
  f.by_source.rows = {row("disk", 25, 60), row("repacked", 75, 40)};
  const auto text = [&] { return text_of(f, FindingKind::TokenBytes); };
  EXPECT_FALSE(text().contains("RAM")) << text();  // not recorded
  f.info.facts.emplace_back("trace.page_faults", "perf");
  EXPECT_TRUE(text().ends_with(
      " All of it came from RAM, also the mapped file: no op waited for the disk."))
      << text();
  f.by_tensor.total.all.faults = 9;
  f.by_tensor.total.generate.faults = 3;
  EXPECT_TRUE(
      text().ends_with(" It came from RAM, except pages of the mapped file that were not "
                       "there: ops waited 3 times for the disk to read them."))
      << text();
}

TEST(Report, SaysThatItDoesNotKnowWhatLimitsTheSpeed) {
  ReportData f = default_figures();
  EXPECT_TRUE(
      text_of(f, FindingKind::SpeedLimit)
          .starts_with(
              "What limits the speed (1000 tokens/s without the prompt) is unknown: "
              "the read bandwidth of the machine was not measured: the recording does not have it. "
              "To measure it, record again: `tt record -m MODEL -t 8`. GLU takes 90 %"))
      << text_of(f, FindingKind::SpeedLimit);
  set_bandwidth(f, 7'000'000'000);
  EXPECT_TRUE(text_of(f, FindingKind::SpeedLimit).starts_with("Memory bandwidth limits the speed"));
  // Measured with another number of threads.
  f.info.facts.back().second = "1";
  EXPECT_TRUE(text_of(f, FindingKind::SpeedLimit).contains("is unknown"));
  f.conditions.verdict = Verdict::Contended;
  EXPECT_TRUE(text_of(f, FindingKind::SpeedLimit)
                  .contains("is unknown, because the run was contended (its threads waited"));
  EXPECT_EQ(headline_limit(f), "unknown: contended");
}

// Unknown is not an answer: the sentence says why, and what to do.
TEST(Report, SaysWhyTheLimitOfTheSpeedIsUnknown) {
  const auto missing = [](const char* why) {
    return [why](ReportData& f) { f.info.facts.emplace_back("host.no_read_bandwidth", why); };
  };
  const char* const kNotMeasured = "unknown: memory bandwidth not measured";
  const std::tuple<const char*, std::function<void(ReportData&)>, const char*, const char*>
      cases[] = {
          {"nothing recorded", [](ReportData&) {}, kNotMeasured,
           "record again: `tt record -m MODEL -t 8`"},
          {"small model", missing("small_model"), kNotMeasured, "not larger than the last cache"},
          {"no folder", missing("no_folder"), kNotMeasured, "Set HOME or XDG_CACHE_HOME"},
          {"little memory", missing("little_memory"), kNotMeasured, "when more memory is free"},
          {"busy", missing("busy"), kNotMeasured, "while no other program runs, and record again."},
          {"attached",
           [](ReportData& f) {
             f.threads = 3;  // the program's options are not known, the threads of its steps are
             f.info.facts.emplace_back("host.no_read_bandwidth", "not_stored");
           },
           kNotMeasured, "without the attached program: `tt record -m MODEL -t 3`"},
          {"of a later version", missing("eclipse"), kNotMeasured, "record again: `tt record"},
          {"imported",
           [](ReportData& f) { f.info.facts.emplace_back("trace.imported_from", "log"); },
           kNotMeasured, "the session was imported"},
          {"other threads",
           [](ReportData& f) {
             set_bandwidth(f, 7'000'000'000);
             f.threads = 2;
           },
           kNotMeasured,
           "measured with 8 threads, and the steps ran with 2. To measure it: `tt record"},
          {"few steps",
           [](ReportData& f) {
             set_bandwidth(f, 7'000'000'000);
             f.read_rates.clean.resize(5);
           },
           "unknown: too few steps",
           "at least 8 undisturbed generated steps are needed, and the session has 5."},
          {"a prompt only",
           [](ReportData& f) {
             set_bandwidth(f, 7'000'000'000);
             f.generated_tokens = 0;
             f.read_rates.clean.clear();
           },
           "unknown: nothing generated", "the session has none."},
          {"another device",
           [](ReportData& f) {
             set_bandwidth(f, 7'000'000'000);
             f.devices.push_back({.name = "RPC0", .ns = 9e6});
           },
           "unknown: another device computed", "not only the CPU computed"},
          {"a log that does not say where its ops ran",
           [](ReportData& f) {
             f.info.facts.emplace_back("trace.imported_from", "log");
             f.devices = {{.name = "", .ns = 9e6}};
           },
           kNotMeasured, "the session was imported"},
          {"the threshold is in the interval",
           [](ReportData& f) { set_bandwidth(f, 9'000'000'000); }, "near memory bandwidth",
           "which is near the limit."}};
  for (const auto& [name, change, headline, sentence] : cases) {
    SCOPED_TRACE(name);
    ReportData f = default_figures();
    change(f);
    EXPECT_EQ(headline_limit(f), headline);
    const std::string text = text_of(f, FindingKind::SpeedLimit);
    EXPECT_TRUE(text.contains(" is unknown: ")) << text;
    EXPECT_TRUE(text.contains(sentence)) << text;
  }
}

// Threads that waited for most of the time are what limits the speed, whatever the bandwidth is.
TEST(Report, NamesWaitingAsTheLimitIfItTookMostOfTheTime) {
  ReportData f = default_figures();
  f.conditions.verdict = Verdict::Contended;
  f.conditions.time = {.total_ns = 1e9, .cpu_ns = 1.2e8, .wait_ns = 8.8e8};
  EXPECT_EQ(headline_limit(f), "waiting for a processor");
  const auto text = [&] { return text_of(f, FindingKind::SpeedLimit); };
  EXPECT_TRUE(text().starts_with("Waiting for a processor limits the speed")) << text();
  EXPECT_TRUE(text().contains("the threads waited for 88 % of their time.")) << text();
  // Nothing is said of the parts of steps that mostly waited.
  f.costs[Axis::OpKind].timed.verdict = Verdict::Contended;
  EXPECT_TRUE(
      text().contains("No step was clean: which op and layer take the most time is not known."))
      << text();
  EXPECT_FALSE(text().contains("slowest")) << text();
  f.conditions.time.wait_ns = 4.9e8;
  EXPECT_EQ(headline_limit(f), "unknown: contended");
  f.conditions.verdict = Verdict::Throttled;
  f.conditions.time.throttled_ns = 2e8;
  EXPECT_EQ(headline_limit(f), "waiting for a processor");  // the larger part of 69 %
  EXPECT_TRUE(
      text().contains("the threads waited for 49 % of their time, and a CPU limit stopped "
                      "them for 20 %."))
      << text();
  f.conditions.time.throttled_ns = 5.1e8;
  EXPECT_EQ(headline_limit(f), "a CPU limit");
  EXPECT_TRUE(
      text().contains("it stopped the threads for 51 % of their time, and they waited for a "
                      "processor for 49 %."))
      << text();
}

TEST(Report, SaysHowManyExpertsATokenSharesWithThePreviousOne) {
  ReportData f = default_figures();
  f.determinism.pairs = 4;
  const auto found = [&](const char* text) { return std::ranges::contains(findings_of(f), text); };
  EXPECT_TRUE(
      found("In 0 of 4 pairs of consecutive generated tokens, both read the same weights."));
  f.determinism.same_weights = 4;
  EXPECT_TRUE(found("In all 4 pairs of consecutive generated tokens, both read the same weights."));
  f.determinism.differing[std::to_underlying(Cause::Token)] = 4;
  f.determinism.differing[std::to_underlying(Cause::KvWindow)] = 8;
  EXPECT_TRUE(found(
      "In all 4 pairs of consecutive generated tokens, both read the same weights; the second "
      "reads another row of the embedding and more of the KV cache."));
  f.determinism.identical = 4;
  EXPECT_TRUE(
      found("In all 4 pairs of consecutive generated tokens, both read the same weights, with the "
            "same accesses."));
  f.determinism.identical = f.determinism.same_weights = 0;
  f.experts_followed = 40;
  f.experts_turned = 25;
  EXPECT_TRUE(
      found("Each generated token reads the same weights as the previous token, except experts: "
            "37.5 % of its experts were also used by the previous token, in the same layer."));
}

TEST(Report, FindsReusedPrefixAndWarningOfTheLoad) {
  ReportData f = default_figures();
  f.info.facts.emplace_back("result.prompt_tokens", "30");
  f.info.facts.emplace_back("result.reused_tokens", "29");
  f.info.facts.emplace_back("result.reused_from", "S1");
  f.info.facts.emplace_back("load.warning", "-ngl 9 has no effect.");
  const auto findings = findings_of(f);
  const auto has = [&](const char* text) { return std::ranges::contains(findings, text); };
  EXPECT_TRUE(has("29 of the 30 prompt tokens were reused from session S1 and not evaluated."));
  EXPECT_TRUE(has("Warning of the load: -ngl 9 has no effect."));
}

TEST(Report, SaysWhyAPromptWasEvaluatedAgain) {
  using Facts = std::vector<std::pair<std::string, std::string>>;
  const auto text = [](const Facts& facts) {
    ReportData f = default_figures();
    for (const auto& [name, value] : facts) f.info.facts.emplace_back(name, value);
    std::string found;
    for (const std::string& each : findings_of(f))
      if (each.contains("evaluated again")) found += each;
    return found;
  };
  const Facts other = {{"result.prompt_tokens", "300"},    {"result.reused_tokens", "45"},
                       {"result.prompt_ns", "255000000"},  {"result.reuse_end", "other_token"},
                       {"result.cached_from", "S1"},       {"result.common_tokens", "45"},
                       {"result.text_before", "Today is"}, {"result.text_prompt", " Monday."},
                       {"result.text_cached", " Sunday."}};
  EXPECT_EQ(text(other), "") << "nothing of the rest was evaluated before";
  EXPECT_EQ(text({{"result.prompt_tokens", "5"},
                  {"result.reused_tokens", "5"},
                  {"result.reuse_end", "other_token"},
                  {"result.repeated_tokens", "9"}}),
            "")
      << "of a file that contradicts itself";
  Facts repeated = other;
  repeated.emplace_back("result.repeated_tokens", "200");
  EXPECT_EQ(
      text(repeated),
      "200 of the 300 prompt tokens were evaluated again, in about 200 ms, although the request "
      "before (session S1) had evaluated the same text: the first 45 tokens are the same, then "
      "after “Today is” the prompt has “ Monday.” where that has “ Sunday.”.");
  EXPECT_EQ(
      text({{"result.prompt_tokens", "29"},
            {"result.reused_tokens", "0"},
            {"result.prompt_ns", "29000000"},
            {"result.reuse_end", "recurrent_state"},
            {"result.common_tokens", "20"}}),
      "20 of the 29 prompt tokens were evaluated again, in about 20.0 ms, although the request "
      "before had evaluated the same text: the first 20 tokens are the same, but a recurrent "
      "state cannot be taken back to an earlier token.");
  EXPECT_EQ(text({{"result.prompt_tokens", "29"},
                  {"result.reused_tokens", "0"},
                  {"result.prompt_ns", "29000000"},
                  {"result.reuse_end", "not_kept"},
                  {"result.common_tokens", "29"}}),
            "29 of the 29 prompt tokens were evaluated again, in about 29.0 ms, although the "
            "request before had evaluated the same text: the first 29 tokens are the same, but the "
            "program did not reuse them.");
}

TEST(Report, SaysWhatTheMachineDid) {
  ReportData f = default_figures();
  const auto has = [&](const char* text) { return std::ranges::contains(findings_of(f), text); };
  f.conditions.text = "contended: the threads waited for a processor for 20 % of their time.";
  f.steps = 9;
  EXPECT_TRUE(has("Contended: the threads waited for a processor for 20 % of their time."));
  EXPECT_FALSE(has("Times and sums are without 2 of 9 steps, which were not clean."));
  f.left_out = 2;
  EXPECT_TRUE(has("Times and sums are without 2 of 9 steps, which were not clean."));
  f.conditions.text = "";  // no steps
  for (const Finding& finding : session_findings(f))
    EXPECT_NE(finding.kind, FindingKind::MachineVerdict);
}

TEST(Report, FiguresMatchReference) {
  std::size_t experts = 0, scarce = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    const auto file = folder / "s.ttrace";
    auto session = plausible_session(seed);
    // The memory of the machine is small or unknown.
    Dice dice(seed);
    if (seed % 6 > 0) {
      session.info.facts = {{"context.threads", "2"},
                            {"host.cores", seed % 2 == 0 ? "2" : "4"},
                            {"context.repack", seed % 5 == 0 ? "off" : "on"},
                            {"host.ram_bytes", std::to_string(dice.below(4000))}};
    }
    ASSERT_TRUE(write_session(file, session).has_value());
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(reader.has_value());
    const auto index = SessionIndex::build(*reader);
    ASSERT_TRUE(index.has_value());
    const auto figures = gather_report_data(file, *index, *reader);
    ASSERT_TRUE(figures.has_value()) << figures.error().message;
    expect_figures(*figures, *reader);
    const auto& weights = figures->room.pins.weights;
    experts += std::ranges::any_of(weights, [](const auto& w) { return !w.experts.empty(); });
    for (const Advice& one : advice_of(*figures)) scarce += one.kind == AdviceKind::PinWeights;
  }
  EXPECT_GT(experts, 4U);
  EXPECT_GT(scarce, 4U);
}

TEST(Report, GroupsPinnedWeightsByLayersAndExperts) {
  const auto weight = [](const char* tensor, std::int32_t layer,
                         std::vector<std::int32_t> experts = {}) {
    return PinnedWeight{.tensor = tensor, .layer = LayerId{layer}, .experts = std::move(experts)};
  };
  PinPlan plan;
  plan.weights = {weight("output.weight", kNoLayer.v),
                  weight("blk.1.attn_q.weight", 1),
                  weight("blk.0.attn_q.weight", 0),
                  weight("blk.0.attn_v.weight", 0),
                  weight("blk.1.attn_v.weight", 1),
                  weight("blk.3.ffn_up.weight", 3),
                  weight("blk.1.ffn_up_exps.weight", 1, {2, 5, 6, 7, 9, 10}),
                  weight("blk.1.ffn_down_exps.weight", 1, {2, 5, 6, 7, 9, 10}),
                  weight("blk.2.ffn_up_exps.weight", 2, {4})};
  EXPECT_EQ(names_of(plan),
            (std::vector<std::string>{
                "output.weight", "attn_q.weight, attn_v.weight of layers 0, 1",
                "ffn_up.weight of layer 3",
                "experts 2, 5-7, 9, 10 of layer 1 (ffn_up_exps.weight, ffn_down_exps.weight)",
                "expert 4 of layer 2 (ffn_up_exps.weight)"}));
}

TEST(Report, HandlesSessionWithoutSteps) {
  const SmallSession session({});
  const auto reader = session.reader();
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value());
  const auto figures = gather_report_data(session.path, *index, reader);
  ASSERT_TRUE(figures.has_value()) << figures.error().message;
  const Report report = report_of(*figures);
  EXPECT_EQ(report.title, "a b");
  EXPECT_TRUE(report.findings.empty()) << finding_text(report.findings.front());
  ASSERT_EQ(report.sections.size(), 2U);
  EXPECT_EQ(report.sections[0].title, "Is the recording valid?");
}

TEST(Report, ComputesFiguresOfASmallSession) {
  Step later = small_step(1);
  later.n_tokens = 1;
  const SmallSession session({small_step(0), later});
  const auto reader = session.reader();
  const auto index = SessionIndex::build(reader);
  const auto figures = gather_report_data(session.path, *index, reader);
  ASSERT_TRUE(figures.has_value()) << figures.error().message;
  EXPECT_EQ(figures->prompt_tokens, 2U);
  EXPECT_EQ(figures->generated_tokens, 1U);
  EXPECT_EQ(figures->generate_time, Ns{170});
  EXPECT_DOUBLE_EQ(figures->by_op_kind.total.all.time_ns, 300);
  // Two embedding rows, and 32 + 256 + 256 + 512 bytes of the other weights.
  EXPECT_EQ(figures->weights_distinct, Bytes{64 + 1056});
  EXPECT_EQ(figures->weights_read, Bytes{2 * (64 + 1056)});
  ASSERT_EQ(figures->devices.size(), 1U);
  EXPECT_EQ(figures->devices[0].name, "CPU");
  EXPECT_DOUBLE_EQ(figures->devices[0].ns, 300);
}

// A prompt whose embedding is slow, and 5 generated steps; one of them waited in the embedding and
// in layer 0. So sums over steps, or over both phases, name the wrong op and layer.
TEST(Report, TheSlowestOpAndLayerAreThoseOfAUsualGeneratedStep) {
  constexpr std::uint32_t kSlow = 3;
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 6; ++i) {
    Step step = small_step(i);
    std::vector<std::int64_t> took = {10, 20, 30, 140, 50};  // of the ops
    if (i == 0) took[0] = 1'000'000;
    if (i == kSlow) took = {300'000, 90'000, 90'000, 140, 50};
    step.begin = Ns{std::int64_t{i} * 10'000'000};
    step.first_op = step.begin;
    Ns at = step.begin;
    for (std::size_t op = 0; op < took.size(); ++op) step.op_ends[op] = at = Ns{at.v + took[op]};
    step.end = at;
    steps.push_back(step);
  }
  const SmallSession session(steps);
  const auto reader = session.reader();
  const auto index = SessionIndex::build(reader);
  const auto figures = gather_session_figures(*index, reader);
  ASSERT_TRUE(figures.has_value()) << figures.error().message;
  const auto findings = session_findings(*figures);
  const auto limit = std::ranges::find(findings, FindingKind::SpeedLimit, &Finding::kind);
  ASSERT_NE(limit, findings.end());
  const Figures& f = limit->figures;
  EXPECT_EQ(limit->basis.phase, Phase::Generate);
  EXPECT_EQ(f.word("slowest_op"), "MUL_MAT");
  EXPECT_DOUBLE_EQ(f.number("slowest_op_time").value(), 220.0 / 250);
  // It reads and writes 256 + 256 + 512 bytes of weights and 64 + 64 + 64 + 64 + 64 + 128 others.
  EXPECT_DOUBLE_EQ(f.number("slowest_op_rate").value(), (1024 + 448) * 1e9 / 220);
  EXPECT_EQ(f.word("slowest_layer"), "1");
  EXPECT_DOUBLE_EQ(f.number("slowest_layer_time").value(), 140.0 / 250);
  EXPECT_EQ(f.word("second_layer"), "0");
  EXPECT_DOUBLE_EQ(f.number("second_layer_time").value(), 50.0 / 250);
  // The table that the sentence leads to has the same share and rate, whether it shows one phase or
  // all.
  for (const auto phase : {std::optional(Phase::Generate), std::optional<Phase>()}) {
    const auto table = breakdown(
        *index, {.by = Axis::OpKind, .filter = {.phase = phase}, .order = {}, .step_times = true});
    ASSERT_TRUE(table.has_value());
    const auto row = std::ranges::find(table->rows, "MUL_MAT", &BreakdownRow::name);
    ASSERT_NE(row, table->rows.end());
    EXPECT_DOUBLE_EQ(row->step->share, f.number("slowest_op_time").value());
    EXPECT_DOUBLE_EQ(row->step->bytes_per_second, f.number("slowest_op_rate").value());
  }
}

}  // namespace
}  // namespace tt::test
