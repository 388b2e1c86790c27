// The recorded data of a session over HTTP.
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <format>
#include <set>

#include "tests/server/support/test_server.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/sessions/small_session.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

// A server with one finished session, "small", of `steps` steps.
class TraceServer : public TestServer {
 public:
  explicit TraceServer(std::uint32_t steps = 3) {
    std::vector<Step> all;
    for (std::uint32_t i = 0; i < steps; ++i) all.push_back(small_step(i));
    add(all);
  }
  explicit TraceServer(const std::vector<Step>& steps) { add(steps); }
  void add(const std::vector<Step>& steps) {
    const SmallSession session(steps);
    std::filesystem::copy_file(session.path, folder.path() / "small.ttrace");
  }
  TestResponse ask(const std::string& target) { return get("/api/v1/sessions/small/" + target); }
};

std::string join_field(const json& rows, const char* field) {
  std::string text;
  for (const json& row : rows) {
    text += (text.empty() ? "" : " ") +
            (row[field].is_string() ? row[field].get<std::string>() : row[field].dump());
  }
  return text;
}

// Of three steps, the last one waited for a processor.
TEST(TraceRoutes, ConditionsNameWhatDisturbedTheSession) {
  constexpr std::uint64_t kMs = 1'000'000;
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 3; ++i) {
    Step step = small_step(i);
    step.threads = 1;
    step.end = step.begin + Ns{static_cast<std::int64_t>((10 + i) * kMs)};
    step.conditions.interval_ns = 10 * kMs;
    step.conditions.cpu_ns = i == 2 ? 4 * kMs : 10 * kMs;
    step.conditions.cpu_wait_ns = i == 2 ? 6 * kMs : 0;
    steps.push_back(step);
  }
  TraceServer server(steps);
  const auto ask = [&](const std::string& target) { return server.ask(target).body; };
  const json all = ask("conditions");
  EXPECT_EQ(all["verdict"], "contended") << all;
  EXPECT_TRUE(all["text"].get<std::string>().contains("20 % of their time")) << all;
  EXPECT_EQ(all["steps"],
            (json{{"clean", 2}, {"contended", 1}, {"throttled", 0}, {"disk", 0}, {"unknown", 0}}));
  EXPECT_EQ(all["cpu_percent"], 80);
  EXPECT_EQ(all["cpu_wait_percent"], 20);
  EXPECT_EQ(all["phases"]["generate"]["step_ns"],
            (json{{"p5", 11 * kMs}, {"median", 11 * kMs}, {"p95", 12 * kMs}}));
  const json clean = ask("conditions?clean=true");
  EXPECT_EQ(clean["phases"]["generate"]["left_out_steps"], 1);
  EXPECT_EQ(clean["phases"]["generate"]["step_ns"]["p95"], 11 * kMs);
  const json rows = ask("steps")["steps"];
  EXPECT_EQ(join_field(rows, "verdict"), "clean clean contended");
  EXPECT_EQ(rows[2]["cpu_wait_ns"], 6 * kMs);
  EXPECT_EQ(rows[2]["major_faults"], nullptr);
  EXPECT_EQ(server.ask("conditions?clean=often").status, 400);
  // Sums of the clean steps are those of steps 0 and 1.
  for (const std::string sum :
       {"heatmap?x=op_kind&y=component&", "memory-map?width=9&", "timeline?y=layer&width=1&",
        "breakdown?by=tensor&", "hot?by=tensor&", "sequentiality?",
        "comparison?left_layer=0&right_layer=1&"}) {
    const TestResponse of_clean = server.ask(sum + "clean=true");
    ASSERT_EQ(of_clean.status, 200) << sum << of_clean.body;
    const auto sums = [](json found) {
      for (const char* field : {"x", "rows", "cells", "total", "bytes", "accesses"})
        if (!found.contains(field)) found[field] = nullptr;
      return json{found["cells"], found["rows"], found["total"], found["bytes"], found["accesses"]};
    };
    EXPECT_EQ(sums(of_clean.body), sums(ask(sum + "to_step=2"))) << sum;
    // Of a usual step, and all steps of the session are alike.
    if (!sum.starts_with("comparison")) {
      EXPECT_NE(sums(of_clean.body), sums(ask(sum))) << sum;
    }
    EXPECT_EQ(of_clean.body["left_out_steps"], 1) << sum;
    EXPECT_EQ(ask(sum)["left_out_steps"], 0) << sum;
    EXPECT_EQ(server.ask(sum + "clean=often").status, 400);
  }
}

// The list of steps with format=columns (api/step_format.md), as the rows of the JSON response.
json decoded_steps(const std::string& body) {
  struct Header {
    std::uint32_t magic;
    std::uint16_t kind, flags;
    std::uint32_t steps, columns, layers, reserved[3];
  } header{};
  static_assert(sizeof(Header) == 32);
  if (body.size() < sizeof header) return "shorter than its header";
  std::memcpy(&header, body.data(), sizeof header);
  if (header.magic != 0x31465454 || header.kind != 4) return "not steps";
  const std::size_t numbers = std::size_t{header.steps} * (header.columns + 2 * header.layers);
  const std::size_t end = sizeof header + sizeof(double) * numbers;
  if (body.size() < end) return "truncated";
  const auto number = [&](std::size_t i) {
    double value = 0;
    std::memcpy(&value, body.data() + sizeof header + sizeof value * i, sizeof value);
    return value;
  };
  // Integers compare equal to the numbers of the JSON only as integers.
  const auto field = [](double value) {
    if (std::isnan(value)) return json();
    return value == std::floor(value) ? json(static_cast<std::int64_t>(value)) : json(value);
  };
  const json description = json::parse(body.substr(end));
  json out = {{"total", description["total"]}, {"steps", json::array()}};
  for (std::size_t step = 0; step < header.steps; ++step) {
    json row;
    for (std::size_t i = 0; i < header.columns; ++i) {
      const json& column = description["columns"][i];
      json& to = row[column["name"].get<std::string>()] = field(number(i * header.steps + step));
      if (to.is_null()) continue;
      if (column.contains("words")) to = json(column["words"][to.get<std::size_t>()]);
      if (column.contains("flag")) to = to == 1;
    }
    const std::size_t layers = std::size_t{header.columns} * header.steps + step * header.layers;
    for (std::size_t i = 0; i < header.layers; ++i) {
      row["layers"]["ns"].push_back(field(number(layers + i)));
      row["layers"]["bytes"].push_back(
          field(number(layers + std::size_t{header.steps} * header.layers + i)));
    }
    out["steps"].push_back(row);
  }
  return out;
}

TEST(TraceRoutes, StepsAsColumnsAreThoseOfJson) {
  constexpr std::uint64_t kMs = 1'000'000;
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < 7; ++i) {
    Step step = small_step(i);
    step.threads = 1;
    step.aborted = i == 6;
    step.conditions.interval_ns = 10 * kMs;
    if (i % 2 == 0) step.conditions.cpu_wait_ns = 6 * kMs;  // otherwise null
    if (i == 3) step.conditions.disk_read_bytes = 1000;     // reread_factor is not an integer
    steps.push_back(step);
  }
  TraceServer server(steps);
  for (const std::string page :
       {"steps?limit=10000", "steps?from=2&limit=3", "steps?from=7", "steps?last=2", "steps?last=0",
        "steps?last=10000&from=3&limit=1"}) {
    const auto columns = server.client().Get("/api/v1/sessions/small/" + page + "&format=columns");
    ASSERT_TRUE(columns) << page;
    ASSERT_EQ(columns->status, 200) << page << columns->body;
    EXPECT_EQ(columns->get_header_value("Content-Type"), "application/vnd.tensor-trace.columns");
    EXPECT_EQ(decoded_steps(columns->body), server.ask(page).body) << page;
  }
  const auto steps_of = [&](const std::string& page) {
    return join_field(server.ask(page).body["steps"], "step");
  };
  EXPECT_EQ(steps_of("steps?last=2"), "5 6");
  EXPECT_EQ(steps_of("steps?last=0"), "");
  EXPECT_EQ(steps_of("steps?last=10000&from=3&limit=1"), "0 1 2 3 4 5 6");
  EXPECT_EQ(server.ask("steps?format=rows").status, 400);
  EXPECT_EQ(server.ask("steps?last=10001").status, 400);
}

TEST(TraceRoutes, TemplatesNodesAndTensors) {
  TraceServer server;
  const json templates = server.ask("templates").body;
  ASSERT_EQ(templates["templates"].size(), 1u) << templates;
  const json& only = templates["templates"][0];
  EXPECT_EQ(only["template"], 1);
  EXPECT_EQ(only["fingerprint"].get<std::string>().size(), 16u);
  EXPECT_EQ(only["nodes"], 6);
  EXPECT_EQ(only["ops"], 5);
  EXPECT_EQ(only["tensors"], 12);
  EXPECT_EQ(only["steps"], 3);
  EXPECT_EQ(only["layers"], 2);

  const json nodes = server.ask("templates/1/nodes?from=1&limit=2").body;
  EXPECT_EQ(nodes["total"], 6);
  EXPECT_EQ(join_field(nodes["nodes"], "op"), "RMS_NORM MUL");
  EXPECT_EQ(join_field(nodes["nodes"], "executed_op"), "1 1") << "fused";

  const json tensors = server.ask("templates/1/tensors?kind=weight&sort=-offset&limit=2").body;
  EXPECT_EQ(tensors["total"], 5);
  EXPECT_EQ(join_field(tensors["tensors"], "tensor_name"), "output.weight blk.1.ffn_down.weight");
  EXPECT_EQ(tensors["tensors"][0]["category"], "output");
  EXPECT_EQ(tensors["tensors"][0]["tensor_bytes"], 512);
  EXPECT_EQ(server.ask("templates/1/tensors?name=ATTN_Q").body["total"], 1);
  EXPECT_EQ(server.ask("templates/1/tensors?layer=1&component=ffn&source=disk").body["total"], 1);
}

// The last snapshot at or before each step; the bytes of the weights are those of the SQL table.
TEST(TraceRoutes, ResidencyIsThatOfTheLastSnapshot) {
  TestServer server;
  const RandomSession session = plausible_session(7);
  ASSERT_GT(session.residency.size(), 1U);
  ASSERT_LT(session.residency.size(), session.steps.size());
  ASSERT_TRUE(write_session(server.folder.path() / "small.ttrace", session).has_value());
  const StepResidency* last = nullptr;
  auto next = session.residency.begin();
  for (const Step& step : session.steps) {
    if (next != session.residency.end() && next->step == step.id) last = &*next++;
    const TestResponse answer =
        server.get(std::format("/api/v1/sessions/small/steps/{}/residency", step.id.v));
    if (last == nullptr) {
      EXPECT_EQ(answer.status, 404);
      EXPECT_TRUE(answer.body["detail"].get<std::string>().contains("residency_interval_ms"));
      continue;
    }
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.body["step"], last->step.v);
    EXPECT_EQ(answer.body["timestamp_ns"], last->at.v);
    EXPECT_EQ(answer.body["resident_unit_bytes"], last->unit);
    ASSERT_EQ(answer.body["resident_ranges"].size(), last->resident.size());
    for (std::size_t i = 0; i < last->resident.size(); ++i)
      EXPECT_EQ(answer.body["resident_ranges"][i]["file_offset"], last->resident[i].offset);
    const json rows =
        server
            .post("/api/v1/sessions/small/query",
                  json{{"sql", std::format("SELECT tensor_name, size_bytes, resident_bytes FROM "
                                           "residency WHERE step = {}",
                                           last->step.v)}}
                      .dump())
            .body["rows"];
    ASSERT_EQ(rows.size(), answer.body["tensors"].size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const json& one = answer.body["tensors"][i];
      EXPECT_EQ(rows[i],
                json::array({one["tensor_name"], one["file_bytes"], one["resident_bytes"]}));
      EXPECT_EQ(one["mapped"], !one["resident_bytes"].is_null());
    }
  }
}

TEST(TraceRoutes, ResidencyOfAnUnknownStepIsNotFound) {
  TraceServer server;
  EXPECT_EQ(server.ask("steps/3/residency").status, 404);
  EXPECT_TRUE(server.ask("steps/3/residency").body["detail"].get<std::string>().contains("step 3"));
}

TEST(TraceRoutes, OpsWithFilterAndOrder) {
  TraceServer server;
  const auto ops = [&](const std::string& query) {
    return join_field(server.ask("steps/1/ops" + query).body["ops"], "op");
  };
  EXPECT_EQ(ops(""), "0 1 2 3 4");
  EXPECT_EQ(ops("?sort=-duration&limit=2"), "4 3");
  EXPECT_EQ(ops("?name=mul_mat&sort=layer"), "2 3 4");
  EXPECT_EQ(ops("?layer=none"), "0 4");
  EXPECT_EQ(ops("?layer=0&component=attention"), "2");
}

TEST(TraceRoutes, AccessesOfAStepWithFilterAndOrder) {
  TraceServer server;
  const json of_weights =
      server.ask("steps/1/accesses?source=disk&sort=-offset&layer=none&limit=2").body;
  EXPECT_EQ(of_weights["total"], 3) << "two rows of the embedding, the output";
  EXPECT_EQ(join_field(of_weights["accesses"], "tensor_name"), "output.weight token_embd.weight");
  EXPECT_EQ(server.ask("steps/1/accesses?write=true").body["total"], 5);
  EXPECT_EQ(server.ask("steps/1/accesses?tensor=Attn&component=norm").body["total"], 1);
  EXPECT_EQ(server.ask("steps/1/accesses?expert=0").body["total"], 0);
  EXPECT_EQ(server.ask("steps/1/accesses?op=1&sort=bytes").body["total"], 3);
}

TEST(TraceRoutes, AccessesHaveTimeTokenPhaseAndOpName) {
  TraceServer server;
  for (const char* target : {"accesses?limit=9", "steps/0/accesses?limit=9"}) {
    const json rows = server.ask(target).body["accesses"];
    ASSERT_GE(rows.size(), 9U) << target;
    EXPECT_EQ(rows[8]["timestamp_ns"], 130) << rows[8];
    EXPECT_EQ(rows[8]["duration_ns"], 30);
    EXPECT_EQ(rows[8]["token_id"], 0);
    EXPECT_EQ(rows[8]["token_count"], 2);
    EXPECT_EQ(rows[8]["phase"], "prompt");
    EXPECT_EQ(rows[8]["operation_type"], "MUL_MAT");
  }
}

TEST(TraceRoutes, AccessesFilteredByTensorKind) {
  TraceServer server;
  const struct {
    std::string kind;
    std::size_t count;
  } cases[] = {{"weight", 6}, {"input", 1}, {"kv", 0}, {"intermediate", 9}};
  for (const auto& [kind, count] : cases) {
    SCOPED_TRACE(kind);
    const json of_step = server.ask("steps/1/accesses?kind=" + kind).body;
    EXPECT_EQ(of_step["total"], count) << of_step;
    const json of_all = server.ask("accesses?kind=" + kind).body;
    ASSERT_TRUE(of_all["accesses"].is_array()) << of_all;
    EXPECT_EQ(of_all["accesses"].size(), 3 * count);
    for (const json& access : of_all["accesses"]) EXPECT_EQ(access["tensor_kind"], kind);
  }
  const json first = server.ask("accesses?kind=weight&limit=10").body;
  const std::string cursor = "&cursor=" + first["next"].get<std::string>();
  EXPECT_EQ(server.ask("accesses?kind=weight" + cursor).body["accesses"].size(), 8u);
  EXPECT_EQ(server.ask("accesses?kind=input" + cursor).status, 400)
      << "the cursor is of another filter";
}

TEST(TraceRoutes, AccessesOfAllStepsArePaginated) {
  TraceServer server;
  for (const char* sort :
       {"time", "-time", "bytes", "-bytes", "offset", "-offset", "tensor", "-tensor"}) {
    SCOPED_TRACE(sort);
    const std::string target = std::string("accesses?sort=") + sort;
    const json whole = server.ask(target).body;
    ASSERT_EQ(whole["accesses"].size(), 48u) << whole;
    EXPECT_TRUE(whole["next"].is_null());
    json walked = json::array();
    std::string cursor;
    int pages = 0;
    do {
      const json page = server.ask(target + "&limit=10" + cursor).body;
      for (const json& access : page["accesses"]) walked.push_back(access);
      ++pages;
      if (page["next"].is_null()) break;
      cursor = "&cursor=" + page["next"].get<std::string>();
    } while (pages < 10);
    EXPECT_EQ(pages, 5);
    EXPECT_EQ(walked, whole["accesses"]);
  }
  const json some =
      server.ask("accesses?first_step=1&last_step=1&phase=generate&tensor=attn_q").body;
  EXPECT_EQ(join_field(some["accesses"], "step"), "1");
  EXPECT_EQ(server.ask("accesses?phase=prompt").body["accesses"].size(), 16u);
}

// The first page is read by scanning; a sparse filter builds the session's index.
TEST(TraceRoutes, SparseMatchesUseTheIndex) {
  TraceServer server(400);
  EXPECT_EQ(server.ask("accesses?limit=10").body["accesses"].size(), 10u);
  EXPECT_EQ(server.caches.stats().bytes, 0u);
  const json none = server.ask("accesses?expert=5").body;
  EXPECT_EQ(none["accesses"], json::array());
  EXPECT_TRUE(none["next"].is_null());
  EXPECT_GT(server.caches.stats().bytes, 0u);
  const json last = server.ask("accesses?phase=prompt&sort=-time").body;
  ASSERT_EQ(last["accesses"].size(), 16u) << last;
  for (const json& access : last["accesses"]) EXPECT_EQ(access["step"], 0);
}

TEST(TraceRoutes, LayerOfAStep) {
  TraceServer server;
  const json layer = server.ask("steps/2/layers/1").body;
  EXPECT_EQ(layer["step"], 2);
  EXPECT_EQ(layer["template"], 1);
  EXPECT_EQ(layer["layers"], 2);
  EXPECT_EQ(join_field(layer["nodes"], "name"),
            "Qcur-0 blk.1.ffn_down.weight ffn_out-1 result_output");
  EXPECT_EQ(join_field(layer["nodes"], "category"), "cross_layer_input layer layer output");
  EXPECT_EQ(layer["edges"].size(), 3u);
}

TEST(TraceRoutes, ErrorsListAllowedValues) {
  TraceServer server;
  struct Case {
    const char* target;
    int status;
    const char* says;
  };
  const Case cases[] = {
      {"templates/1/tensors?kind=x", 400, "intermediate, weight, kv, input"},
      {"templates/1/tensors?sort=x", 400, "tensor, -tensor, name"},
      {"templates/1/tensors?layer=-1", 400, "none"},
      {"templates/1/tensors?limit=10001", 400, "10000"},
      {"templates/1/nodes?kind=weight", 400, "kind"},
      {"templates/2/tensors", 404, "template 2"},
      {"templates/0/nodes", 404, "from 1"},
      {"templates/x/nodes", 404, "from 1"},
      {"steps/0/ops?sort=time", 400, "duration"},
      {"steps/0/ops?component=x", 400, "kv-cache"},
      {"steps/0/accesses?write=yes", 400, "true, false"},
      {"steps/0/accesses?source=x", 400, "repacked"},
      {"steps/0/accesses?kind=x", 400, "intermediate, weight, kv, input"},
      {"steps/0/accesses?expert=2147483648", 400, "2147483647"},
      {"steps/0/accesses?cursor=0.0.0.0", 400, "cursor"},
      {"steps/9/accesses", 404, "step 9"},
      {"accesses?phase=x", 400, "generate"},
      {"accesses?kind=x", 400, "intermediate, weight, kv, input"},
      {"accesses?from=1", 400, "from"},
      {"accesses?first_step=-1", 400, "whole number"},
      {"accesses?first_step=2&last_step=1", 400, "the end is before the start"},
      {"accesses?cursor=x", 400, "start without"},
      {"accesses?cursor=0.0.0.0", 400, "another session, filter or order"},
      {"steps/0/layers/2", 404, "no layer 2"},
      {"steps/0/layers/4294967295", 404, "layers"},
      {"steps/0/layers/x", 404, "from 0"},
      {"steps/9/layers/0", 404, "step 9"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.target);
    const TestResponse answer = server.ask(c.target);
    EXPECT_EQ(answer.status, c.status);
    EXPECT_EQ(answer.type, "application/problem+json");
    EXPECT_EQ(answer.body["code"], c.status == 400 ? "bad_request" : "not_found");
    EXPECT_NE(answer.body["detail"].get<std::string>().find(c.says), std::string::npos)
        << answer.body["detail"];
  }
  // Filters longer than 200 characters are rejected.
  EXPECT_EQ(server.ask("accesses?tensor=" + std::string(201, 'a')).status, 400);
}

TEST(TraceRoutes, MatchingEtagReturns304) {
  TraceServer server;
  httplib::Client client = server.client();
  for (const char* target :
       {"tokens", "templates", "templates/1/nodes", "templates/1/tensors", "steps", "steps/0/ops",
        "steps/0/accesses", "accesses", "steps/0/layers/0"}) {
    SCOPED_TRACE(target);
    const std::string path = std::string("/api/v1/sessions/small/") + target;
    const auto first = client.Get(path);
    ASSERT_TRUE(first);
    ASSERT_EQ(first->status, 200) << first->body;
    const std::string tag = first->get_header_value("ETag");
    EXPECT_FALSE(tag.empty());
    const auto again = client.Get(path, {{"If-None-Match", tag}});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->status, 304);
    EXPECT_TRUE(again->body.empty());
    const auto head = client.Head(path);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->status, 200);
  }
}

// The scan over all steps stops between two steps; the cancelled request gets status 503, which
// no client receives.
TEST(TraceRoutes, LongScanIsCancelledOnDisconnect) {
  TraceServer server(30'000);
  std::atomic<int> status = 0;
  server.frontend.http().set_logger(
      [&](const httplib::Request&, const httplib::Response& response) {
        status = response.status;
      });
  // On a busy machine a scan may be over before the server sees that the client has gone.
  for (int i = 0; i < 20 && status != 503; ++i) {
    status = 0;
    {
      RawClient client(server.port);
      client.send(
          "GET /api/v1/sessions/small/accesses?sort=bytes HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }  // disconnected
    EXPECT_TRUE(wait_until([&] { return status != 0; }));
  }
  EXPECT_EQ(status, 503);
  server.stop();
}

}  // namespace
}  // namespace tt::test
