// The memory budget of a loaded model over HTTP.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "tests/server/support/test_server.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

// With weights that are large enough to be streamed in part.
std::filesystem::path make_model(const std::filesystem::path& folder,
                                 const std::string& quant = "q8_0") {
  modelgen::ModelSpec spec;
  spec.dims = {.layers = 10, .embd = 512, .ff = 2048};
  spec.quant = quant;
  const auto report = modelgen::write_model(spec, folder / "model.gguf");
  if (!report) ADD_FAILURE() << report.error().message;
  return folder / "model.gguf";
}

const std::string kPath = "/api/v1/models/model/memory";

class MemoryBudgetRoutes : public ::testing::Test {
 protected:
  json memory() { return server_.get(kPath).body; }
  json plan() { return server_.get(kPath + "/plan").body; }
  json models() { return server_.get("/api/v1/models").body; }
  TestResponse change(const json& body) { return server_.patch(kPath, body); }
  bool reaches(const std::string& phase) {
    return wait_until([&] { return memory().value("phase", "") == phase; });
  }
  // The generated text.
  json run() {
    const std::string id = server_.generate(
        {{"tokens", {1, 2, 3, 4}}, {"max_tokens", 12}, {"temperature", 0}, {"ignore_eos", true}});
    EXPECT_EQ(server_.wait_for_end(id)["state"], "done");
    json ids = json::array();
    for (const json& token : server_.get("/api/v1/sessions/" + id + "/tokens").body["tokens"])
      ids.push_back(token["id"]);
    return ids;
  }
  static std::uint64_t sum(const json& plan, const char* of) {
    std::uint64_t sum = 0;
    for (const json& tensor : plan["tensors"]) sum += tensor[of].get<std::uint64_t>();
    return sum;
  }
  // The bytes of ranges; of planned ones, those that are pinned or not.
  static std::uint64_t sum_of(const json& ranges, std::optional<bool> pinned = {}) {
    std::uint64_t sum = 0;
    for (const json& range : ranges)
      if (!pinned || range["pinned"] == *pinned) sum += range["file_bytes"].get<std::uint64_t>();
    return sum;
  }
  static bool are_in_order(const json& ranges) {
    return std::adjacent_find(ranges.begin(), ranges.end(), [](const json& one, const json& next) {
             return next["file_offset"].get<std::uint64_t>() <
                    one["file_offset"].get<std::uint64_t>() +
                        one["file_bytes"].get<std::uint64_t>();
           }) == ranges.end();
  }

  const bool backends_ = (ensure_backends_loaded(), true);
  const TempFolder folder_;
  TestServer server_{{.model = make_model(folder_.path()), .models = folder_.path()}};
};

TEST_F(MemoryBudgetRoutes, IsChangedWhileTheModelIsLoaded) {
  ASSERT_TRUE(server_.wait_until_loaded()) << models();
  EXPECT_EQ(memory()["phase"], "off");
  EXPECT_EQ(memory()["budget"], "off");
  run();
  const json before = plan();
  const std::uint64_t total = sum(before, "file_bytes");
  ASSERT_GT(total, 20 * kMiB);
  EXPECT_EQ(sum(before, "pinned_bytes"), 0U);

  // The weights were repacked: the model is loaded again.
  const std::uint64_t budget = total * 6 / 10;
  const TestResponse reload = change({{"budget", budget}});
  ASSERT_EQ(reload.status, 200) << reload.body;
  EXPECT_NE(reload.body["message"].get<std::string>().find("loaded again"), std::string::npos);
  ASSERT_TRUE(server_.wait_until_loaded()) << models();
  ASSERT_TRUE(reaches("learning"));
  run();
  ASSERT_TRUE(reaches("active")) << memory();
  EXPECT_EQ(run(), run());
  const json active = memory();
  EXPECT_EQ(active["budget"], json(budget));
  EXPECT_EQ(active["plan"]["budget_bytes"], json(budget));
  EXPECT_LE(active["resident_bytes"].get<std::uint64_t>(), budget);
  EXPECT_GT(active["bytes_read_ahead"].get<std::uint64_t>(), 0U);
  EXPECT_GT(active["tokens_per_second"].get<double>(), 0);
  EXPECT_GT(active["limit_bytes"].get<std::uint64_t>(), 0U);

  // The plan per tensor adds up to the plan, except for the ends of pages that tensors share.
  const json now = plan();
  const auto pinned = active["plan"]["pinned_bytes"].get<std::uint64_t>();
  const auto streamed = active["plan"]["streamed_bytes"].get<std::uint64_t>();
  const auto shared = static_cast<double>(now["tensors"].size() * 2 * 4096);
  EXPECT_NEAR(static_cast<double>(sum(now, "pinned_bytes")), static_cast<double>(pinned), shared);
  EXPECT_NEAR(static_cast<double>(sum(now, "streamed_bytes")), static_cast<double>(streamed),
              shared);
  EXPECT_GT(streamed, 0U);
  EXPECT_NEAR(static_cast<double>(sum_of(now["planned_ranges"], true)), static_cast<double>(pinned),
              shared);
  EXPECT_NEAR(static_cast<double>(sum_of(now["planned_ranges"], false)),
              static_cast<double>(streamed), shared);
  EXPECT_TRUE(are_in_order(now["planned_ranges"]));

  // Off: nothing is pinned any more, also without loading again.
  ASSERT_EQ(change({{"budget", "off"}}).status, 200);
  ASSERT_TRUE(reaches("off"));
  ASSERT_TRUE(wait_until([&] { return sum(plan(), "pinned_bytes") == 0; }));
  EXPECT_TRUE(plan()["planned_ranges"].empty());
  run();
}

// The order in which the model reads its weights is in the data folder.
TEST(MemoryBudgetRestart, ActsBeforeTheFirstStep) {
  ensure_backends_loaded();
  const TempFolder models, data;
  const TestServerOptions options{
      .model = make_model(models.path()), .models = models.path(), .data = data.path()};
  const auto phase_is = [](TestServer& server, const std::string& phase) {
    return wait_until([&] { return server.get(kPath).body.value("phase", "") == phase; });
  };
  const auto set_budget = [&](TestServer& server) {
    ASSERT_TRUE(server.wait_until_loaded());
    ASSERT_EQ(server.patch(kPath, {{"budget", 12 * kMiB}}).status, 200);
    ASSERT_TRUE(server.wait_until_loaded());
  };
  {
    TestServer first(options);
    set_budget(first);
    ASSERT_TRUE(phase_is(first, "learning")) << first.get(kPath).body;
    first.wait_for_end(first.generate({{"tokens", {1, 2, 3}}, {"max_tokens", 4}}));
    ASSERT_TRUE(phase_is(first, "active")) << first.get(kPath).body;
  }
  EXPECT_TRUE(
      std::filesystem::exists(data.path() / "access-patterns" / "model.gguf.access_pattern.json"));
  TestServer second(options);
  set_budget(second);
  ASSERT_TRUE(phase_is(second, "active")) << second.get(kPath).body;
  const json memory = second.get(kPath).body;
  EXPECT_TRUE(memory["message"].get<std::string>().contains("order of the access pattern"))
      << memory;
  EXPECT_GT(memory["plan"]["pinned_bytes"], 0);
}

// Exported from a session of another server.
TEST(MemoryBudgetPattern, IsGivenBeforeTheFirstStep) {
  ensure_backends_loaded();
  const TempFolder models, data, folder;
  const std::filesystem::path model = make_model(models.path());
  json pattern;
  {
    TestServer first({.model = model, .models = models.path()});
    ASSERT_TRUE(first.wait_until_loaded());
    const std::string id = first.generate({{"tokens", {1, 2, 3}}, {"max_tokens", 4}});
    first.wait_for_end(id);
    pattern = first.get("/api/v1/sessions/" + id + "/pattern").body;
    ASSERT_FALSE(pattern["per_token_pattern"].empty()) << pattern;
  }
  TestServer second({.model = model, .models = models.path(), .data = data.path()});
  ASSERT_TRUE(second.wait_until_loaded());
  const std::string path = kPath + "/access-pattern";
  json other = pattern;
  other["model_files"][0]["size"] = 12345;
  for (const json& wrong : {other, json::object()}) {
    const TestResponse refused = second.post(path, wrong.dump());
    EXPECT_EQ(refused.status, 400);
    EXPECT_TRUE(refused.body["detail"].get<std::string>().contains("Export one from a session"))
        << refused.body;
  }
  EXPECT_TRUE(second.post(path, other.dump())
                  .body["detail"]
                  .get<std::string>()
                  .contains("is of another model"));
  EXPECT_EQ(second.post("/api/v1/models/unknown/memory/access-pattern", pattern.dump()).status,
            404);
  ASSERT_EQ(second.post(path, pattern.dump()).status, 200);
  // The weights were repacked: the model is loaded again, with the pattern.
  ASSERT_EQ(second.patch(kPath, {{"budget", 12 * kMiB}}).status, 200);
  const auto is_active = [&] {
    const json memory = second.get(kPath).body;
    return memory.value("phase", "") == "active" &&
           memory["message"].get<std::string>().contains("order of the access pattern");
  };
  EXPECT_TRUE(wait_until(is_active)) << second.get(kPath).body;
}

TEST_F(MemoryBudgetRoutes, PlanListsEveryTensorAndPredictsEveryBudget) {
  ASSERT_TRUE(server_.wait_until_loaded()) << models();
  EXPECT_TRUE(plan()["curve"].empty()) << "before the first step";
  ASSERT_EQ(change({{"budget", "auto"}}).status, 200);
  ASSERT_TRUE(server_.wait_until_loaded()) << models();
  run();
  ASSERT_TRUE(reaches("fits")) << memory();

  const json now = plan();
  std::map<std::string, json> tensors;
  for (const json& tensor : now["tensors"]) tensors[tensor["tensor_name"]] = tensor;
  const json gguf = server_.get("/api/v1/models/model/gguf").body;
  EXPECT_EQ(tensors.size(), gguf["tensors"].size());
  for (const json& expected : gguf["tensors"]) {
    const json& tensor = tensors[expected["name"]];
    EXPECT_EQ(tensor["file_bytes"], expected["file_bytes"]);
    EXPECT_EQ(tensor["file_offset"], expected["file_offset"]);
    EXPECT_EQ(tensor["mapped"], true);
  }
  EXPECT_EQ(now["residency_known"], true);
  // The model was just written and read: it is in the page cache.
  EXPECT_EQ(sum(now, "resident_bytes"), sum(now, "file_bytes"));
  EXPECT_EQ(sum_of(now["resident_ranges"]), sum(now, "file_bytes"));
  EXPECT_TRUE(are_in_order(now["resident_ranges"]));
  EXPECT_LE(now["resident_ranges"].size(), now["tensors"].size()) << "adjacent units are merged";
  EXPECT_EQ(now["resident_unit_bytes"], json(sum(now, "file_bytes") / 4096));

  double speed = 0;
  ASSERT_EQ(now["curve"].size(), 40U);
  for (std::size_t i = 0; i < now["curve"].size(); ++i) {
    const json& point = now["curve"][i];
    ASSERT_TRUE(point["tokens_per_second"].is_number()) << point;
    EXPECT_GE(point["tokens_per_second"].get<double>(), speed) << "more memory is never slower";
    speed = point["tokens_per_second"];
    EXPECT_GE(point["tokens_per_second"].get<double>(),
              point["plain_tokens_per_second"].get<double>());
  }
}

// A budget loads the model again without repacking: the curve is that of the weights in the file.
TEST(MemoryBudgetCurve, IsTheSameForRepackedWeights) {
  ensure_backends_loaded();
  const TempFolder folder;
  const auto curve_of = [&](bool repack, bool& is_repacked) {
    TestServer server({.model = make_model(folder.path(), "q4_0"), .models = folder.path()});
    EXPECT_TRUE(server.wait_until_loaded());
    if (!repack) {
      EXPECT_EQ(server.patch(kPath, {{"budget", "auto"}}).status, 200);
      EXPECT_TRUE(server.wait_until_loaded());
    }
    const std::string id = server.generate({{"tokens", {1, 2, 3, 4}}, {"max_tokens", 12}});
    EXPECT_EQ(server.wait_for_end(id)["state"], "done");
    is_repacked = false;
    for (const json& row :
         server.get("/api/v1/sessions/" + id + "/breakdown?by=source").body["rows"])
      is_repacked = is_repacked || row["name"] == "repacked";
    EXPECT_TRUE(wait_until([&] { return server.get(kPath + "/plan").body["curve"].size() == 40; }));
    return server.get(kPath + "/plan").body["curve"];
  };
  bool first_is_repacked = false, second_is_repacked = false;
  const json first = curve_of(true, first_is_repacked);
  const json second = curve_of(false, second_is_repacked);
  EXPECT_TRUE(first_is_repacked);
  EXPECT_FALSE(second_is_repacked);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    for (const char* of : {"budget_bytes", "plain_bytes_per_token"})
      EXPECT_EQ(first[i][of], second[i][of]) << i;
}

// The pages behind the new end cannot be read: the request fails with a message, the model is
// unloaded, and the server goes on.
TEST(MemoryBudgetTruncation, UnloadsTheModel) {
  ensure_backends_loaded();
  const TempFolder models, data, copies;
  const std::filesystem::path file = make_model(models.path());
  std::filesystem::copy_file(file, copies / "whole.gguf");
  TestServer server({.model = file, .models = models.path(), .data = data.path()});
  ASSERT_TRUE(server.wait_until_loaded());
  ASSERT_EQ(server.patch(kPath, {{"budget", 12 * kMiB}}).status, 200);
  ASSERT_TRUE(server.wait_until_loaded());
  server.wait_for_end(server.generate({{"tokens", {1, 2, 3}}, {"max_tokens", 4}}));
  ASSERT_TRUE(wait_until([&] { return server.get(kPath).body.value("phase", "") == "active"; }));
  const std::string id =
      server.generate({{"tokens", {1, 2, 3}}, {"max_tokens", 100'000}, {"ignore_eos", true}});
  ASSERT_TRUE(wait_until([&] { return server.state_of(id)["generated"].get<int>() > 2; }));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 4);
  const json ended = server.wait_for_end(id);
  EXPECT_EQ(ended["state"], "failed") << ended;
  EXPECT_FALSE(ended["error"].get<std::string>().empty());
  // The next request finds out why.
  const TestResponse rejected = server.post("/api/v1/generate", R"({"tokens":[1],"max_tokens":1})");
  EXPECT_EQ(rejected.status, 409) << rejected.body;
  EXPECT_EQ(rejected.body["code"], "model_changed");
  ASSERT_TRUE(wait_until(
      [&] { return server.get("/api/v1/models/model").body.value("state", "") == "failed"; }));
  EXPECT_EQ(server.get(kPath).status, 409);
  EXPECT_EQ(server.get("/api/v1/health").status, 200);
  // The complete file again.
  std::filesystem::copy_file(copies / "whole.gguf", file,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(server.post("/api/v1/models/model/load", "").status, 202);
  ASSERT_TRUE(server.wait_until_loaded());
  EXPECT_EQ(server.wait_for_end(server.generate({{"tokens", {1, 2}}, {"max_tokens", 2}}))["state"],
            "done");
}

TEST_F(MemoryBudgetRoutes, RejectsInvalidOptions) {
  ASSERT_TRUE(server_.wait_until_loaded()) << models();
  for (const char* body :
       {R"({"budget": 0})", R"({"budget": -1})", R"({"budget": "much"})", R"({"budget": 1.5})",
        R"({"budget": 1e30})", R"({"pin": 1})", R"({"prefetch": null})", R"({"size": 3})"}) {
    const TestResponse answer = change(json::parse(body));
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(answer.body["code"], "bad_request") << body;
  }
  EXPECT_EQ(memory()["budget"], "off") << "unchanged";
  EXPECT_EQ(server_.get("/api/v1/models/unknown/memory").status, 404);
  EXPECT_EQ(server_.patch("/api/v1/models/unknown/memory", {{"budget", "auto"}}).status, 404);

  EXPECT_EQ(server_.post("/api/v1/models/model/unload", "").status, 202);
  ASSERT_TRUE(
      wait_until([&] { return server_.get(kPath).body.value("code", "") == "model_not_loaded"; }));
  EXPECT_EQ(change({{"budget", "auto"}}).body["code"], "model_not_loaded");
}

TEST_F(MemoryBudgetRoutes, DoesNotReloadABusyModel) {
  ASSERT_TRUE(server_.wait_until_loaded()) << models();
  const std::string id =
      server_.generate({{"tokens", {1, 2, 3}}, {"max_tokens", 1000}, {"ignore_eos", true}});
  const TestResponse answer = change({{"budget", 10 * kMiB}});
  EXPECT_EQ(answer.status, 409) << answer.body;
  EXPECT_EQ(answer.body["code"], "model_busy");
  EXPECT_EQ(server_.del("/api/v1/generate/" + id).status, 202);
  EXPECT_NE(server_.wait_for_end(id)["state"], "failed");
  EXPECT_EQ(memory()["budget"], "off");
}

}  // namespace
}  // namespace tt::test
