// The file that holds the page and a session: read by a program of its own (read_page_file.py), and
// compared with the session. That the page shows it is tested in webui/test/e2e/html.e2e.ts.
#include "server/page_file/page_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <format>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "api/json/json.h"
#include "tests/support/command_output.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/lens_values.h"

namespace tt::test {
namespace {

constexpr std::size_t kSteps = 12;
// As the build of the page writes it, with other questions.
constexpr const char* kViewer =
    R"(<html><body>before <script type="application/json" id="questions">[
{"each":"step","method":"GET","target":"sessions/{session}/steps/{step}/ops?from=0&limit=10000"},
{"each":"once","needed":true,"method":"GET","target":"sessions/{session}"},
{"each":"tokens","every":5,"needed":true,"method":"GET","target":"sessions/{session}/tokens?from={from}&limit=5"},
{"each":"steps","every":5,"beyond":100,"method":"GET","target":"sessions/{session}/steps?from={from}"},
{"each":"template","method":"GET","target":"sessions/{session}/templates/{template}/nodes"},
{"each":"layer","method":"GET","target":"sessions/{session}/breakdown?by=op&layers={layer}"},
{"each":"once","method":"GET","target":"sessions/{session}/experts/layers/99"},
{"each":"once","method":"POST","target":"sessions/{session}/query","body":"{\"sql\":\"SELECT count(*) FROM step WHERE step < 3\"}"}
]</script> after</body></html>)";

class PageFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_ / "viewer.html") << kViewer;
    const RandomSession session = plausible_session(1, kSteps);
    ASSERT_TRUE(write_session(options_.session, session).has_value());
  }

  Status write() {
    html_.clear();
    return write_page_file(
        options_,
        [this](std::string_view bytes) -> Status {
          html_ += bytes;
          return {};
        },
        never_cancel);
  }
  Json read() {
    std::ofstream(folder_ / "s.html") << html_;
    return Json::parse(command_output("python3 " +
                                      source_path("tests/server/page_file/read_page_file.py") +
                                      " " + (folder_ / "s.html").string()));
  }
  static std::vector<std::string> keys(const Json& file, const std::string& part) {
    std::vector<std::string> found;
    for (const Json& one : file["answers"])
      if (const std::string key = one["key"]; key.contains(part)) found.push_back(key);
    return found;
  }

  TempFolder folder_;
  PageFileOptions options_{.session = folder_ / "my session.ttrace",
                           .viewer = folder_ / "viewer.html"};
  std::string html_;
};

TEST_F(PageFile, HoldsTheAnswersToAllQuestions) {
  ASSERT_TRUE(write().has_value());
  const Json file = read();
  EXPECT_EQ(file["around"], "<html><body>before  after</body></html>");
  EXPECT_EQ(file["session"], "my-session");  // as a server would name it
  const auto reader = SessionReader::open(options_.session);
  ASSERT_TRUE(reader.has_value());
  const std::uint32_t tokens = *reader->token_count();
  EXPECT_EQ(keys(file, "/ops").size(), kSteps);
  EXPECT_EQ(keys(file, "/tokens").size(), std::max(1U, (tokens + 4) / 5));
  EXPECT_EQ(keys(file, "/steps?").size(), 0U);  // not beyond 100 steps
  EXPECT_EQ(keys(file, "layers=").size(), reader->info()->n_layers);
  std::vector<std::uint32_t> used;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    const std::uint32_t graph = reader->step(StepId{step})->graph.v;
    const std::uint32_t same = file["same"][step];
    EXPECT_EQ(reader->step(StepId{same})->graph.v, graph);
    if (graph != 0 && !std::ranges::contains(used, graph)) used.push_back(graph);
  }
  EXPECT_EQ(keys(file, "/nodes").size(), used.size());

  std::uint32_t listed = 0;
  for (const Json& one : file["answers"]) {
    const std::string key = one["key"];
    const Json body = Json::parse(std::string(one["body"]));
    if (key == "GET sessions/my-session") {
      EXPECT_EQ(body["steps"], kSteps);
    }
    if (key.contains("/tokens")) listed += static_cast<std::uint32_t>(body["tokens"].size());
    if (key.contains("/query")) {
      EXPECT_EQ(body["rows"], Json::parse("[[3]]"));
    }
    if (key.contains("/99")) {
      EXPECT_EQ(one["status"], 404);  // an answer, too
    }
  }
  EXPECT_EQ(listed, tokens);
  // What is needed to open the session comes first.
  EXPECT_EQ(file["answers"][0]["key"], "GET sessions/my-session");
}

TEST_F(PageFile, HoldsTheDetailsOfTheStepsInRange) {
  options_.first = StepId{3};
  options_.last = StepId{5};
  ASSERT_TRUE(write().has_value());
  const auto ops = keys(read(), "/ops");
  ASSERT_EQ(ops.size(), 3U);
  EXPECT_TRUE(ops.front().contains("/steps/3/")) << ops.front();
  EXPECT_TRUE(ops.back().contains("/steps/5/")) << ops.back();
  options_.last = StepId{std::numeric_limits<std::uint32_t>::max()};
  ASSERT_TRUE(write().has_value());
  EXPECT_EQ(keys(read(), "/ops").size(), kSteps - 3);
}

TEST_F(PageFile, LeavesOutDetailsWhereItWouldBeTooLarge) {
  ASSERT_TRUE(write().has_value());
  const std::uint64_t whole = html_.size();
  options_.max_bytes = whole - whole / 4;
  ASSERT_TRUE(write().has_value());
  EXPECT_LE(html_.size(), options_.max_bytes);
  EXPECT_GT(html_.size(), options_.max_bytes / 2);
  const Json file = read();
  EXPECT_EQ(keys(file, "/tokens").size(), keys(file, "limit=5").size());  // needed: all of them
  const auto ops = keys(file, "/ops");
  for (std::size_t step = 0; step < ops.size(); ++step)
    EXPECT_TRUE(ops[step].contains("/steps/" + std::to_string(step) + "/")) << ops[step];

  options_.max_bytes = 1000;
  const Status none = write();
  ASSERT_FALSE(none.has_value());
  EXPECT_TRUE(none.error().message.contains("tt-server")) << none.error().message;
}

// Each of their questions is a walk over the steps.
TEST_F(PageFile, AsksAboutCapturedValuesWhereThereAreSome) {
  std::ofstream(options_.viewer) << R"(<script type="application/json" id="questions">[
{"each":"output","method":"GET","target":"sessions/{session}/steps/{step}/ops/{op}/values?output={output}&limit=0"},
{"each":"tokens","every":5,"captured":true,"method":"GET","target":"sessions/{session}/attention/tokens?from_token={from}&to_token={to}"}
]</script>)";
  ASSERT_TRUE(write().has_value());
  EXPECT_EQ(keys(read(), "").size(), 0U);

  RandomSession session = plausible_session(1, kSteps);
  const auto has_graph = [](const Step& step) { return step.graph.v != 0; };
  const auto step = std::ranges::find_if(session.steps, has_graph);
  ASSERT_NE(step, session.steps.end());
  session.values = {
      {.step = step->id,
       .outputs = {{.op = OpId{0}, .ne = {2, 1, 1, 1}, .values = {0.5F, 1.5F}},
                   // Texts are not asked about.
                   {.op = OpId{1}, .of = kLensValues, .ne = {2, 1, 1, 1}, .values = {0, 0}}}}};
  std::filesystem::remove(options_.session);
  ASSERT_TRUE(write_session(options_.session, session).has_value());
  ASSERT_TRUE(write().has_value());
  const Json file = read();
  const auto asked = keys(file, "/values?output=");
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_TRUE(asked.front().contains(std::format("/steps/{}/ops/0/", step->id.v))) << asked.front();
  for (const Json& one : file["answers"])
    if (one["key"] == asked.front()) {
      EXPECT_EQ(one["status"], 200);
      EXPECT_EQ(Json::parse(std::string(one["body"]))["histogram"].size(), 64U);
    }
  const auto tokens = static_cast<std::uint32_t>(session.tokens.size());
  const auto pages = keys(file, "from_token=");
  EXPECT_EQ(pages.size(), std::max(1U, (tokens + 4) / 5));
  EXPECT_TRUE(pages.front().ends_with("from_token=0&to_token=5")) << pages.front();
}

TEST_F(PageFile, IsNotWrittenWithoutThePageOrOfARunningSession) {
  EXPECT_TRUE(check_page_file(options_).has_value());
  options_.viewer = folder_ / "none.html";
  const Status missing = check_page_file(options_);
  ASSERT_FALSE(missing.has_value());
  EXPECT_TRUE(missing.error().message.contains("none.html is missing")) << missing.error().message;
  options_.viewer = folder_ / "other.html";
  std::ofstream(options_.viewer) << "<html></html>";
  EXPECT_FALSE(check_page_file(options_).has_value());

  options_.viewer = folder_ / "viewer.html";
  RandomSession running = plausible_session(1, kSteps);
  running.info.state = SessionState::Running;
  std::filesystem::remove(options_.session);
  ASSERT_TRUE(write_session(options_.session, running).has_value());
  const Status unfinished = check_page_file(options_);
  ASSERT_FALSE(unfinished.has_value());
  EXPECT_EQ(unfinished.error().kind, TraceError::Kind::Running);
}

}  // namespace
}  // namespace tt::test
