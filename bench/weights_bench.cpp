// How fast does `tt weights` read a model, and in how much memory? Budgets: 1 GB of Q4_K per second
// of processor time; at most 256 MiB of memory, also against a reference, and at most 1.1 times as
// much for a model with eleven times as many layers.
//
// Runs the program beside this one, and takes its processor time and its peak of memory from the
// kernel. In turns with it the same weights are only read and decoded, by ggml: the share of this
// in the time says what is ours, on any machine and under any load.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <format>
#include <fstream>
#include <print>
#include <string>
#include <thread>
#include <vector>

#include "bench/budget.h"
#include "tracer/format/model/quantile.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/modelgen/model_writer.h"
#include "tracer/weights/weight_reader.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
using tt::bench::Bound;
using tt::bench::compare_with_budget;

constexpr double kMinGbPerSecond = 1;
constexpr double kMaxMib = 256;
constexpr double kMaxGrowth = 1.1;

struct Options {
  fs::path folder = fs::temp_directory_path() / "tt-weights-bench";
  std::string shape = "tinyllama-1.1b";
  std::uint32_t layers = 22;
  std::uint32_t rounds = 5;
};

[[noreturn]] void fail(const std::string& message) {
  std::println(stderr, "weights_bench: {}", message);
  std::exit(1);
}

fs::path model_of(const Options& options, std::uint32_t layers) {
  const fs::path path = options.folder / std::format("{}-{}.gguf", options.shape, layers);
  if (fs::exists(path)) return path;
  tt::modelgen::ModelSpec spec{.shape = options.shape, .dims = {.layers = layers}, .quant = "q4_k"};
  if (const auto written = tt::modelgen::write_model(spec, path); !written)
    fail(written.error().message);
  return path;
}

struct Cost {
  double seconds = 0;  // of processor time
  double mib = 0;      // peak of memory
};

// The peak so far of a process. (That of wait4() includes the memory of the process that started
// it.)
double peak_mib(pid_t process) {
  std::ifstream in(std::format("/proc/{}/status", process));
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;  // it has ended
}

// What `tt weights ARGUMENTS` took.
Cost cost_of(std::vector<std::string> arguments) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "tt";
  arguments.insert(arguments.begin(), {program.string(), "weights", "--format", "csv"});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage used{};
  pid_t ended = 0;
  double peak = 0;
  while (failed == 0 && ended == 0) {
    peak = std::max(peak, peak_mib(child));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ended = ::wait4(child, &status, WNOHANG, &used);
  }
  if (ended != child || status != 0) fail(std::format("{} failed", program.string()));
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {.seconds = seconds(used.ru_utime) + seconds(used.ru_stime), .mib = peak};
}

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Of reading and decoding all weights, and nothing else.
double decoding_seconds(const tt::GgufIndex& index) {
  auto reader = tt::WeightReader::open(index);
  if (!reader) fail(reader.error());
  const double begin = processor_seconds();
  for (const tt::GgufTensor& tensor : index.tensors()) {
    const auto read =
        reader->read(tensor, tt::all_rows(tensor), [](const tt::WeightRows&) { return true; });
    if (!read) fail(read.error());
  }
  return processor_seconds() - begin;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return tt::quantile<double>(values, 0.5).value_or(0);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the time and the memory of reading all weights of a model.");
  app.add_option("--folder", options.folder, "Folder for models")->capture_default_str();
  app.add_option("--shape", options.shape, "Model shape (tt model --list)")->capture_default_str();
  app.add_option("--layers", options.layers, "Layers of the large model")->capture_default_str();
  app.add_option("--rounds", options.rounds, "Number of rounds")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  fs::create_directories(options.folder);
  const fs::path large = model_of(options, options.layers);
  const fs::path small = model_of(options, std::max(1U, options.layers / 11));
  const auto index = tt::GgufIndex::open(large.string());
  if (!index) fail(index.error());
  double q4_k = 0, all = 0;
  for (const tt::GgufTensor& tensor : index->tensors()) {
    const auto bytes = static_cast<double>(tensor.file.length);
    all += bytes;
    if (tensor.type == "q4_K") q4_k += bytes;
  }

  std::vector<double> ours, decoding, peaks;
  decoding_seconds(*index);  // the file is in the page cache then
  for (std::uint32_t i = 0; i < options.rounds; ++i) {
    const Cost cost = cost_of({large.string()});
    ours.push_back(cost.seconds);
    peaks.push_back(cost.mib);
    decoding.push_back(decoding_seconds(*index));
  }
  const double rate = all / median(ours) / 1e9;
  std::println("{}: {:.0f} MB, {:.1f} % of it Q4_K", large.filename().string(), all / 1e6,
               100 * q4_k / all);
  std::println("{:.3f} s of processor time, {:.3f} s of it reading and decoding: a share of {:.2f}",
               median(ours), median(decoding), median(decoding) / median(ours));
  std::println("{:.2f} GB/s: {}", rate, compare_with_budget(rate, Bound::AtLeast, kMinGbPerSecond));
  const double peak = std::ranges::max(peaks);
  const double of_small = cost_of({small.string()}).mib;
  const double compared = cost_of({large.string(), "--reference", large.string()}).mib;
  std::println("peak {:.1f} MiB: {}", peak, compare_with_budget(peak, Bound::AtMost, kMaxMib));
  std::println("peak against a reference {:.1f} MiB: {}", compared,
               compare_with_budget(compared, Bound::AtMost, kMaxMib));
  std::println("times that of {} ({:.1f} MiB): {:.2f}, {}", small.filename().string(), of_small,
               peak / of_small, compare_with_budget(peak / of_small, Bound::AtMost, kMaxGrowth));
  return tt::bench::exit_code();
}
