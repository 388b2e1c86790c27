#include "tests/server/support/program.h"
#include "tests/server/support/http_client.h"
#include "tests/support/sanitizers.h"
#include "tests/support/wait.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <format>
#include <fstream>
#include <iterator>

namespace tt::test {

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

constexpr const char* kReportPrefix = "sanitizer";

// What ends a child process on purpose: its limits of memory and stack, and crashes in the code of
// libraries, which is why they run there.
bool is_limit_report(std::string_view text) {
  constexpr std::array<std::string_view, 7> kExpected = {
      "stack-overflow",          "out of memory", "out-of-memory",
      "allocation-size-too-big", " FPE on ",      " SEGV on unknown address",
      " failed to allocate "};
  return std::ranges::any_of(kExpected, [&](std::string_view kind) { return text.contains(kind); });
}

std::vector<std::string> wrap_in_shell(const std::string& before,
                                       std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"-c", before + "; exec \"$@\"", "sh", kTestPaths.server});
  return arguments;
}

}  // namespace

Program::Program(std::vector<std::string> arguments, std::vector<std::string> environment,
                 const std::string& program) {
  arguments.insert(arguments.begin(), program);
  environment.emplace_back("HOME=/nonexistent");
  environment.emplace_back("OMP_WAIT_POLICY=passive");  // as in CMakePresets.json
  if (kAddressSanitizer) {
    // A small quarantine: freed memory must be back (server_watch.h). malloc fails as without the
    // sanitizer when a limit is reached.
    const std::string options =
        std::format("log_path={}/{}", folder_.path().string(), kReportPrefix);
    environment.push_back("ASAN_OPTIONS=quarantine_size_mb=8:allocator_may_return_null=1:" +
                          options);
    environment.push_back("UBSAN_OPTIONS=print_stacktrace=1:" + options);
  }
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ / "stderr").c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  EXPECT_EQ(posix_spawnp(&pid_, program.c_str(), &actions, nullptr, pointers(arguments).data(),
                         pointers(environment).data()),
            0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  out_ = ends[0];
  started_ = pid_;
}

Program::~Program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
  for (const std::string& report : sanitizer_reports()) ADD_FAILURE() << report;
}

std::vector<std::string> Program::sanitizer_reports() const {
  std::vector<std::string> reports;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kReportPrefix)) continue;
    std::ifstream file(entry.path());
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!is_limit_report(text) || name == std::format("{}.{}", kReportPrefix, started_))
      reports.push_back(std::move(text));
  }
  return reports;
}

std::string Program::stderr_text() const {
  std::ifstream file(folder_ / "stderr");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Program::read_line() {
  std::string line;
  char c = 0;
  pollfd ready{.fd = out_, .events = POLLIN, .revents = 0};
  while (poll(&ready, 1, 120'000) > 0 && read(out_, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

std::string Program::read_all() {
  std::string all;
  std::array<char, 4096> block;
  for (ssize_t got = 0; (got = read(out_, block.data(), block.size())) > 0;)
    all.append(block.data(), static_cast<std::size_t>(got));
  return all;
}

int Program::wait(std::chrono::milliseconds timeout) {
  int status = 0;
  if (!wait_until([&] { return waitpid(pid_, &status, WNOHANG) != 0; }, timeout)) return -1000;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

RunningServer::RunningServer(const std::filesystem::path& data, std::vector<std::string> more,
                             std::vector<std::string> environment, const std::string& before)
    : program(wrap_in_shell(before, arguments(data, std::move(more))), std::move(environment),
              "/bin/sh"),
      url(program.read_line()) {}

std::vector<std::string> RunningServer::arguments(const std::filesystem::path& data,
                                                  std::vector<std::string> more) {
  more.insert(more.end(), {"--port", "0", "--data-dir", data.string()});
  return more;
}

json RunningServer::get(const std::string& path) {
  const auto result = get_when_computed(http_client(url), path);
  return result ? json::parse(result->body, nullptr, false) : json::object();
}

std::uint16_t RunningServer::port() const {
  return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

bool RunningServer::wait_until_loaded() {
  return wait_until([&] { return get("/api/v1/health").value("status", "") == "ok"; }) &&
         get("/api/v1/health")["model_state"] == "loaded";
}

std::string RunningServer::load(const std::string& model, std::chrono::seconds limit) {
  const auto accepted =
      http_client(url).Post("/api/v1/models/" + model + "/load", "", "application/json");
  EXPECT_TRUE(accepted) << "the server is not running: " << program.stderr_text();
  if (!accepted) return "no response";
  if (accepted->status != 202) return json::parse(accepted->body).value("detail", "");
  json status;
  EXPECT_TRUE(wait_until(
      [&] {
        status = get("/api/v1/models/" + model);
        return status.value("state", "") != "loading";
      },
      limit))
      << "the model is still loading";
  if (status.value("state", "") == "loaded") return "";
  return status.value("error", "the state is " + status.dump());
}

int RunningServer::unload(const std::string& model) {
  const std::string path = "/api/v1/models/" + model;
  const auto accepted = http_client(url).Post(path + "/unload", "", "application/json");
  EXPECT_TRUE(wait_until([&] { return get(path).value("state", "") == "available"; }));
  return accepted ? accepted->status : 0;
}

json RunningServer::wait_for_end(const std::string& id) {
  json status;
  EXPECT_TRUE(wait_until([&] {
    status = get("/api/v1/generate/" + id);
    const std::string state = status.value("state", "");
    return state != "queued" && state != "running";
  })) << "the request does not end: "
      << status;
  return status;
}

std::string RunningServer::start_long_request() {
  httplib::Client client = http_client(url);
  const auto accepted = client.Post("/api/v1/generate",
                                    R"({"prompt": "Once", "max_tokens": 4000, "ignore_eos": true})",
                                    "application/json");
  if (!accepted || accepted->status != 202) return "";
  const std::string id = json::parse(accepted->body)["id"];
  EXPECT_TRUE(wait_until([&] { return get("/api/v1/sessions/" + id).value("steps", 0) >= 5; }));
  return id;
}

}  // namespace tt::test
