#include "tests/integration/served_sessions_check.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <format>
#include <string>
#include <string_view>

#include "analysis/analyses.h"
#include "api/openapi/openapi.h"
#include "tests/api/exchange/export_check.h"
#include "tests/server/support/analysis_route.h"
#include "tests/server/support/test_server.h"

namespace tt::test {
namespace {

class ServedSession {
 public:
  ServedSession(TestServer& server, std::string id) : server_(server), id_(std::move(id)) {}

  json ask(const std::string& question) {
    const TestResponse answer = server_.get("/api/v1/sessions/" + id_ + "/" + question);
    EXPECT_EQ(answer.status, 200) << question << ": " << answer.body;
    return answer.body;
  }
  // Every question about one session that api/openapi.yaml describes. One about a step or a layer
  // may not apply to the session: then it is refused with a sentence.
  void ask_all() {
    constexpr std::string_view kSession = "/api/v1/sessions/{id}/";
    const json paths = json::parse(openapi_json())["paths"];
    std::size_t asked = 0;
    for (const auto& [path, methods] : paths.items()) {
      if (!path.starts_with(kSession) || !methods.contains("get") || path.contains("{other}") ||
          !methods["get"]["responses"]["200"]["content"].contains("application/json") ||
          path.ends_with("/export"))
        continue;
      const std::string below = path.substr(kSession.size());
      const auto row = std::ranges::find(analyses(), below, &Analysis::path);
      const bool is_row = row != analyses().end();
      std::string question = route_of(below, "step=0 template=1 layer=0");
      question = is_row ? route_of(*row, row->example) : question.substr(0, question.find('?'));
      const bool may_not_apply =
          path.contains("{step}") || path.contains("{layer}") || (is_row && *row->example != 0);
      const TestResponse answer = server_.get("/api/v1/sessions/" + id_ + "/" + question);
      if (may_not_apply && answer.status == 404) {
        EXPECT_TRUE(answer.body["detail"].get<std::string>().ends_with('.')) << answer.body;
      } else {
        EXPECT_EQ(answer.status, 200) << question << ": " << answer.body;
      }
      ++asked;
    }
    EXPECT_GT(asked, analyses().size());
  }
  json query(const std::string& sql) {
    const json request = {{"sql", sql}, {"timeout_ms", 60'000}};
    const TestResponse answer = server_.post("/api/v1/sessions/" + id_ + "/query", request.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.status == 200 ? answer.body["rows"][0] : json();
  }
  std::string csv() {
    const auto answer = server_.client().Get("/api/v1/sessions/" + id_ + "/export?format=csv");
    return answer && answer->status == 200 ? answer->body : "";
  }

 private:
  TestServer& server_;
  std::string id_;
};

FiveTotals totals_of_pages(ServedSession& session) {
  FiveTotals totals;
  std::string cursor;
  while (true) {
    const json page = session.ask("accesses?limit=1000" + cursor);
    for (const json& access : page["accesses"]) {
      const std::uint64_t bytes = access["size_bytes"];
      ++totals.accesses;
      (access["write"].get<bool>() ? totals.written : totals.read) += bytes;
      if (!access["file_offset"].is_null()) totals.from_file += bytes;
      totals.of_experts += !access["expert_id"].is_null();
    }
    if (!page["next"].is_string()) return totals;
    cursor = "&cursor=" + page["next"].get<std::string>();
  }
}

FiveTotals totals_of_csv(const std::string& text) {
  const auto rows = csv_rows(text);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(rows.at(0), name) - rows[0].begin());
  };
  const std::size_t size = column("size_bytes"), write = column("write"),
                    offset = column("file_offset"), expert = column("expert_id");
  const std::string null(1, '\0');
  FiveTotals totals;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::uint64_t bytes = std::stoull(rows[i][size]);
    ++totals.accesses;
    (rows[i][write] == "true" ? totals.written : totals.read) += bytes;
    if (rows[i][offset] != null) totals.from_file += bytes;
    totals.of_experts += rows[i][expert] != null;
  }
  return totals;
}

// The parts of a step add up to its total, except for the rounding of doubles.
void expect_near(double served, std::uint64_t walked, const std::string& of) {
  const auto expected = static_cast<double>(walked);
  EXPECT_NEAR(served, expected, 1e-9 * expected) << of;
}

void expect_totals_served(ServedSession& session, const FiveTotals& walked) {
  EXPECT_EQ(
      session.query("SELECT count(*), coalesce(sum(size_bytes) FILTER (WHERE NOT write), 0), "
                    "coalesce(sum(size_bytes) FILTER (WHERE write), 0), "
                    "coalesce(sum(size_bytes) FILTER (WHERE file_offset IS NOT NULL), 0), "
                    "count(expert_id) FROM access"),
      json({walked.accesses, walked.read, walked.written, walked.from_file, walked.of_experts}));
  EXPECT_EQ(totals_of_pages(session), walked);
  EXPECT_EQ(totals_of_csv(session.csv()), walked);

  std::uint64_t accesses = 0, read = 0, written = 0;
  for (const json& step : session.ask("steps?limit=10000")["steps"]) {
    accesses += step["accesses"].get<std::uint64_t>();
    read += step["bytes_read"].get<std::uint64_t>();
    written += step["bytes_written"].get<std::uint64_t>();
  }
  EXPECT_EQ(json({accesses, read, written}), json({walked.accesses, walked.read, walked.written}));

  for (const char* by : {"tensor", "op_kind", "layer", "token"}) {
    const json sums = session.ask(std::string("breakdown?by=") + by)["sums"]["all"];
    expect_near(sums["reads"].get<double>() + sums["writes"].get<double>(), walked.accesses, by);
    expect_near(sums["bytes_read"], walked.read, by);
    expect_near(sums["bytes_written"], walked.written, by);
  }
  for (const char* picture :
       {"heatmap?x=time&y=op", "heatmap?x=tensor&y=component", "timeline?y=source"})
    expect_near(session.ask(picture + std::string("&value=bytes_read"))["total"], walked.read,
                picture);
}

}  // namespace

int expect_served_sessions(const std::filesystem::path& folder) {
  TestServer server({.model = {}, .data = folder});
  int sessions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ttrace") continue;
    SCOPED_TRACE(entry.path().stem().string());
    ServedSession session(server, entry.path().stem().string());
    expect_totals_served(session, walked_totals(SessionReader::open(entry.path()).value()));
    session.ask_all();
    ++sessions;
  }
  return sessions;
}

}  // namespace tt::test
