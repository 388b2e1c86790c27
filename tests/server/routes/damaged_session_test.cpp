// Damaged session files over HTTP: every request is answered from the steps before the damage,
// as if the session ended there, and the response says so (X-Whole-Steps).
#include <gtest/gtest.h>
#include <httplib.h>

#include <cstdint>
#include <filesystem>
#include <format>
#include <string>
#include <vector>

#include "tests/server/support/http_client.h"
#include "tests/server/support/recorded_sessions.h"

namespace tt::test {
namespace {

constexpr const char* kRequests[] = {
    "/determinism",    "/pattern", "/reuse",
    "/heads",          "/kv",      "/experts/pinning",
    "/experts/caches", "/experts", "/compression",
    "/steps",          "/tokens",  "/accesses?limit=10000&sort=-bytes&component=output"};
constexpr const char* kExports[] = {"csv", "ndjson", "chrome"};

struct RawResult {
  int status = 0;
  std::string readable_steps;  // "": no header
  std::string body;
};

class DamagedSessions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ensure_backends_loaded(); }
  void SetUp() override {
    ASSERT_TRUE(server.wait_until_loaded());
    json request = short_request("Tell me a story about a fox.");
    // The first page of the tokens is written again, at the end of the file, when they need a
    // second one: long before the part that is cut off.
    request["max_tokens"] = 400;
    const std::string id = server.generate(request);
    ASSERT_EQ(server.wait_for_end(id)["state"], "done");
    whole = read_bytes(file(id));
    steps = server.get("/api/v1/sessions/" + id).body["steps"];
  }
  fs::path file(const std::string& id) const { return server.folder.path() / (id + ".ttrace"); }

  RawResult get(const std::string& id, const std::string& path) {
    const auto result = get_when_computed(server.client(), "/api/v1/sessions/" + id + path);
    if (!result) return {};
    return {result->status, result->get_header_value("X-Whole-Steps"), result->body};
  }

  // The first `count` steps of the session and their tokens, written with the sqlite3 shell.
  void write_prefix(const std::string& id, std::uint32_t count) {
    write_bytes(file(id), whole);
    const std::string tokens =
        run_sqlite3(file(id), std::format("SELECT max(first_token + n_tokens) FROM tt_step "
                                          "WHERE id < {}",
                                          count));
    EXPECT_EQ(
        run_sqlite3(file(id), std::format("DELETE FROM tt_step WHERE id >= {}; "
                                          "DELETE FROM tt_token WHERE idx >= {}; "
                                          "DELETE FROM tt_template WHERE id NOT IN "
                                          "(SELECT template FROM tt_step); "
                                          "DELETE FROM tt_meta WHERE key IN ('steps', 'tokens')",
                                          count, tokens)),
        "");
  }

  void expect_answers_up_to_damage(const std::string& id) {
    const std::string whole_steps_header = get(id, "/determinism").readable_steps;
    ASSERT_FALSE(whole_steps_header.empty()) << get(id, "/determinism").body;
    const auto count = static_cast<std::uint32_t>(std::stoul(whole_steps_header));
    EXPECT_GT(count, 10u);
    EXPECT_LT(count, steps);
    const std::string before = "before-" + id;
    write_prefix(before, count);
    int up_to_damage = 0;
    for (const char* path : kRequests) {
      SCOPED_TRACE(path);
      const RawResult damaged = get(id, path), reference = get(before, path);
      EXPECT_EQ(damaged.status, 200) << damaged.body;
      EXPECT_EQ(reference.status, 200) << reference.body;
      // Requests that only read before the damage are answered normally.
      if (damaged.readable_steps.empty()) continue;
      EXPECT_EQ(damaged.readable_steps, whole_steps_header);
      EXPECT_EQ(damaged.body, reference.body);
      ++up_to_damage;
    }
    EXPECT_GE(up_to_damage, 6);
    for (const char* format : kExports) {
      SCOPED_TRACE(format);
      const std::string path = std::string("/export?format=") + format;
      const RawResult damaged = get(id, path), reference = get(before, path);
      EXPECT_EQ(damaged.status, 200) << damaged.body;
      EXPECT_EQ(damaged.readable_steps, whole_steps_header);
      EXPECT_EQ(damaged.body, reference.body);
      EXPECT_EQ(reference.readable_steps, "");
    }
    const RawResult ranged = get(id, "/export?format=csv&last_step=4294967295");
    EXPECT_EQ(ranged.readable_steps, whole_steps_header);
    EXPECT_EQ(ranged.body, get(before, "/export?format=csv").body);
    const RawResult report = get(id, "/report?format=md"),
                    comparison = get(id, "/comparison/" + before);
    EXPECT_EQ(report.status, 200) << report.body;
    EXPECT_EQ(report.readable_steps, whole_steps_header);
    EXPECT_TRUE(report.body.contains(std::format(
        "damaged: only the {} steps before the damage can be read", whole_steps_header)))
        << report.body;
    EXPECT_EQ(comparison.status, 200) << comparison.body;
    EXPECT_EQ(comparison.readable_steps, whole_steps_header);
    // A damaged row is an error, not a missing row.
    const RawResult row = get(id, std::format("/steps/{}/ops", count));
    EXPECT_EQ(row.status, 500) << row.body;
    EXPECT_TRUE(row.body.contains("session_damaged")) << row.body;
  }

  TestServer server;
  std::string whole;
  std::uint32_t steps = 0;
};

TEST_F(DamagedSessions, TruncatedFileIsReadUpToItsEnd) {
  for (const std::size_t tenths : {6UL, 8UL}) {
    SCOPED_TRACE(tenths);
    const std::string id = std::format("cut-{}", tenths);
    write_bytes(file(id), whole.substr(0, whole.size() * tenths / 10));
    expect_answers_up_to_damage(id);
  }
}

TEST_F(DamagedSessions, FileWithFlippedBitIsReadUpToTheDamage) {
  std::string bytes = whole;
  bytes[bytes.size() * 6 / 10] ^= 0x10;
  write_bytes(file("flipped"), bytes);
  expect_answers_up_to_damage("flipped");
}

}  // namespace
}  // namespace tt::test
