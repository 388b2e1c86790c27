// Damaged models in the model folder of tt-server: each one is loaded and generates, or is
// rejected with an error, and the server keeps running.
#include <gtest/gtest.h>
#include <httplib.h>

#include <cstdint>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <print>
#include <string>

#include "tests/server/models/damaged_model.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/support/temp_folder.h"
#include "tests/support/wait.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {
namespace {

class DamagedModels : public ::testing::TestWithParam<ValidModel::Kind> {};

TEST_P(DamagedModels, AreLoadedOrRejectedWithError) {
  const TempFolder folder, data;
  const ValidModel valid(GetParam());
  // 8 mutations of each of the 6 kinds; the kind is seed % 6.
  constexpr std::uint32_t kMutations = 48;
  const auto id_of = [&](std::uint32_t n) { return n == 0 ? "valid" : std::format("m{}", n - 1); };
  valid.write(folder.path(), "valid");
  for (std::uint32_t seed = 0; seed < kMutations; ++seed)
    valid.write_mutated(folder.path(), id_of(seed + 1), seed);
  RunningServer server(data.path(), {"--no-model", "--models-dir", folder.path().string(), "-t",
                                     "1", "-c", "256", "-b", "64", "-ub", "32"});
  ASSERT_TRUE(server.url.starts_with("http://")) << server.program.stderr_text();

  std::map<std::string, int> ends;  // by outcome
  std::uint32_t ran = 0;
  for (std::uint32_t n = 0; n <= kMutations; ++n) {
    const std::string id = id_of(n);
    SCOPED_TRACE(id);
    httplib::Client client = http_client(server.url);
    const auto accepted = client.Post("/api/v1/models/" + id + "/load", "", "application/json");
    ASSERT_TRUE(accepted) << "the server is not running: " << server.program.stderr_text();
    std::string error;
    if (accepted->status == 202) {
      json model;
      EXPECT_TRUE(wait_until([&] {
        model = server.get("/api/v1/models/" + id);
        return model.value("state", "") != "loading";
      }));
      if (model.value("state", "") != "loaded") error = model.value("error", "");
    } else {
      EXPECT_LT(accepted->status, 600);
      EXPECT_EQ(accepted->get_header_value("Content-Type"), "application/problem+json");
      error = json::parse(accepted->body).value("detail", "");
    }
    if (error.empty()) {
      // A prompt of two ubatches and some decodes with the damaged model.
      json tokens = json::array();
      for (int i = 0; i < 40; ++i) tokens.push_back(1 + i % 3);
      const json body = {
          {"model", id}, {"tokens", tokens}, {"max_tokens", 4}, {"ignore_eos", true}};
      const auto started = client.Post("/api/v1/generate", body.dump(), "application/json");
      ASSERT_TRUE(started) << "the server is not running: " << server.program.stderr_text();
      if (started->status == 202) {
        const std::string session = json::parse(started->body)["id"];
        const json status = server.wait_for_end(session);
        const std::string state = status.value("state", "unknown");
        EXPECT_TRUE(state == "done" || (state == "failed" && !status["error"].is_null())) << status;
        const auto faults = check_session(data.path() / (session + ".ttrace"));
        ASSERT_TRUE(faults.has_value()) << faults.error().message;
        EXPECT_TRUE(faults->empty()) << faults->front();
        ++ends["ran: " + state];
        ++ran;
      } else {
        // For example, the damage made the vocabulary smaller.
        EXPECT_EQ(started->get_header_value("Content-Type"), "application/problem+json");
        ++ends["loaded, request rejected: " + json::parse(started->body).value("code", "")];
      }
    } else {
      EXPECT_TRUE(error.contains(id)) << error << ": must contain the file name";
      ++ends["rejected"];
    }
    const auto health = client.Get("/api/v1/health");
    ASSERT_TRUE(health) << "the server is not running: " << server.program.stderr_text();
    EXPECT_EQ(health->status, 200) << health->body;
    if (n == 0) {
      EXPECT_EQ(ends["ran: done"], 1) << "the valid model";
    }
  }
  for (const auto& [end, count] : ends) std::println("{:>4} {}", count, end);
  EXPECT_GT(ran, 10U);
  EXPECT_GT(ends["rejected"], 10);

  // A valid model still works.
  httplib::Client client = http_client(server.url);
  ASSERT_EQ(client.Post("/api/v1/models/valid/load", "", "application/json")->status, 202);
  EXPECT_TRUE(server.wait_until_loaded());
  server.program.signal(SIGTERM);
  EXPECT_EQ(server.program.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Mutations, DamagedModels, ::testing::ValuesIn(ValidModel::kKinds),
                         [](const auto& made) { return name_of(made.param); });

}  // namespace
}  // namespace tt::test
