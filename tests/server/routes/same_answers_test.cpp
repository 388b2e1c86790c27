// The same question about the same session has the same answer: every analysis of
// analysis/analyses.h in tt, REST and, where a table has the figures, SQL; and the verbs of tt
// beside the routes of REST. Of a dense model, a mixture of experts and a recurrent model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <expected>
#include <format>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "analysis/analyses.h"
#include "analysis/findings/session_findings.h"
#include "analysis/index/session_index.h"
#include "analysis/parameters/filter_parameters.h"
#include "api/json/result_json.h"
#include "api/text/finding_text.h"
#include "tests/server/models/model_files.h"
#include "tests/server/support/analysis_route.h"
#include "tests/server/support/test_server.h"
#include "tests/support/command_output.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/temp_folder.h"
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
    {"show {}", "/findings"},
    {"show {}", "/templates"},
    {"hot {}", "/hot?limit=20&step_times=true"},
    {"hot {} --by layer --value time", "/hot?by=layer&value=time&limit=20&step_times=true"},
    {"hot {} --tensor ffn --phase prompt", "/hot?tensor=ffn&phase=prompt&limit=20&step_times=true"},
    {"hot {} --by type", "/hot?by=type&limit=20&step_times=true"},
    {"hot {} --by kernel", "/hot?by=kernel&limit=20&step_times=true"},
    {"hot {} --by source", "/hot?by=source&limit=20&step_times=true"},
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

// A server with one recorded session.
struct RecordedAnswers {
  explicit RecordedAnswers(const char* model) : server({.model = model_files(model).front()}) {
    EXPECT_TRUE(server.wait_until_loaded());
    id = server.generate({{"tokens", {1, 2, 3, 4, 5, 6, 7, 8, 9}},
                          {"max_tokens", 6},
                          {"temperature", 0},
                          {"ignore_eos", true},
                          {"residency_interval_ms", 0}});
    EXPECT_EQ(server.wait_for_end(id)["state"], "done");
    file = (server.data / (id + ".ttrace")).string();
  }
  TestResponse get(const std::string& route) {
    return server.get("/api/v1/sessions/" + id + "/" + route);
  }
  json sql(const std::string& statement) {
    return server.post("/api/v1/sessions/" + id + "/query", json{{"sql", statement}}.dump())
        .body["rows"][0][0];
  }

  TestServer server;
  std::string id, file;
};

// Figures of analyses that a SQL statement has, too.
struct SqlFigure {
  const char* analysis;
  const char* pointer;  // to the figure in the answer
  const char* sql;
};
constexpr SqlFigure kSqlFigures[] = {
    {"breakdown", "/sums/all/bytes_read", "SELECT sum(size_bytes) FROM access WHERE NOT write"},
    {"breakdown", "/sums/all/writes", "SELECT count(*) FROM access WHERE write"},
    {"breakdown", "/disk/bytes_read",
     "SELECT coalesce(sum(size_bytes), 0) FROM access WHERE memory_source = 'disk'"},
    {"breakdown", "/sums/all/time_ns", "SELECT sum(duration_ns) FROM op"},
    {"compression", "/total/tensors",
     "SELECT count(DISTINCT tensor_name) FROM tensor WHERE tensor_kind = 'weight' AND view_of IS "
     "NULL"},
    {"conditions", "/phases/generate/steps", "SELECT count(*) FROM step WHERE phase = 'generate'"},
    {"expert-caches", "/requests", "SELECT count(*) FROM expert"},
    {"expert-tokens", "/total", "SELECT count(*) FROM token"},
    {"file-order", "/layouts/0/bytes",
     "SELECT coalesce(sum(size_bytes), 0) FROM access WHERE memory_source = 'disk' AND NOT write "
     "AND phase = 'generate'"},
    {"kv", "/total", "SELECT count(*) FROM step"},
    {"op-durations", "/executions", "SELECT count(*) FROM op WHERE duration_ns > 0"},
    {"reuse", "/bytes_read",
     "SELECT sum(size_bytes) FROM access WHERE tensor_kind = 'weight' AND NOT write AND "
     "file_offset IS NOT NULL"},
    {"sequentiality", "/sums/bytes",
     "SELECT coalesce(sum(size_bytes), 0) FROM access WHERE memory_source = 'disk' AND NOT write"},
    {"hot", "/total",
     "SELECT count(DISTINCT tensor_name) FROM access WHERE tensor_kind = 'weight'"},
    {"totals", "/total/bytes_written", "SELECT sum(size_bytes) FROM access WHERE write"},
};

TEST_P(SameAnswers, OfEveryAnalysisInTtRestAndSql) {
  ensure_backends_loaded();
  RecordedAnswers recorded(GetParam());
  std::size_t answered = 0;
  for (const Analysis& row : analyses()) {
    SCOPED_TRACE(row.name);
    std::vector<std::string> questions = {row.example};
    for (const ParameterInfo& info : row.parameters) {
      if (info.schema.empty() && info.words.empty()) continue;
      for (const std::string& word : info.words)
        questions.push_back(
            std::format("{}{}{}={}", row.example, *row.example != 0 ? " " : "", info.name, word));
      break;  // of one parameter, to keep the test short
    }
    for (const std::string& values : questions) {
      SCOPED_TRACE(values);
      const CommandResult printed = run_command(std::format(
          "{} analyze {} {} {} --json", kTestPaths.tt, row.name, recorded.file, values));
      const TestResponse answer = recorded.get(route_of(row, values));
      // A word that selects nothing: tt says so instead of printing zeros.
      const json missing = answer.body.value("missing", json());
      const bool is_empty =
          answer.status == 200 && (printed.output.contains(kNothingMatches) || missing.is_string());
      if (missing.is_string()) {
        EXPECT_TRUE(printed.output.contains(missing.get<std::string>())) << printed.output;
      }
      ASSERT_EQ(printed.status == 0, answer.status == 200 && !is_empty)
          << printed.output << answer.body;
      if (is_empty) continue;
      if (answer.status != 200) {
        // Both say the same.
        EXPECT_TRUE(printed.output.contains(answer.body["detail"].get<std::string>()))
            << printed.output << answer.body;
        continue;
      }
      EXPECT_EQ(json::parse(printed.output, nullptr, false), answer.body);
      ++answered;
    }
    const CommandResult table = run_command(
        std::format("{} analyze {} {} {}", kTestPaths.tt, row.name, recorded.file, row.example));
    const TestResponse plain = recorded.get(route_of(row, row.example));
    EXPECT_EQ(table.status == 0, plain.status == 200 && !plain.body.contains("missing"))
        << table.output;
    for (const auto& [name, pointer, statement] : kSqlFigures) {
      if (std::string_view(row.name) != name) continue;
      const TestResponse answer = recorded.get(route_of(row, row.example));
      ASSERT_EQ(answer.status, 200) << answer.body;
      EXPECT_EQ(answer.body[json::json_pointer(pointer)], recorded.sql(statement)) << statement;
    }
  }
  EXPECT_GE(answered, analyses().size());
}

TEST_P(SameAnswers, InTtAndRest) {
  ensure_backends_loaded();
  RecordedAnswers recorded(GetParam());
  TestServer& server = recorded.server;
  const std::string &id = recorded.id, &file = recorded.file;
  for (const auto& [verb, route] : kQuestions) {
    SCOPED_TRACE(verb);
    const std::string arguments = std::vformat(verb, std::make_format_args(file));
    const CommandResult printed =
        run_command(std::format("{} {} --json", kTestPaths.tt, arguments));
    const TestResponse answer = server.get("/api/v1/sessions/" + id + route);
    // What does not apply, such as experts of a dense model, applies nowhere.
    // What matches nothing is an answer without rows of REST, and an error of tt.
    const json missing = answer.body.value("missing", json());
    const json note = missing.is_string() ? missing : answer.body.value("note", json());
    const bool is_empty = missing.is_string() ||
                          (note.is_string() && note.get<std::string>().starts_with("No access"));
    ASSERT_EQ(printed.status == 0, answer.status == 200 && !is_empty)
        << printed.output << answer.body;
    if (is_empty) {
      EXPECT_TRUE(printed.output.contains(note.get<std::string>())) << printed.output;
    }
    if (answer.status != 200 || is_empty) continue;
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

// The sentences of the findings are those of the server in tt show and tt report; the page shows
// those of the server (webui/test/unit/panels).
TEST_P(SameAnswers, OfTheFindings) {
  ensure_backends_loaded();
  RecordedAnswers recorded(GetParam());
  const TestResponse answer = recorded.get("findings");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto print = [&](const std::string& arguments) {
    const CommandResult done = run_command(kTestPaths.tt + (" " + arguments));
    EXPECT_EQ(done.status, 0) << done.output;
    return done.output;
  };
  const std::string shown = print("show " + recorded.file);
  std::vector<std::string> texts;
  for (const json& finding : answer.body["findings"]) {
    texts.push_back(finding["text"]);
    EXPECT_EQ(shown.contains("\n- " + texts.back() + "\n"), finding["role"] != "detail") << shown;
  }
  EXPECT_GT(texts.size(), 3U);
  EXPECT_EQ(json::parse(print("report --json " + recorded.file))["findings"], json(texts));
  EXPECT_FALSE(answer.body["advice"].empty());
  for (const json& advice : answer.body["advice"])
    EXPECT_TRUE(shown.contains("\n- " + advice["text"].get<std::string>() + " ")) << shown;
}

// A sentence says why: it ends with a full stop.
bool is_sentence(const std::string& text) { return text.size() > 20 && text.ends_with('.'); }

// What a parameter can name that no session of these tests has.
std::vector<std::string> unknown_values(const ParameterInfo& info, const std::string& name) {
  using Kind = ParameterInfo::Kind;
  const bool names_number = name.ends_with("step") || name.ends_with("token") ||
                            name.ends_with("layer") || name == "router";
  switch (info.kind) {
    case Kind::Layer:
    case Kind::Layers:
      return {"9999"};
    case Kind::Text:
      return {"no_such_thing"};
    case Kind::Number:
      return names_number && !name.starts_with("to_") ? std::vector<std::string>{"99999"}
                                                      : std::vector<std::string>{};
    default:
      return {};
  }
}

// An unknown layer, step, token, expert, op or tensor: tt says so in a sentence and fails, REST
// refuses with the same sentence or, where the condition itself is valid and only matches nothing,
// has an answer without rows (404 would be an error in the console of the page).
TEST_P(SameAnswers, NameWhatIsNotThere) {
  ensure_backends_loaded();
  RecordedAnswers recorded(GetParam());
  std::size_t asked = 0;
  for (const Analysis& row : analyses()) {
    for (const ParameterInfo& info : row.parameters) {
      for (const std::string& unknown : unknown_values(info, info.name)) {
        std::string values = row.example;
        const std::string given = info.name + "=";
        if (const auto at = values.find(given); at != std::string::npos) {
          values.replace(at, values.find(' ', at) - at, given + unknown);
        } else {
          // One side needs the other, and excludes those of another kind.
          const auto of = info.name.find('_');
          if (info.name.starts_with("left_"))
            values = "right" + info.name.substr(of) + "=0";
          else if (info.name.starts_with("right_"))
            values = "left" + info.name.substr(of) + "=0";
          values += (values.empty() ? "" : " ") + given + unknown;
        }
        SCOPED_TRACE(std::format("{} {}", row.name, values));
        const TestResponse answer = recorded.get(route_of(row, values));
        const CommandResult printed = run_command(
            std::format("{} analyze {} {} {}", kTestPaths.tt, row.name, recorded.file, values));
        EXPECT_NE(printed.status, 0) << printed.output;
        ++asked;
        if (answer.status == 200) {
          ASSERT_TRUE(row.matches_nothing) << answer.body;
          EXPECT_TRUE(printed.output.contains(kNothingMatches)) << printed.output;
          EXPECT_EQ(answer.body.value("rows", json::array()).size(), 0U) << answer.body;
          continue;
        }
        EXPECT_TRUE(answer.status == 404 || answer.status == 422) << answer.status << answer.body;
        const std::string detail = answer.body["detail"];
        EXPECT_TRUE(is_sentence(detail)) << detail;
        EXPECT_EQ(std::ranges::count(printed.output, '\n'), 1) << printed.output;
      }
    }
  }
  EXPECT_GT(asked, analyses().size());
}

// A question about a part that the model does not have: the answer says so in a sentence, and tt
// fails with it.
TEST(Analyses, SayThatAQuestionDoesNotApply) {
  // Of attached programs.
  const std::set<std::string_view> attached = {"drafts", "splits"};
  const std::set<std::string_view> experts = {"expert-caches", "expert-pinning", "expert-tokens",
                                              "experts"};
  const std::pair<const char*, std::vector<std::set<std::string_view>>> models[] = {
      {"small", {attached, experts}},
      {"moe", {attached}},
      {"mamba", {attached, experts, {"heads"}}},
      {"bert", {attached, experts, {"determinism", "file-order", "kv", "pattern"}}}};
  ensure_backends_loaded();
  for (const auto& [shape, others] : models) {
    TracedModel model(generated_model({.shape = shape}));
    const auto run = model.run(greedy_tokens(9, 6));
    const std::string file = run.file.string();
    const SessionInfo info = run.reader().info().value();
    for (const Analysis& row : analyses()) {
      const std::string name = row.name;
      if (*row.needs == 0) continue;
      SCOPED_TRACE(std::format("{} of {}", name, shape));
      // Nothing is captured.
      const bool of_captured = row.missing(info).contains("--capture");
      const bool applies = !of_captured && std::ranges::none_of(others, [&](const auto& names) {
        return names.contains(name);
      });
      const CommandResult result =
          run_command(std::format("{} analyze {} {}", kTestPaths.tt, name, file));
      EXPECT_EQ(WEXITSTATUS(result.status), applies ? 0 : 1) << result.output;
      if (applies) continue;
      EXPECT_EQ(std::ranges::count(result.output, '\n'), 1) << result.output;
      EXPECT_TRUE(result.output.contains("has no ")) << result.output;
      // The verb of the question, where it has one, says the same.
      const std::string verb = of_captured                  ? ""
                               : name.starts_with("expert") ? "moe"
                               : name == "pattern"          ? "pattern"
                               : name == "kv"               ? "heads --kv"
                               : name == "heads"            ? "heads"
                                                            : "";
      if (verb.empty()) continue;
      const CommandResult of_verb = run_command(std::format("{} {} {}", kTestPaths.tt, verb, file));
      EXPECT_EQ(WEXITSTATUS(of_verb.status), 1);
      EXPECT_EQ(of_verb.output.substr(of_verb.output.find(": ")),
                result.output.substr(result.output.find(": ")));
    }
  }
}

// No time without what it is worth: an answer with times has the verdict of their steps. A ranking
// by time is of the medians of one phase, without the steps whose times are not those of the model.
TEST_P(SameAnswers, WithTimesCarryAVerdict) {
  ensure_backends_loaded();
  TracedModel model(generated_model({.shape = GetParam()}));
  const auto run = model.run(greedy_tokens(9, 6));
  const SessionReader reader = run.reader();
  const Subject subject = subject_of(reader);
  const auto answer_to = [&](const Analysis& row, const std::string& values) {
    const auto answer = row.parse(parameter_text(values)).value()(subject, never_cancel);
    if (!answer) return json();  // a question about another kind of model
    return json(json_of(*answer));
  };
  const auto has = [](const json& answer, const auto& self, auto is) -> bool {
    for (const auto& [key, value] : answer.items())
      if ((answer.is_object() && is(key)) || (value.is_structured() && self(value, self, is)))
        return true;
    return false;
  };
  // By a second reader of the file.
  const auto number = [&](const std::string& value, const std::string& condition) {
    const std::string sql = std::format("SELECT {} FROM step WHERE {}", value, condition);
    const auto printed =
        run_command(std::format("{} sql {} --csv \"{}\"", kTestPaths.tt, run.file.string(), sql));
    return std::stoi(printed.output.substr(printed.output.find('\n')));
  };
  const auto count = [&](const std::string& condition) { return number("count(*)", condition); };
  std::set<std::string_view> timed, ranked;
  for (const Analysis& row : analyses()) {
    SCOPED_TRACE(row.name);
    const json found = answer_to(row, row.example);
    if (has(found, has, [](const std::string& key) { return key.ends_with("_ns"); })) {
      EXPECT_TRUE(has(found, has, [](const std::string& key) { return key == "verdict"; }))
          << found;
      timed.insert(row.name);
    }
    if (found.contains("summed_steps")) {
      const json of_phase = answer_to(row, std::format("{} phase=prompt", row.example));
      const json& steps = of_phase["summed_steps"];
      EXPECT_EQ(steps["learned"], count("phase = 'prompt' AND timing = 'learned'"));
      EXPECT_EQ(steps["all_steps"], count("phase = 'prompt'"));
      EXPECT_EQ(steps["tokens"], number("sum(token_count)", "phase = 'prompt'"));
      EXPECT_EQ(steps["last_step"], number("max(step)", "phase = 'prompt'"));
    }
    if (!found.contains("classes")) continue;
    ranked.insert(row.name);
    for (const char* phase : {"prompt", "generate"}) {
      const json by_time =
          answer_to(row, std::format("{} by=layer value=time phase={}", row.example, phase));
      const json& times = by_time["times"];
      EXPECT_EQ(times["phase"], phase);
      EXPECT_EQ(times["steps"].get<int>() + times["learned"].get<int>() +
                    times["interrupted"].get<int>() + times["first"].get<int>() +
                    times["disturbed"].get<int>(),
                count(std::format("phase = '{}'", phase)))
          << times;
      EXPECT_TRUE(std::ranges::is_sorted(by_time["rows"], std::ranges::greater(),
                                         [](const json& of) {
                                           return of.contains("step_ns")
                                                      ? of["step_ns"]["median"].get<std::int64_t>()
                                                      : 0;
                                         }))
          << by_time["rows"];
    }
    EXPECT_EQ(answer_to(row, "by=layer value=time")["times"]["phase"], "generate");
  }
  EXPECT_EQ(timed,
            (std::set<std::string_view>{"breakdown", "comparison-within", "conditions", "drafts",
                                        "hot", "op-durations", "roofline", "splits", "totals"}));
  EXPECT_EQ(ranked, std::set<std::string_view>{"hot"});
}

// Advice is of the steps that nothing disturbed: it is the same without the others (--clean). It
// names no quantization, whose kernels were not measured.
TEST_P(SameAnswers, OfAdviceWithAndWithoutDisturbedSteps) {
  ensure_backends_loaded();
  ContextOptions context = TracedModel::small_context();
  context.flash_attention = FlashAttention::Off;  // so that attention may take much of the time
  TracedModel model(generated_model({.shape = GetParam()}), context);
  std::vector<std::jthread> others;
  const auto run = model.run(greedy_tokens(200, 60), [&](std::uint32_t generated) {
    if (generated != 20 || !others.empty()) return;
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
      others.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
      });
  });
  others.clear();
  const SessionReader reader = run.reader();
  const auto figures_of = [&](LeaveOut leave_out) {
    const auto index = SessionIndex::build(reader, never_cancel, leave_out).value();
    return gather_session_figures(index, reader).value();
  };
  const SessionFigures all = figures_of(LeaveOut::Nothing), clean = figures_of(LeaveOut::Disturbed);
  EXPECT_GT(clean.left_out, 0U);
  const auto advice = session_advice(all), of_clean = session_advice(clean);
  for (const Advice& each : of_clean)
    EXPECT_TRUE(std::ranges::contains(advice, each)) << advice_text(each).advice;
  for (const Advice& each : advice) {
    // Waits for the disk are of the steps that are left out.
    if (each.kind != AdviceKind::KeepWeights) {
      EXPECT_TRUE(std::ranges::contains(of_clean, each)) << advice_text(each).advice;
    }
    EXPECT_FALSE(advice_text(each).advice.contains("quantization")) << advice_text(each).advice;
  }
}

// Every word of every filter: what it selects, or that it selects nothing. No table of zeros.
TEST_P(SameAnswers, OfEveryWordOfAFilter) {
  ensure_backends_loaded();
  TracedModel model(generated_model({.shape = GetParam()}));
  const auto run = model.run(greedy_tokens(9, 6));
  const SessionReader reader = run.reader();
  std::shared_ptr<const SessionIndex> index =
      std::make_shared<const SessionIndex>(SessionIndex::build(reader).value());
  const Subject subject{
      .reader = reader, .index = [&](LeaveOut, const ContinueCheck&) {
        return std::expected<std::shared_ptr<const SessionIndex>, TraceError>(index);
      }};
  std::size_t empty = 0, full = 0;
  for (const Analysis& row : analyses()) {
    if (!row.matches_nothing) continue;
    for (const ParameterInfo& info : filter_parameters().infos()) {
      for (const std::string& word : info.words) {
        const std::string values = std::format("{} {}={}", row.example, info.name, word);
        SCOPED_TRACE(std::format("{} {}", row.name, values));
        const ParameterText text = parameter_text(values);
        const auto nothing = row.matches_nothing(text, subject, never_cancel);
        ASSERT_TRUE(nothing.has_value());
        const auto answer = row.parse(text).value()(subject, never_cancel);
        if (!answer) {
          EXPECT_TRUE(is_sentence(answer.error().message)) << answer.error().message;
          continue;
        }
        const json found = json_of(*answer);
        const json rows = found.value("rows", json::array());
        if (*nothing) {
          EXPECT_EQ(rows.size(), 0U) << found;
        } else if (std::string_view(row.name) == "breakdown") {
          EXPECT_GT(rows.size(), 0U) << found;
        }
        ++(*nothing ? empty : full);
      }
    }
  }
  EXPECT_GT(empty, 5U);
  EXPECT_GT(full, 20U);
}

// A session whose steps differ much in length: the time of step i is (1 + i % 5)^3 times as long.
RandomSession with_uneven_steps(RandomSession session) {
  Ns at = session.steps.front().begin;
  for (Step& step : session.steps) {
    const std::int64_t of = 1 + step.id.v % 5, factor = of * of * of;
    const Ns begin = step.begin;
    const auto stretched = [&](Ns time) { return Ns{at.v + (time - begin).v * factor}; };
    step.begin = at;
    step.first_op = stretched(step.first_op);
    for (Ns& end : step.op_ends) end = stretched(end);
    at = step.end = stretched(step.end);
  }
  return session;
}

// The time of an expert has one rule: each step divides the time of an op equally among the experts
// that it read. REST, tt and SQL have the same nanoseconds, and so has a computation from the rows
// of ops and accesses alone.
TEST(Analyses, HaveTheSameTimeOfAnExpert) {
  ensure_backends_loaded();
  TracedModel model(generated_model({.shape = "moe"}));
  const auto run = model.run(greedy_tokens(40, 40));
  RandomSession session = with_uneven_steps(read_session(run.file).value());
  session.info.id = "uneven";
  TestServer server({.model = {}});
  const std::string file = (server.data / "uneven.ttrace").string();
  ASSERT_TRUE(write_session(file, session).has_value());
  const std::string route = "/api/v1/sessions/uneven/";
  const auto rows = [&](const std::string& sql) {
    const TestResponse answer =
        server.post(route + "query", json{{"sql", sql}, {"limit", 1'000'000}}.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_FALSE(answer.body.value("more", false));
    return answer.body["rows"];
  };

  using Times = std::map<std::string, std::int64_t>;  // by "blk.LAYER expert NUMBER"
  const auto name = [](const json& layer, const json& expert) {
    return std::format("blk.{} expert {}", layer.get<int>(), expert.get<int>());
  };
  Times expected, by_count;
  std::map<std::pair<int, int>, std::vector<std::string>> of_op;  // by step and op
  std::map<std::string, std::map<std::string, double>> reads;     // by op of a phase, and expert
  std::map<std::string, double> op_ns;
  for (const json& row :
       rows("SELECT step, op, layer_id, expert_id FROM access WHERE expert_id IS NOT NULL AND "
            "tensor_kind = 'weight' ORDER BY step, op, expert_id"))
    of_op[{row[0], row[1]}].push_back(name(row[2], row[3]));
  for (const json& row :
       rows("SELECT step, op, duration_ns, phase || template || ' ' || op FROM op")) {
    const auto found = of_op.find({row[0], row[1]});
    if (found == of_op.end()) continue;
    const auto& experts = found->second;
    const auto count = static_cast<std::int64_t>(experts.size());
    const std::int64_t ns = row[2], each = ns / count;
    op_ns[row[3]] += static_cast<double>(ns);
    for (std::size_t i = 0; i < experts.size(); ++i) {
      expected[experts[i]] += i == 0 ? ns - each * (count - 1) : each;
      reads[row[3]][experts[i]] += 1;
    }
  }
  ASSERT_GT(expected.size(), 16U);
  // Dividing the sum over the steps instead would give other times.
  for (const auto& [op, counts] : reads) {
    double all = 0;
    for (const auto& [expert, count] : counts) all += count;
    for (const auto& [expert, count] : counts)
      by_count[expert] += std::llround(op_ns[op] * count / all);
  }
  double largest = 0;
  for (const auto& [expert, ns] : expected)
    largest = std::max(
        largest, std::abs(static_cast<double>(by_count[expert] - ns)) / static_cast<double>(ns));
  EXPECT_GT(largest, 0.1);

  Times of_sql;
  for (const json& row :
       rows("SELECT layer_id, expert_id, sum(self_ns) FROM access WHERE expert_id "
            "IS NOT NULL GROUP BY layer_id, expert_id"))
    of_sql[name(row[0], row[1])] = row[2];
  EXPECT_EQ(of_sql, expected);
  const auto of_rows = [](const json& answer, const char* part) {
    Times times;
    for (const json& row : answer["rows"])
      times[row["name"]] = static_cast<std::int64_t>(row[part]["time_ns"].get<double>());
    return times;
  };
  const TestResponse of_rest = server.get(route + "breakdown?by=expert&limit=1000");
  ASSERT_EQ(of_rest.status, 200) << of_rest.body;
  EXPECT_EQ(of_rows(of_rest.body, "all"), expected);
  EXPECT_EQ(of_rows(server.get(route + "hot?by=expert&limit=1000").body, "all"), expected);
  const auto of_tt = [&](const std::string& arguments) {
    return json::parse(command_output(std::format("{} {} --json", kTestPaths.tt, arguments)));
  };
  EXPECT_EQ(of_rows(of_tt(std::format("analyze breakdown {} by=expert limit=1000", file)), "all"),
            expected);
  EXPECT_EQ(of_rows(of_tt(std::format("hot {} --by expert --limit 1000", file)), "all"), expected);
  // Ranges of steps, here single ones, add up to the same: no answer depends on where a range ends.
  Times of_steps;
  for (const Step& step : session.steps)
    for (const auto& [expert, ns] :
         of_rows(server
                     .get(std::format("{}breakdown?by=expert&limit=1000&from_step={}&to_step={}",
                                      route, step.id.v, step.id.v + 1))
                     .body,
                 "all"))
      of_steps[expert] += ns;
  EXPECT_EQ(of_steps, expected);
}

// Questions about one file, as arguments of `tt`. Exit status 1: it does not apply to the session.
constexpr const char* kVerbs[] = {
    "show {} --json",
    "hot {} --json",
    "hot {} --by kernel --value time --json",
    "hot {} --by type --json",
    "hot {} --by layer --value time --json",
    "hot {} --by source --phase prompt --json",
    "moe {} --json",
    "moe {} --phase generate --json",
    "heads {} --json",
    "heads {} --kv --json",
    "reuse {} --json",
    "pattern {} --json",
    "graph {} --format json",
    "report {} --json",
    "parse {} --validate --json",
    "parse {} --stats --json",
    "parse {} --limit 100000 --json",
    "sql {} --csv 'SELECT * FROM op'",
    "sql {} --csv 'SELECT * FROM step'",
    "sql {} --csv 'SELECT * FROM tensor'",
    "sql {} --csv 'SELECT * FROM expert'",
    "sql {} --csv 'SELECT step, access, part, category, qkv_type, role, size_bytes FROM access'",
};

CommandResult ask(const std::string& verb, const std::string& file) {
  return run_command(
      std::format("{} {}", kTestPaths.tt, std::vformat(verb, std::make_format_args(file))));
}

// The questions of analysis/analyses.h, as arguments of `tt`.
std::vector<std::string> analyze_verbs() {
  std::vector<std::string> verbs;
  for (const Analysis& row : analyses())
    verbs.push_back(std::format("analyze {} {{}} {} --json", row.name, row.example));
  return verbs;
}
// What kNone and an expert of -1 look like where they are shown by mistake.
bool shows_no_number(const std::string& text) { return text.contains("4294967295"); }

void drop_identity(json& value) {
  if (value.is_object()) {
    if (value.contains("facts")) value.erase("size_bytes");
    value.erase("trace.imported_from");
  } else if (value.is_array()) {
    for (std::size_t i = value.size(); i-- > 0;)
      if (value[i].is_array() && !value[i].empty() && value[i][0] == "trace.imported_from")
        value.erase(i);
  }
  if (value.is_structured())
    for (json& part : value) drop_identity(part);
}

// What a log of rows cannot have: the end of an op, which ends when the next one begins, ops
// without an access, and major page faults, which a busy machine has now and then.
void drop_times(json& value) {
  if (value.is_object())
    for (const char* name : {"time_ns", "bytes_per_second", "times", "step", "step_ns", "note",
                             "executions", "faults", "bins"})
      value.erase(name);
  if (value.is_structured())
    for (json& part : value) drop_times(part);
}
std::string without_times(const std::string& text) {
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_structured()) return text;
  drop_times(parsed);
  return parsed.dump(1);
}

// The output without what says which file it is about.
std::string without_identity(std::string text, const std::string& file) {
  for (std::size_t at = 0; (at = text.find(file)) != std::string::npos;)
    text.replace(at, file.size(), "FILE");
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return text;
  drop_identity(parsed);
  return parsed.dump(1);
}

TEST_P(SameAnswers, AfterExportAndImport) {
  ensure_backends_loaded();
  TracedModel model(generated_model({.shape = GetParam()}));
  const auto run = model.run(greedy_tokens(9, 6));
  const TempFolder folder;
  const std::string file = (folder / "s.ttrace").string();
  std::filesystem::copy_file(run.file, file);
  const auto tt = [](const std::string& arguments) {
    const CommandResult done = run_command(kTestPaths.tt + (" " + arguments));
    ASSERT_EQ(done.status, 0) << done.output;
  };
  std::vector<std::string> verbs = analyze_verbs();
  verbs.insert(verbs.end(), std::begin(kVerbs), std::end(kVerbs));
  std::map<std::string, CommandResult> answers;  // before, by verb
  for (const std::string& verb : verbs) answers.emplace(verb, ask(verb, file));
  for (const char* way : {"ndjson", "folder"}) {
    SCOPED_TRACE(way);
    const std::string out = (folder / way).string(), again = out + ".ttrace";
    tt(std::format("export {} --format {} -o {} -q", file, way, out));
    tt(std::format("import {} -o {}", out, again));
    for (const auto& [verb, before] : answers) {
      SCOPED_TRACE(verb);
      const CommandResult after = ask(verb, again);
      EXPECT_EQ(after.status, before.status) << after.output;
      EXPECT_EQ(without_identity(after.output, again), without_identity(before.output, file));
      EXPECT_FALSE(shows_no_number(after.output)) << after.output;
    }
  }
}

// A log without the recorded graphs, as another tracer writes it, cannot answer everything. What it
// answers is right, and what it cannot answer is refused with the reason.
TEST_P(SameAnswers, OfALogWithoutGraphsOrARefusal) {
  ensure_backends_loaded();
  TracedModel model(generated_model({.shape = GetParam()}));
  const auto run = model.run(greedy_tokens(9, 6));
  const TempFolder folder;
  const std::string file = (folder / "s.ttrace").string(), out = (folder / "s.ndjson").string(),
                    rows = (folder / "rows.ndjson").string(),
                    again = (folder / "rows.ttrace").string();
  std::filesystem::copy_file(run.file, file);
  const CommandResult made = run_command(std::format(
      R"({0} export {1} -o {2} -q && grep -v '"data":' {2} > {3} && {0} import {3} -o {4})",
      kTestPaths.tt, file, out, rows, again));
  ASSERT_EQ(made.status, 0) << made.output;
  const auto expect_refusal = [&](const char* verb) {
    SCOPED_TRACE(verb);
    const CommandResult after = ask(verb, again);
    EXPECT_NE(after.status, 0);
    EXPECT_TRUE(after.output.contains("imported from a log without recorded graphs"))
        << after.output;
  };
  const auto expect_same = [&](const char* verb) {
    SCOPED_TRACE(verb);
    EXPECT_EQ(without_times(without_identity(ask(verb, again).output, again)),
              without_times(without_identity(ask(verb, file).output, file)));
  };
  for (const char* verb : {"graph {} --format json", "heads {} --json", "heads {} --kv --json"})
    expect_refusal(verb);
  for (const char* verb :
       {"hot {} --json", "hot {} --by layer --value bytes --json", "reuse {} --json",
        "sql {} --csv 'SELECT step, op, tensor_name, size_bytes, expert_id FROM access'"})
    expect_same(verb);
  // All others: the same, or a refusal. No answer shows an expert that does not exist.
  std::size_t same = 0;
  for (const std::string& verb : analyze_verbs()) {
    SCOPED_TRACE(verb);
    const CommandResult before = ask(verb, file), after = ask(verb, again);
    EXPECT_FALSE(shows_no_number(after.output)) << after.output;
    if (after.output.contains("imported from a log without recorded graphs")) {
      EXPECT_NE(after.status, 0);
      continue;
    }
    EXPECT_EQ(after.status, before.status) << after.output;
    EXPECT_EQ(without_times(without_identity(after.output, again)),
              without_times(without_identity(before.output, file)));
    ++same;
  }
  EXPECT_GE(same, 5U);
  for (const char* verb :
       {"sql {} --csv 'SELECT * FROM expert'", "parse {} --stats --json", "moe {} --json",
        "moe {} --phase generate --json", "show {} --json", "report {} --json",
        "export {} --format csv -o -", "export {} --format ndjson -o -"})
    EXPECT_FALSE(shows_no_number(ask(verb, again).output)) << verb;
  if (GetParam() != std::string("moe")) return;
  expect_refusal("moe {} --json");
  expect_same("moe {} --phase generate --json");
  expect_same(
      R"(sql {} --csv "SELECT token_id, layer_id, expert_id, expert_rank, routing_score FROM expert)"
      R"( WHERE phase = 'generate'")");
}

INSTANTIATE_TEST_SUITE_P(Models, SameAnswers, ::testing::Values("small", "moe", "mamba"));

}  // namespace
}  // namespace tt::test
