// Exports over HTTP: byte-identical to tt export, and streamed.
#include <gtest/gtest.h>
#include <httplib.h>

#include "api/exchange/export.h"
#include "tests/server/support/recorded_sessions.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {
namespace {

class ExportRoute : public ::testing::Test {
 protected:
  ExportRoute() { ensure_backends_loaded(); }
};

std::string export_path(const std::string& id, const std::string& query) {
  return "/api/v1/sessions/" + id + "/export" + query;
}

TEST_F(ExportRoute, MatchesCommandLineOutputInEveryFormat) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  const auto reader = SessionReader::open(server.data / (id + ".ttrace"));
  ASSERT_TRUE(reader.has_value());
  for (const exchange::FormatInfo& facts : exchange::formats()) {
    SCOPED_TRACE(facts.name);
    std::string expected;
    ASSERT_TRUE(exchange::export_session(*reader, {.format = facts.format},
                                         [&](std::string_view bytes) -> exchange::WriteResult {
                                           expected += bytes;
                                           return {};
                                         })
                    .has_value());
    const auto sent = server.client().Get(export_path(id, "?format=" + std::string(facts.name)));
    ASSERT_TRUE(sent && sent->status == 200);
    EXPECT_EQ(sent->body, expected);
    EXPECT_EQ(sent->get_header_value("Content-Type"), facts.media_type);
    EXPECT_EQ(sent->get_header_value("Content-Disposition"),
              "attachment; filename=\"" + id + std::string(facts.extension) + "\"");
    EXPECT_FALSE(sent->get_header_value("ETag").empty());
  }
}

TEST_F(ExportRoute, RejectsInvalidParameters) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = record(server);
  EXPECT_EQ(server.get(export_path("none", "")).status, 404);
  const TestResponse unknown = server.get(export_path(id, "?format=xlsx"));
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(server.get(export_path(id, "?first_step=-1")).status, 400);
  EXPECT_EQ(server.get(export_path(id, "?level=loud")).status, 400);
  // Rejected before the export starts: the range has no steps.
  for (const char* format : {"dot", "csv", "folder"}) {
    const auto rejected =
        server.get(export_path(id, std::format("?format={}&first_step=100000", format)));
    EXPECT_EQ(rejected.status, 400);
    EXPECT_TRUE(
        rejected.body["detail"].get<std::string>().contains("Step 100000 does not exist: the "
                                                            "session has steps 0 to"))
        << rejected.body;
  }
  EXPECT_EQ(server.get(export_path(id, "?format=csv&last_step=100000")).status, 200);
}

TEST_F(ExportRoute, RunningSessionExportsCommittedSteps) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_loaded());
  const std::string id = start_long_request(server);
  const auto sent = server.client().Get(export_path(id, "?format=ndjson&level=minimal"));
  ASSERT_TRUE(sent && sent->status == 200);
  EXPECT_TRUE(sent->body.contains("\"event\":\"session_end\""));
  EXPECT_TRUE(sent->body.contains("\"state\":\"running\""));
  cancel_and_wait(server, id);
}

}  // namespace
}  // namespace tt::test
