// The same question about the same session has the same answer: the verb of `tt` with --json beside
// the route of REST, of a dense model, a mixture of experts and a recurrent model.
#include <gtest/gtest.h>

#include <format>
#include <set>
#include <string>
#include <vector>

#include "tests/server/models/model_files.h"
#include "tests/server/support/test_server.h"
#include "tests/support/command_output.h"
#include "tests/support/test_paths.h"

namespace tt::test {
namespace {

struct Question {
  const char* verb;
  const char* route;
};
// Below "/sessions/{id}".
constexpr Question kQuestions[] = {
    {"show {}", ""},
    {"hot {}", "/hot?limit=20&step_times=true"},
    {"hot {} --by layer --value time", "/hot?by=layer&value=time&limit=20&step_times=true"},
    {"hot {} --tensor ffn --phase prompt", "/hot?tensor=ffn&phase=prompt&limit=20&step_times=true"},
    {"moe {}", "/experts"},
    {"heads {}", "/heads"},
    {"reuse {}", "/reuse"},
    {"report {}", "/report?format=json"},
    {"parse {} --validate", "/validation"},
};

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

class SameAnswers : public ::testing::TestWithParam<const char*> {};

TEST_P(SameAnswers, InTtAndRest) {
  ensure_backends_loaded();
  TestServer server({.model = model_files(GetParam()).front()});
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = server.generate({{"tokens", {1, 2, 3, 4, 5, 6, 7, 8, 9}},
                                          {"max_tokens", 6},
                                          {"temperature", 0},
                                          {"ignore_eos", true}});
  ASSERT_EQ(server.wait_for_end(id)["state"], "done");
  const std::string file = (server.data / (id + ".ttrace")).string();
  for (const auto& [verb, route] : kQuestions) {
    SCOPED_TRACE(verb);
    const std::string arguments = std::vformat(verb, std::make_format_args(file));
    const CommandResult printed =
        run_command(std::format("{} {} --json", kTestPaths.tt, arguments));
    const TestResponse answer = server.get("/api/v1/sessions/" + id + route);
    // What does not apply, such as experts of a dense model, applies nowhere.
    ASSERT_EQ(printed.status == 0, answer.status == 200) << printed.output << answer.body;
    if (answer.status != 200) continue;
    const json of_tt = json::parse(printed.output, nullptr, false);
    ASSERT_TRUE(of_tt.is_object()) << printed.output;
    // A verb may print more: it answers several questions at once.
    std::size_t same = 0;
    for (const std::string& key : keys_of(answer.body)) {
      if (!of_tt.contains(key)) continue;
      EXPECT_EQ(of_tt[key], answer.body[key]) << key;
      ++same;
    }
    EXPECT_GE(same, std::min<std::size_t>(5, answer.body.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SameAnswers, ::testing::Values("small", "moe", "mamba"));

}  // namespace
}  // namespace tt::test
