// tt-server as a separate process: its output, exit codes and files.
#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <iterator>

#include "server/app/server_options.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/app_options.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"

#include "tracer/format/file/session_reader.h"

namespace tt {
namespace {

using namespace test;

TEST(Program, PrintsOnlyItsUrl) {
  const test::TempFolder folder;
  RunningServer server(folder.path());
  EXPECT_TRUE(server.url.starts_with("http://127.0.0.1:")) << server.url;
  EXPECT_TRUE(server.wait_until_loaded());  // the bundled model
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0);
  EXPECT_EQ(server.program.read_all(), "");
}

TEST(Program, ListensOnAnIpv6AddressInBrackets) {
  for (const char* host : {"[::1]", "::1"}) {
    const test::TempFolder folder;
    const RunningServer server(folder.path(), {"--host", host, "--no-model"});
    EXPECT_TRUE(server.url.starts_with("http://[::1]:")) << server.url;
  }
}

// A missing value is not reported as a wrong argument without a name.
TEST(Program, OptionWithoutItsValueIsReported) {
  const struct {
    std::vector<std::string> arguments;
    const char* text;
  } cases[] = {
      {{"-fa", "--port", "9514"}, "--flash-attn: must be one of on, off, auto, not '--port'"},
      {{"-c", "--port", "9514"}, "--ctx-size: must be a whole number"},
      {{"-m", "--port", "9514"}, "-m: requires a value, but the option --port follows"},
      {{"--data-dir", "-c", "512"}, "--data-dir: requires a value, but the option -c follows"},
      {{"--lora", "a.gguf"}, "unknown option --lora. Adapters are not supported."},
      {{"-np", "4"}, "unknown option --parallel. A model runs one request at a time"},
      {{"--temp", "0.5"}, "unknown option --temp. A request has its own length and sampling"},
      {{"-n", "5"}, "unknown option -n. A request has its own length and sampling"},
      {{"-s", "5"}, "unknown option -s. A request has its own length and sampling"},
      {{"-v"}, "unknown option -v. Use --log-level debug (tt-server) or --verbose (tt)"},
  };
  for (const auto& [arguments, text] : cases) {
    Program program(arguments);
    EXPECT_EQ(program.wait(), 2);
    EXPECT_TRUE(program.stderr_text().contains(text)) << program.stderr_text();
  }
}

TEST(Program, SignalDuringGenerationLeavesValidFile) {
  for (const int signal : {SIGTERM, SIGINT}) {
    SCOPED_TRACE(signal);
    const test::TempFolder folder;
    RunningServer server(folder.path() / "made" / "by it");
    ASSERT_TRUE(server.wait_until_loaded());
    const std::string id = server.start_long_request();
    ASSERT_FALSE(id.empty());
    const auto began = Clock::now();
    server.program.signal(signal);
    EXPECT_EQ(server.program.wait(), 0);
    EXPECT_LT(Clock::now() - began, 5s);

    const auto file = folder.path() / "made" / "by it" / (id + ".ttrace");
    EXPECT_FALSE(std::filesystem::exists(file.string() + "-wal"));
    const auto faults = check_session(file);
    ASSERT_TRUE(faults.has_value()) << faults.error().message;
    EXPECT_TRUE(faults->empty()) << faults->front();
    const auto reader = SessionReader::open(file);
    ASSERT_TRUE(reader.has_value());
    EXPECT_EQ(reader->info()->state, SessionState::Cancelled);
    EXPECT_GE(reader->step_count().value(), 5u);
  }
}

TEST(Program, RecoversSessionOfKilledServer) {
  const test::TempFolder folder;
  std::string id;
  {
    RunningServer killed(folder.path());
    ASSERT_TRUE(killed.wait_until_loaded());
    id = killed.start_long_request();
    killed.program.signal(SIGKILL);
    EXPECT_EQ(killed.program.wait(), -SIGKILL);
  }
  RunningServer next(folder.path());
  const json session = next.get("/api/v1/sessions/" + id);
  EXPECT_EQ(session["state"], "recovered");
  EXPECT_GT(session["steps"], 0);
}

TEST(Program, KeepsServingWhenModelFailsToLoad) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"--model", "/nonexistent/model.gguf"});
  ASSERT_TRUE(server.url.starts_with("http://"));
  EXPECT_FALSE(server.wait_until_loaded());
  EXPECT_EQ(server.get("/api/v1/models")["models"].at(0)["state"], "failed");
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0);
}

TEST(Program, OpensSessionsWithoutModel) {
  const test::TempFolder folder;
  std::string id;
  {
    RunningServer server(folder.path() / "first");
    ASSERT_TRUE(server.wait_until_loaded());
    id = server.start_long_request();
    server.program.signal(SIGTERM);
    EXPECT_EQ(server.program.wait(), 0);
  }
  const auto file = folder.path() / "first" / (id + ".ttrace");
  const std::vector<std::string> cases[] = {
      {file.string()}, {"--no-model", file.string()}, {(folder.path() / "first").string()}};
  for (const auto& arguments : cases) {
    SCOPED_TRACE(arguments.front());
    RunningServer server(folder.path() / "second", arguments);
    ASSERT_TRUE(server.url.starts_with("http://")) << server.url;
    const json list = server.get("/api/v1/sessions");
    ASSERT_EQ(list["total"], 1);
    EXPECT_EQ(list["sessions"].at(0)["id"], id);
    EXPECT_EQ(server.get("/api/v1/sessions/" + id + "/steps")["total"],
              list["sessions"].at(0)["steps"]);
    const auto rejected =
        http_client(server.url).Post("/api/v1/generate", R"({"prompt": "a"})", "application/json");
    ASSERT_TRUE(static_cast<bool>(rejected));
    EXPECT_GE(rejected->status, 400) << rejected->body;
    server.program.signal(SIGTERM);
    EXPECT_EQ(server.program.wait(), 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "second"));
}

TEST(Program, EnforcesKeepBytes) {
  const test::TempFolder folder;
  {
    RunningServer server(folder.path());
    ASSERT_TRUE(server.wait_until_loaded());
    server.start_long_request();
    server.program.signal(SIGTERM);
    EXPECT_EQ(server.program.wait(), 0);
  }
  ASSERT_FALSE(std::filesystem::is_empty(folder.path()));
  RunningServer server(folder.path(), {"--no-model", "--keep-bytes", "1K", "--disk-reserve", "1M"});
  EXPECT_TRUE(wait_until([&] { return server.get("/api/v1/sessions")["total"] == 0; }));
  const json facts = server.get("/api/v1/server");
  EXPECT_EQ(facts["data_bytes"], 0);
  EXPECT_EQ(facts["data_quota_bytes"], 1024);
}

TEST(Program, NonLoopbackPrintsLoginLinkAndNewOneOnSigusr1) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"--host", "0.0.0.0", "--model", "/nonexistent/model.gguf"});
  const auto path_of = [](const std::string& line) {
    const auto at = line.find("/login?code=");
    return at == std::string::npos ? "" : line.substr(at);
  };
  const std::string first = path_of(server.url);
  ASSERT_FALSE(first.empty()) << server.url;
  httplib::Client client = http_client(server.url.substr(0, server.url.size() - first.size()));
  EXPECT_EQ(client.Get("/api/v1/sessions")->status, 401);
  server.program.signal(SIGUSR1);
  const std::string second = path_of(server.program.read_line());
  ASSERT_FALSE(second.empty());
  EXPECT_NE(first, second);
  EXPECT_EQ(client.Get(first)->status, 401);  // replaced by the newer link
  const auto login = client.Get(second);
  EXPECT_EQ(login->status, 200);
  const std::string cookie = login->get_header_value("Set-Cookie");
  const httplib::Headers known = {{"Cookie", cookie.substr(0, cookie.find(';'))}};
  EXPECT_EQ(client.Get("/api/v1/sessions", known)->status, 200);
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0);
}

TEST(Program, ApiKeyIsNotExposed) {
  const std::string key = "a-key-that-nobody-sees";
  const test::TempFolder folder;
  const std::string key_file = (folder.path() / "key").string();
  std::ofstream(key_file) << key << "\n";
  struct Case {
    std::vector<std::string> arguments, environment;
  };
  const Case cases[] = {
      {{"--api-key", key}, {}},
      {{"--api-key=" + key}, {}},
      {{"--api-key-file", key_file}, {}},
      {{}, {"TT_API_KEY=" + key}},
      {{}, {"TT_API_KEY_FILE=" + key_file}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments.empty() ? c.environment.front() : c.arguments.front());
    std::vector<std::string> arguments =
        RunningServer::arguments(folder.path() / "data", c.arguments);
    arguments.insert(arguments.end(), {"--model", "/nonexistent/model.gguf"});
    Program program(arguments, c.environment);
    const std::string line = program.read_line();  // contains a login link because a key is set
    ASSERT_TRUE(line.contains("/login?code=")) << line;
    EXPECT_FALSE(line.contains(key));
    std::ifstream file("/proc/" + std::to_string(program.pid()) + "/cmdline");
    const std::string shown(std::istreambuf_iterator<char>(file), {});
    EXPECT_TRUE(shown.contains("/nonexistent/model.gguf"));
    EXPECT_FALSE(shown.contains(key));
    httplib::Client client = http_client(line.substr(0, line.find("/login")));
    EXPECT_EQ(client.Get("/api/v1/sessions")->status, 401);
    client.set_bearer_token_auth(key);
    EXPECT_EQ(client.Get("/api/v1/sessions")->status, 200);
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait(), 0);
    EXPECT_FALSE(program.read_all().contains(key));
    EXPECT_FALSE(program.stderr_text().contains(key));
    EXPECT_TRUE(program.stderr_text().contains("listening"));
  }
  Program help({"--help"}, {"TT_API_KEY=" + key});
  EXPECT_FALSE(help.read_all().contains(key));
  EXPECT_EQ(help.wait(), 0);
}

TEST(Program, RunsWithoutModel) {
  const test::TempFolder folder, models;
  std::filesystem::copy(kTestPaths.bundled_model, models.path() / "mine.gguf");
  struct Case {
    std::vector<std::string> arguments;
    std::size_t listed;
    std::string state;
  };
  const Case cases[] = {
      {{"--no-model"}, 0, "none"},
      {{"--models-dir", models.path().string()}, 1, "none"},
      {{"--models-dir", models.path().string(), "--no-model"}, 1, "none"},
      {{"--models-dir", models.path().string(), "--model", kTestPaths.bundled_model}, 2, "loaded"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments.back());
    RunningServer server(folder.path(), c.arguments);
    EXPECT_EQ(server.wait_until_loaded(), c.state == "loaded");
    EXPECT_EQ(server.get("/api/v1/health")["model_state"], json(c.state));
    EXPECT_EQ(server.get("/api/v1/models")["models"].size(), c.listed);
    EXPECT_EQ(server.get("/api/v1/sessions")["total"], 0);
    server.program.signal(SIGTERM);
    EXPECT_EQ(server.program.wait(), 0);
  }
}

TEST(Program, ExitCodesOfInvalidArguments) {
  struct Case {
    std::vector<std::string> arguments, environment;
    int code;
  };
  const Case cases[] = {
      {{"--colour"}, {}, 2},
      {{"surplus"}, {}, 2},
      {{"-ngl", "x"}, {}, 2},
      {{"--no-model", "--model", kTestPaths.bundled_model}, {}, 2},
      {{}, {"TT_NO_MODEL=true", "TT_MODEL=x.gguf"}, 2},
      {{"--api-key", "short"}, {}, 2},
      {{}, {"TT_API_KEY=short"}, 2},
      {{"--api-key-file", "/nonexistent/key"}, {}, 2},
      {{}, {"TT_API_KEY_FILE=/nonexistent/key"}, 2},
      {{"--help"}, {}, 0},
      {{"--help"}, {"TT_PORT=70000"}, 0},
      {{"--version"}, {}, 0},
      {{"--data-dir", "/proc/nothing"}, {}, 1},
      {{"--host", "nowhere.invalid", "--data-dir", "/tmp"}, {}, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments.empty() ? c.environment.front() : c.arguments.front());
    Program program(c.arguments, c.environment);
    EXPECT_EQ(program.wait(), c.code);
  }
}

// The error message for `where` (an option or a variable), without that prefix.
std::string rejection_of(const std::string& where, const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment) {
  Program program(arguments, environment);
  EXPECT_EQ(program.wait(), 2);
  const std::string output = program.stderr_text(), before = "tt-server: " + where + ": ";
  EXPECT_TRUE(output.starts_with(before)) << output;
  return output.starts_with(before) ? output.substr(before.size()) : output;
}

TEST(Program, RejectsOptionAndVariableValuesIdentically) {
  struct Case {
    std::string option, value;
  };
  const Case cases[] = {
      {"--port", "70000"},
      {"--n-gpu-layers", "-1"},
      {"--mmap", "maybe"},
      {"--rpc", "nowhere"},
      {"--ctx-size", "many"},
      {"--ctx-size", "4000000000"},
      {"--batch-size", "0"},
      {"--ubatch-size", "0"},
      {"--threads", "513"},
      {"--threads-batch", "100000"},
      {"--flash-attn", "maybe"},
      {"--cache-type-k", "q9"},
      {"--cache-type-v", "q9"},
      {"--models-dir", "/nonexistent"},
      {"--models-max", "0"},
      {"--public-url", "trace.example"},
      {"--cors-origins", "null"},
      {"--cors-origins", "*"},
      {"--cors-origins", "https://a.example,b"},
      {"--embed-origins", "*"},
      {"--embed-origins", "http://[::1]:8080"},
      {"--max-connections", "1"},
      {"--max-live-clients", "x"},
      {"--keep-days", "0"},
      {"--keep-days", "1e300"},
      {"--keep-bytes", "much"},
      {"--disk-reserve", "-1"},
      {"--max-import", "99999999999999G"},
      {"--path", "/nonexistent"},
      {"--log-level", "loud"},
      {"--log-json", "maybe"},
  };
  for (const auto& [option, value] : cases) {
    SCOPED_TRACE(option + "=" + value);
    const std::string variable = variable_of(option);
    EXPECT_EQ(rejection_of(option, {option + "=" + value}, {}),
              rejection_of(variable, {}, {variable + "=" + value}));
  }
}

TEST(Program, ArgumentsOverrideConflictingVariables) {
  const test::TempFolder folder;
  RunningServer server(folder.path(), {"--no-model"}, {"TT_MODEL=/nonexistent/model.gguf"});
  ASSERT_TRUE(server.url.starts_with("http://")) << server.program.stderr_text();
  EXPECT_EQ(server.get("/api/v1/health")["model_state"], json("none"));
}

TEST(Program, AcceptsLlamaCppOptionNamesAndEnvironment) {
  const test::TempFolder folder;
  Program program({"-c", "256", "-ub", "128", "-b", "128", "-t", "1", "-tb", "1", "-ngl", "0",
                   "-fa", "on", "-ctk", "f16", "-ctv", "f16", "--no-mmap"},
                  {"TT_PORT=0", "TT_DATA_DIR=" + folder.path().string()});
  const std::string url = program.read_line();
  ASSERT_TRUE(url.starts_with("http://127.0.0.1:")) << url;
  httplib::Client client = http_client(url);
  json model = json::object();
  EXPECT_TRUE(wait_until([&] {
    const auto models = client.Get("/api/v1/models");
    if (models) model = json::parse(models->body)["models"].at(0);
    return models && model["state"] != "loading";
  }));
  EXPECT_EQ(model["context"], 256);
  EXPECT_EQ(model["threads"], 1);
}

TEST(Program, SaysWhatItIgnoresAndThatItRunsWithoutAModel) {
  const test::TempFolder folder;
  Program program({"-m", "nosuch.gguf", "--port", "0", "--data-dir", folder.path().string()},
                  {"LLAMA_ARG_THREADS=1", "LLAMA_ARG_CTX_SIZE=512"});
  ASSERT_TRUE(program.read_line().starts_with("http://"));
  EXPECT_TRUE(wait_until([&] {
    return program.stderr_text().contains("the server runs without a model");
  })) << program.stderr_text();
  EXPECT_TRUE(
      program.stderr_text().contains("LLAMA_ARG_CTX_SIZE, LLAMA_ARG_THREADS have no effect"))
      << program.stderr_text();
  Program none({"-m", "", "--port", "0", "--data-dir", folder.path().string()});
  EXPECT_EQ(none.wait(), 2);
  EXPECT_TRUE(none.stderr_text().contains("must be the name of a file")) << none.stderr_text();
}

TEST(Program, EveryOptionIsDocumentedAndHasVariable) {
  ServerOptions values;
  const auto app = make_server_app(values);
  const std::vector<CLI::Option*> options = listed_options(*app);
  EXPECT_GE(options.size(), 34u);
  for (const CLI::Option* option : options) {
    EXPECT_EQ(option->get_envname(), variable_of(long_name(*option)));
    EXPECT_NE(option->get_description(), "") << long_name(*option);
  }
}

}  // namespace
}  // namespace tt
