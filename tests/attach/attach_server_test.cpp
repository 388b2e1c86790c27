// tt attach on llama-server: slots, drafts, sessions of requests, what is kept.
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "analysis/speculation/draft_ledger.h"
#include "tests/attach/attach_fixture.h"
#include "tests/support/models/arch_model.h"
#include "tests/support/models/model_edit.h"

namespace tt {
namespace {

class AttachLive : public AttachServer {
 protected:
  void start_live(const char* options) {
    fs::remove(folder / "err");
    background_ = std::make_unique<Background>(
        folder, std::format("attach --live 0 -o traces -- llama-completion -m model.gguf -p Once "
                            "-t 1 -no-cnv --ignore-eos {}",
                            options));
    constexpr std::string_view kAddress = "shown on http://127.0.0.1:";
    ASSERT_TRUE(test::wait_until([&] { return contents(folder / "err").contains(kAddress); }));
    const std::string said = contents(folder / "err");
    port_ = std::stoi(said.substr(said.find(kAddress) + kAddress.size()));
  }
  std::string get(std::string_view path) const {
    return ask(
        std::format("exec 3<>/dev/tcp/127.0.0.1/{} && printf 'GET {} HTTP/1.1\\r\\n"
                    "Host: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3 && cat <&3",
                    port_, path));
  }
  // What the server says of the program.
  nlohmann::json program() const {
    const std::string answer = get("/api/v1/server");
    const auto json = nlohmann::json::parse(
        answer.substr(std::min(answer.size(), answer.find('{'))), nullptr, false);
    return json.is_object() ? json.value("recorded_program", nlohmann::json()) : nlohmann::json();
  }
};

// The page's server is another process: it shows what the collector has written so far.
TEST_F(AttachLive, ShowsSessionsWhileTheyAreRecorded) {
  make_model("small");
  start_live("-n 4000 -c 8192");
  const auto steps = [&] {
    const std::string answer = get("/api/v1/sessions");
    if (!answer.contains(R"("running")")) return 0;
    const std::size_t at = answer.find(R"("steps":)");
    return at == std::string::npos ? 0 : std::stoi(answer.substr(at + 8));
  };
  int first = 0;
  ASSERT_TRUE(test::wait_until([&] { return (first = steps()) > 0; })) << get("/api/v1/sessions");
  ASSERT_TRUE(test::wait_until([&] { return steps() > first; })) << "it grows";
  EXPECT_TRUE(get("/").contains("<!doctype html>"));
  EXPECT_EQ(program(),
            (nlohmann::json{{"name", "llama-completion"}, {"request", ""}, {"ended", nullptr}}));
  ASSERT_EQ(::kill(background_->pid(), SIGTERM), 0);
  background_->wait();
  EXPECT_EQ(get("/api/v1/health"), "") << "the server has ended, too";
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
}

// Then the page says how the program ended, until this process is told to end.
TEST_F(AttachLive, ShowsHowTheProgramEnded) {
  make_model("small");
  start_live("-n 5 -c 512");
  ASSERT_TRUE(
      test::wait_until([&] { return program().is_object() && !program()["ended"].is_null(); }));
  const std::string traces = (folder / "traces").string();
  EXPECT_EQ(program()["ended"],
            std::format("llama-completion ended with status 0. 1 session is recorded in {0}. To "
                        "see it again: tt-server --no-model --data-dir {0}",
                        traces));
  EXPECT_TRUE(get("/api/v1/sessions").contains(R"("state":"done")"));
  EXPECT_TRUE(contents(folder / "err").contains(std::format(":{} until Ctrl+C\n", port_)));
  ASSERT_EQ(::kill(background_->pid(), SIGINT), 0);
  EXPECT_EQ(background_->wait(), 0);
  EXPECT_EQ(get("/api/v1/health"), "") << "the server has ended, too";

  start_live("-n 5 -m absent.gguf");
  ASSERT_TRUE(
      test::wait_until([&] { return program().is_object() && !program()["ended"].is_null(); }));
  EXPECT_EQ(
      program()["ended"],
      std::format("llama-completion ended with status 1. Nothing is recorded in {}.", traces));
  ASSERT_EQ(::kill(background_->pid(), SIGTERM), 0);
  EXPECT_EQ(background_->wait(), 1) << "the program's own";
}

TEST_F(AttachServer, ThreeSlotsAtOnce) {
  make_model("small");
  start("-np 3 -c 1536");
  std::string script;
  for (int i = 0; i < 3; ++i) {
    script += std::format("({}) > {} &\n",
                          completion(port_, std::format("Story number {} about boats", i), 40 + i),
                          (folder / std::format("answer{}", i).c_str()).string());
  }
  ask(script + "wait\n");
  for (int i = 0; i < 3; ++i)
    EXPECT_NE(contents(folder / std::format("answer{}", i).c_str())
                  .find(std::format("\"tokens_predicted\":{}", 40 + i)),
              std::string::npos);
  stop();
  ASSERT_EQ(sessions().size(), 1U) << contents(folder / "err");
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  std::uint32_t most = 0, generated = 0;
  for (std::uint32_t i = 0; i < *reader.step_count(); ++i) {
    const Step step = *reader.step(StepId{i});
    if (step.phase == Phase::Generate) most = std::max(most, step.n_tokens);
  }
  for (const Token& token : *reader.tokens(0, 10'000)) generated += token.generated ? 1 : 0;
  EXPECT_EQ(most, 3U) << "tokens of all slots in one step";
  EXPECT_EQ(generated, 40U + 41 + 42 - 3) << "the last token of each answer is not evaluated";
}

TEST_F(AttachServer, DraftAndTargetAreNamed) {
  make_model("small");
  make_model("small --seed 7", "draft");
  start("-md draft.gguf -c 512 -np 1 --spec-type draft-simple");
  ask(post(port_, "/completion",
           R"({"prompt": "A boat", "n_predict": 24, "ignore_eos": true, "temperature": 0})"));
  stop();
  std::map<std::string, std::string> roles;  // by model
  for (const fs::path& file : sessions()) {
    expect_valid(file);
    const SessionInfo info = *open(file).info();
    roles[fs::path(info.model_files.at(0).path).filename()] = info.fact("attach.role");
  }
  EXPECT_EQ(roles,
            (std::map<std::string, std::string>{{"draft.gguf", "draft"}, {"model.gguf", "target"}}))
      << contents(folder / "err");
}

// The server's own counts of drafted and accepted tokens, and the speed of its answer, are those of
// the session. The last draft of a request has no known result.
TEST_F(AttachServer, LedgerOfDraftsHasTheCountsOfTheServer) {
  make_model("small");
  fs::copy_file(folder / "model.gguf", folder / "same.gguf");
  start("-md same.gguf -c 512 -np 1 -tb 1 --spec-type draft-simple");
  std::uint64_t drafted = 0, accepted = 0, predicted = 0;
  for (const char* request :
       {R"({"prompt": "A boat", "n_predict": 40, "ignore_eos": true, "temperature": 0})",
        R"({"prompt": "The wind", "n_predict": 33, "ignore_eos": true, "temperature": 0.8,
            "seed": 3})"}) {
    const std::string answer = ask(post(port_, "/completion", request));
    const auto number = [&](const std::string& name) -> std::uint64_t {
      const auto at = answer.find("\"" + name + "\":");
      EXPECT_NE(at, answer.npos) << name << " in " << answer;
      return at == answer.npos ? 0 : std::stoull(answer.substr(at + name.size() + 3));
    };
    drafted += number("draft_n");
    accepted += number("draft_n_accepted");
    predicted += number("predicted_n");
  }
  stop();
  const std::vector<fs::path> files = sessions();
  const std::size_t which = open(files.at(0)).info()->fact("attach.role") == "target" ? 0 : 1;
  const SessionReader reader = open(files.at(which)), draft = open(files.at(1 - which));
  const SessionInfo info = *reader.info();
  const auto ledger = draft_ledger(reader, kAllRows);
  ASSERT_TRUE(ledger.has_value()) << ledger.error().message;
  EXPECT_EQ(ledger->draft_session, draft.info()->id);
  ASSERT_EQ(ledger->total, ledger->drafts.size());
  std::uint64_t proposed = 0, unknown = 0, draft_steps = 0, read = 0;
  for (const CheckedDraft& row : ledger->drafts) {
    proposed += row.drafted;
    if (!row.accepted) unknown += row.drafted;
    draft_steps += row.draft_steps.value_or(0);
    EXPECT_GE(row.draft_steps.value_or(0), row.drafted) << "step " << row.step.v;
    EXPECT_GT(row.draft.value_or(Ns{}).v, 0);
    read += row.check_read.v;
  }
  EXPECT_EQ(proposed, drafted);
  EXPECT_LE(ledger->total - ledger->known, 2U);
  EXPECT_LE(ledger->accepted, accepted);
  EXPECT_GE(ledger->accepted + unknown, accepted);
  EXPECT_EQ(ledger->accepted + ledger->rejected, ledger->drafted);
  EXPECT_LE(draft_steps, *draft.step_count());
  const Result sum = run_tt(folder, std::format("sql {} \"SELECT sum(bytes_read) FROM step WHERE "
                                                "phase = 'generate' AND token_count > 1\" --csv",
                                                files.at(which).string()));
  EXPECT_EQ(sum.out, std::format("sum(bytes_read)\n{}\n", read)) << sum.err;
  // All tokens of the answers but those that were not accepted, and the last one of each request,
  // which is not evaluated.
  const std::uint64_t generated = *info.fact_number("result.generated_tokens");
  EXPECT_LE(predicted - 2, generated);
  EXPECT_LE(generated, predicted - 2 + unknown);

  // The statement of docs/attach.md gives the same rows.
  const std::string guide = contents(source_path("docs/attach.md"));
  const auto from = guide.find("```sql\n");
  ASSERT_NE(from, guide.npos);
  std::ofstream(folder / "drafts.sql")
      << guide.substr(from + 7, guide.find("```", from + 7) - from - 7);
  std::string rows = "step,drafted,accepted\n";
  for (const CheckedDraft& row : ledger->drafts)
    rows += std::format("{},{},{}\n", row.step.v, row.drafted,
                        row.accepted ? std::to_string(*row.accepted) : "");
  const Result by_sql =
      run_tt(folder, std::format("sql {} \"$(cat drafts.sql)\" --csv", files.at(which).string()));
  EXPECT_EQ(by_sql.out, rows) << by_sql.err;

  // Without the other session only the work of the target is known, and that is said.
  fs::create_directory(folder / "alone");
  fs::copy(files.at(which), folder / "alone");
  const fs::path alone = folder / "alone" / files.at(which).filename();
  const auto part = draft_ledger(open(alone), kAllRows);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->draft_session, "");
  EXPECT_EQ(part->accepted, ledger->accepted);
  EXPECT_FALSE(part->draft || part->cost || part->drafts.at(0).draft);
  const Result beside = run_tt(folder, "show " + files.at(which).string()),
               without = run_tt(folder, "report " + alone.string());
  EXPECT_TRUE(beside.out.contains("A draft ")) << beside.out << beside.err;
  EXPECT_TRUE(without.out.contains("which is not beside this one")) << without.out;
}

// A model with two layers, and a third one that predicts the token after the next one: a copy of
// the second layer, whose input has twice the width.
void write_mtp_model(const fs::path& file) {
  const fs::path base = test::arch_model_with_letters("qwen35-dense");
  ggml_context* tensors = nullptr;
  const GgufContext whole(gguf_init_from_file(base.c_str(), {.no_alloc = false, .ctx = &tensors}));
  const GgmlContext owner(tensors), own(ggml_init({std::size_t{16} << 20U, nullptr, false}));
  test::with_changes(base, file, [&](gguf_context* gguf) {
    gguf_set_val_u32(gguf, "qwen35.block_count", 3);
    gguf_set_val_u32(gguf, "qwen35.nextn_predict_layers", 1);
    const std::array<std::uint32_t, 3> recurrent = {1, 0, 0};
    gguf_set_arr_data(gguf, "qwen35.attention.recurrent_layers", GGUF_TYPE_UINT32, recurrent.data(),
                      recurrent.size());
    const std::array<float, 3> none{};
    for (const char* key : {"qwen35.swiglu_clamp_exp", "qwen35.swiglu_clamp_shexp"})
      gguf_set_arr_data(gguf, key, GGUF_TYPE_FLOAT32, none.data(), none.size());
    const std::string_view second = "blk.1.";
    for (std::int64_t i = 0; i < gguf_get_n_tensors(whole.get()); ++i) {
      const std::string name = gguf_get_tensor_name(whole.get(), i);
      if (!name.starts_with(second)) continue;
      ggml_tensor* const of_second = ggml_get_tensor(tensors, name.c_str());
      ggml_tensor* const copy = ggml_dup_tensor(own.get(), of_second);
      std::memcpy(copy->data, of_second->data, ggml_nbytes(copy));
      ggml_set_name(copy, ("blk.2." + name.substr(second.size())).c_str());
      gguf_add_tensor(gguf, copy);
    }
    constexpr std::int64_t kColumns = 256;
    const auto add = [&](const std::string& name, std::int64_t columns, std::int64_t rows) {
      ggml_tensor* const one = ggml_new_tensor_2d(own.get(), GGML_TYPE_F32, columns, rows);
      ggml_set_name(one, ("blk.2.nextn." + name + ".weight").c_str());
      for (std::int64_t k = 0; k < columns * rows; ++k)
        ggml_get_data_f32(one)[k] = rows == 1 ? 1 : static_cast<float>(k * 37 % 101 - 50) / 1000;
      gguf_add_tensor(gguf, one);
    };
    add("eh_proj", 2 * kColumns, kColumns);
    for (const char* norm : {"enorm", "hnorm", "shared_head_norm"}) add(norm, kColumns, 1);
  });
}

// The layers that predict further tokens have a context of their own.
TEST_F(AttachServer, LayersThatDraftAreADraft) {
  write_mtp_model(folder / "model.gguf");
  start("-c 256 -np 1 --spec-type draft-mtp --spec-draft-n-max 3 --no-warmup");
  const std::string answer = ask(completion(port_, "the wind was cold", 24));
  ASSERT_TRUE(answer.contains("200 OK")) << answer;
  stop();
  std::map<std::string, fs::path> by_role;
  for (const fs::path& file : sessions()) {
    expect_valid(file);
    by_role[std::string(open(file).info()->fact("attach.role"))] = file;
  }
  ASSERT_EQ(by_role.size(), 2U) << contents(folder / "err");
  const SessionReader draft = open(by_role.at("draft")), target = open(by_role.at("target"));
  EXPECT_EQ(draft.info()->fact("attach.draft"), "mtp");
  EXPECT_EQ(draft.info()->n_layers, 3U);
  EXPECT_EQ(target.info()->fact("attach.draft"), "");
  EXPECT_EQ(target.info()->n_layers, 2U);
  EXPECT_EQ(target.info()->fact("attach.draft_session"), draft.info()->id);
  const auto layers = [&](const fs::path& file) {
    return run_tt(folder, std::format("sql {} --csv \"SELECT group_concat(DISTINCT layer_id) AS "
                                      "layers FROM access WHERE tensor_kind = 'weight'\"",
                                      file.string()))
        .out;
  };
  EXPECT_EQ(layers(by_role.at("draft")), "layers\n2\n");
  EXPECT_EQ(layers(by_role.at("target")), "layers\n\"0,1\"\n");
  const auto ledger = draft_ledger(target, kAllRows);
  ASSERT_TRUE(ledger.has_value()) << ledger.error().message;
  std::uint64_t drafted = 0;
  for (const CheckedDraft& row : ledger->drafts) drafted += row.drafted;
  const auto at = answer.find("\"draft_n\":");
  ASSERT_NE(at, answer.npos) << answer;
  EXPECT_EQ(drafted, std::stoull(answer.substr(at + 10)));
}

// What the server computed for each request is what its session has. The warm-up is in none.
TEST_F(AttachServer, SessionPerRequest) {
  make_model("small");
  start("-np 2 -c 2048", "--per-request");
  const std::array prompts = {"The wind was cold", "The wind was cold", "The wind was warm",
                              "A boat"};
  std::vector<std::string> answers;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    answers.push_back(ask(completion(port_, prompts[i], 6 + static_cast<int>(i))));
  // Both slots: two short answers while there is a long one.
  ask(std::format("({}) > {} &\n", completion(port_, "A long story", 450),
                  (folder / "long").string()));
  ASSERT_TRUE(test::wait_until([&] { return steps_in({sessions().back()}) > 10; }));
  ask(std::format("for i in 1 2; do {}; done\n", completion(port_, "Another story", 3)));
  ASSERT_EQ(sessions().size(), 5U);
  // It ends without another request.
  ASSERT_TRUE(test::wait_until(
      [&] { return open(sessions().back()).info()->state == SessionState::Done; }));
  stop();
  ASSERT_EQ(sessions().size(), 5U) << contents(folder / "err");
  for (std::size_t i = 0; i < sessions().size(); ++i) {
    SCOPED_TRACE(sessions()[i]);
    expect_valid(sessions()[i]);
    const SessionReader reader = open(sessions()[i]);
    const SessionInfo info = *reader.info();
    EXPECT_EQ(info.state, SessionState::Done);
    EXPECT_TRUE(sessions()[i].stem().string().ends_with(std::format("-{}", i + 1)));
    EXPECT_EQ(info.id, sessions()[i].stem());
    EXPECT_EQ(info.fact("attach.request"), std::to_string(i + 1));
    EXPECT_EQ(reader.step(StepId{0})->begin, Ns{0});
    EXPECT_EQ(reader.step(StepId{0})->phase, Phase::Prompt);
    if (i == answers.size()) {
      EXPECT_EQ(info.fact("attach.requests"), "3");
      EXPECT_EQ(info.fact_number("result.generated_tokens"), 449U + 2 * 2);
      break;
    }
    EXPECT_EQ(info.fact("attach.requests"), "1");
    EXPECT_EQ(info.fact_number("result.generated_tokens"), 5U + i);
    std::string text;  // the last token of an answer is not evaluated
    for (const Token& token : *reader.tokens(0, 100)) text += token.generated ? token.text : "";
    EXPECT_FALSE(text.empty());
    EXPECT_TRUE(answers[i].contains(std::format(R"("content":"{})", text))) << answers[i];
  }
  EXPECT_TRUE(open(sessions()[0]).info()->title == prompts[0]);
  EXPECT_TRUE(contents(folder / "err").contains("-*.ttrace: 5 sessions of 7 requests, "))
      << contents(folder / "err");
}

// A batch with requests of two slots, the later slot first, is evaluated in two steps.
TEST_F(AttachServer, RequestThatBeginsBesideAnotherIsInItsSession) {
  make_model("small");
  start("-np 2 -c 2048 --no-kv-unified", "--per-request");
  const auto in_slot = [&](int slot, const char* prompt, int tokens) {
    return post(port_, "/completion",
                std::format(R"({{"prompt": "{}", "n_predict": {}, "ignore_eos": true, )"
                            R"("temperature": 0, "id_slot": {}}})",
                            prompt, tokens, slot));
  };
  ask(in_slot(0, "The wind was cold", 4));
  ask(std::format("({}) > {} &\n", in_slot(1, "A long story", 450), (folder / "long").string()));
  ASSERT_TRUE(test::wait_until(
      [&] { return sessions().size() == 2 && steps_in({sessions().back()}) > 10; }));
  ask(in_slot(0, "The wind was cold", 4));  // all is reused but one token
  ask(in_slot(0, "A boat and a fox", 4));
  ASSERT_TRUE(test::wait_until([&] { return contents(folder / "long").contains("content"); }));
  // One after the other: each has its own session.
  ask(in_slot(1, "Rain", 4));
  ask(in_slot(0, "Snow", 4));
  stop();
  ASSERT_EQ(sessions().size(), 4U) << contents(folder / "err");
  std::vector<std::string> requests;
  for (const fs::path& file : sessions()) {
    expect_valid(file);
    requests.emplace_back(open(file).info()->fact("attach.requests"));
  }
  EXPECT_EQ(requests, (std::vector<std::string>{"1", "3", "1", "1"}));
  std::map<std::uint32_t, std::string> prompts;
  std::map<std::uint32_t, int> generated;  // without the last token of each
  for (const Token& token : *open(sessions()[1]).tokens(0, 1000)) {
    if (!token.generated) prompts[token.sequence.value_or(0)] += token.text;
    generated[token.sequence.value_or(0)] += token.generated ? 1 : 0;
  }
  EXPECT_TRUE(prompts[1].contains("long story")) << prompts[1];
  EXPECT_TRUE(prompts[3].contains("boat")) << prompts[3];
  EXPECT_EQ(generated, (std::map<std::uint32_t, int>{{1, 449}, {2, 3}, {3, 3}}));
}

// Of its own only: a session of another program, the one that is being recorded and one of the
// whole context stay.
TEST_F(AttachServer, KeepsTheNewestSessions) {
  make_model("small");
  const auto record = [&](const char* options) {
    return attached("llama-completion -m model.gguf -p Hello -n 2 --ignore-eos -no-cnv -t 1",
                    options);
  };
  ASSERT_EQ(record("").code, 0);
  ASSERT_EQ(sessions().size(), 1U);
  const fs::path whole = sessions()[0];
  ASSERT_EQ(record("--per-request").code, 0);
  ASSERT_EQ(sessions().size(), 2U);
  const fs::path earlier = sessions()[sessions()[0] == whole ? 1 : 0];
  start("-np 1 -c 512", "--keep-sessions 2");
  for (int i = 0; i < 4; ++i) ask(completion(port_, std::format("{} boats", i), 4));
  const auto numbers = [&] {
    std::string out;
    for (const fs::path& file : sessions())
      if (file != whole && file != earlier) out += file.stem().string().back();
    return out;
  };
  ASSERT_TRUE(test::wait_until([&] { return numbers() == "234"; }))
      << "two, and one that is being recorded: " << numbers();
  stop();
  EXPECT_EQ(numbers(), "34");
  EXPECT_TRUE(fs::exists(whole));
  EXPECT_FALSE(fs::exists(earlier)) << "of an earlier run";
  EXPECT_TRUE(contents(folder / "err").contains("3 sessions removed, to keep the newest\n"))
      << contents(folder / "err");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "traces"), {}), 3) << "nothing beside";

  std::uintmax_t bytes = 0;
  for (const fs::path& file : sessions())
    if (file != whole) bytes += fs::file_size(file);
  const Result limited = record(std::format("--keep-bytes {}", bytes).c_str());
  ASSERT_EQ(limited.code, 0) << limited.err;
  std::uintmax_t kept = 0;
  for (const fs::path& file : sessions())
    if (file != whole) kept += fs::file_size(file);
  EXPECT_LE(kept, bytes);
  EXPECT_EQ(sessions().size(), 3U) << limited.err;
  EXPECT_TRUE(limited.err.contains("1 session removed, to keep the newest\n")) << limited.err;
}

// What was reused is what the server says; a text that changes at its begin is the reason.
TEST_F(AttachServer, SaysWhyAPromptWasReadAgain) {
  make_model("small");
  start("-np 1 -c 1024", "--per-request");
  const std::string rules = ". The captain of the old wooden boat waits for the wind to turn south";
  std::vector<std::string> prompts;
  const auto request = [&](const std::string& prompt, const char* more = "") {
    prompts.push_back(prompt);
    const std::string answer =
        ask(post(port_, "/completion",
                 std::format(R"({{"prompt": "{}", "n_predict": 4, "ignore_eos": true, )"
                             R"("temperature": 0{}}})",
                             prompt, more)));
    const auto number = [&](std::string_view name) {
      const std::size_t at = answer.find(std::format("\"{}\":", name));
      return at == std::string::npos ? -1 : std::stoi(answer.substr(at + name.size() + 3));
    };
    return std::pair(number("cache_n"), number("prompt_n"));
  };
  std::vector<std::pair<int, int>> said;  // reused and evaluated tokens
  said.push_back(request("Today is Monday" + rules));
  said.push_back(request("Today is Friday" + rules));
  said.push_back(request("Today is Friday" + rules));
  said.push_back(request("Today is Friday" + rules, R"(, "cache_prompt": false)"));
  stop();
  ASSERT_EQ(sessions().size(), 4U) << contents(folder / "err");
  std::vector<SessionInfo> infos;
  for (const fs::path& file : sessions()) {
    infos.push_back(*open(file).info());
    const auto [reused, evaluated] = said[infos.size() - 1];
    EXPECT_GE(reused, 0);
    EXPECT_EQ(infos.back().fact("result.reused_tokens"), std::to_string(reused));
    EXPECT_EQ(infos.back().fact("result.prompt_tokens"), std::to_string(reused + evaluated));
    // The reused tokens are in the session: its prompt is whole.
    expect_valid(file);
    std::string prompt;
    int marked = 0;
    for (const Token& token : *open(file).tokens(0, 1000)) {
      prompt += token.generated ? "" : token.text;
      marked += token.reused ? 1 : 0;
    }
    EXPECT_EQ(marked, reused);
    EXPECT_TRUE(prompt.ends_with(prompts[infos.size() - 1])) << prompt;
  }
  EXPECT_EQ(infos[0].fact("result.reuse_end"), "");
  EXPECT_EQ(infos[1].fact("result.reuse_end"), "other_token");
  EXPECT_EQ(infos[1].fact("result.cached_from"), infos[0].id);
  EXPECT_TRUE(infos[1].fact("result.text_before").ends_with("Today is "))
      << infos[1].fact("result.text_before");
  EXPECT_TRUE(infos[1].fact("result.text_prompt").starts_with("Friday"));
  EXPECT_TRUE(infos[1].fact("result.text_cached").starts_with("Monday"));
  EXPECT_EQ(infos[2].fact("result.reuse_end"), "") << "all but the last token was reused";
  EXPECT_EQ(infos[3].fact("result.reuse_end"), "not_kept");
  EXPECT_EQ(infos[3].fact("result.common_tokens"), infos[3].fact("result.prompt_tokens"));
  const Result shown = run_tt(folder, "show " + sessions()[1].string());
  EXPECT_TRUE(shown.out.contains("tokens were evaluated again")) << shown.out;
  const Result again = run_tt(folder, "show " + sessions()[3].string());
  EXPECT_TRUE(again.out.contains("but the program did not reuse them.")) << again.out;
}

// Of a session with all requests of a context, each has its whole prompt.
TEST_F(AttachServer, ReusedTokensOfEachRequestAreInItsSession) {
  make_model("small");
  start("-np 2 -c 2048");
  const std::string begin = "The captain of the old wooden boat waits for the wind";
  const std::vector<std::string> prompts = {begin, begin + " to turn", "Snow", begin + " to fall"};
  std::vector<int> reused;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::string answer =
        ask(post(port_, "/completion",
                 std::format(R"({{"prompt": "{}", "n_predict": 4, "ignore_eos": true, )"
                             R"("temperature": 0, "id_slot": {}}})",
                             prompts[i], i == 2 ? 1 : 0)));
    const std::size_t at = answer.find("\"cache_n\":");
    ASSERT_NE(at, answer.npos) << answer;
    reused.push_back(std::stoi(answer.substr(at + 10)));
  }
  stop();
  EXPECT_GT(reused[1], 5);
  EXPECT_EQ(reused[2], 0);
  EXPECT_GT(reused[3], 5);
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  std::map<std::uint32_t, std::string> texts;
  std::map<std::uint32_t, int> marked;
  for (const Token& token : *open(sessions()[0]).tokens(0, 1000)) {
    if (!token.sequence || token.generated) continue;
    texts[*token.sequence] += token.text;
    marked[*token.sequence] += token.reused ? 1 : 0;
  }
  ASSERT_EQ(texts.size(), prompts.size());
  const nlohmann::json answers =
      run_json(folder, "show --json " + sessions()[0].string())["answers"];
  ASSERT_EQ(answers.size(), prompts.size());
  for (std::uint32_t i = 0; i < prompts.size(); ++i) {
    EXPECT_TRUE(texts[i + 1].ends_with(prompts[i])) << texts[i + 1];
    EXPECT_EQ(marked[i + 1], reused[i]);
    EXPECT_EQ(answers[i]["reused_tokens"], reused[i]);
  }
  const Result shown = run_tt(folder, "show " + sessions()[0].string());
  EXPECT_TRUE(shown.out.contains(
      std::format("\nanswer, sequence 2, slot 0 of the server, {} tokens reused\n", reused[1])))
      << shown.out;
}

// Then it records nothing, and the program goes on; SIGUSR1 starts again.
TEST_F(AttachServer, StopsAfterRequests) {
  make_model("small");
  start("-np 1 -c 512", "--requests 2");
  const auto ask_four = [&] {
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(ask(completion(port_, std::format("{} boats", i), 4)).contains("\"content\""));
  };
  const auto said = [&](const char* text) { return contents(folder / "err").contains(text); };
  ask_four();
  ASSERT_TRUE(test::wait_until([&] { return said("tt attach: 2 requests are recorded."); }));
  ASSERT_EQ(::kill(background_->pid(), SIGUSR1), 0);
  ASSERT_TRUE(test::wait_until([&] { return said("tt attach: recording\n"); }));
  EXPECT_EQ(sessions().size(), 2U);
  ask_four();
  ASSERT_TRUE(test::wait_until([&] { return said("tt attach: 4 requests are recorded."); }));
  stop();
  EXPECT_EQ(sessions().size(), 4U);
  for (const fs::path& file : sessions()) expect_valid(file);
}

// An answer of one token has no generated token that was evaluated.
TEST_F(AttachServer, KeepsSlowRequestsOnly) {
  make_model("small");
  start("-np 1 -c 512", "--when 'slower-than 1µs/token'");
  for (const int tokens : {1, 4, 1})
    ask(completion(port_, std::format("{} boats", tokens), tokens));
  stop();
  ASSERT_EQ(sessions().size(), 1U) << contents(folder / "err");
  EXPECT_EQ(open(sessions()[0]).info()->title, "4 boats");
  expect_valid(sessions()[0]);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "traces"), {}), 1) << "nothing beside";
  EXPECT_TRUE(
      contents(folder / "err").contains("1 request kept, 2 not slower than 1.00 µs per token"))
      << contents(folder / "err");

  const Result fast =
      attached("llama-completion -m model.gguf -p Hello -n 4 --ignore-eos -no-cnv -t 1",
               "--when 'slower-than 100s/token'");
  ASSERT_EQ(fast.code, 0) << fast.err;
  EXPECT_EQ(sessions().size(), 1U) << fast.err;
  EXPECT_TRUE(fast.err.contains("0 requests kept, 1 not slower than 100 s per token")) << fast.err;
}
// A checked draft goes back in the target; the draft model reads accepted tokens as a prompt.
TEST_F(AttachServer, SessionPerRequestWithADraftModel) {
  make_model("small");
  make_model("small --seed 7", "draft");
  start("-md draft.gguf -c 512 -np 1 --spec-type draft-simple", "--per-request");
  ask(completion(port_, "A boat", 24));
  ask(completion(port_, "The wind", 24));
  stop();
  std::multiset<std::string> found;
  for (const fs::path& file : sessions()) {
    expect_valid(file);
    const SessionInfo info = *open(file).info();
    found.insert(std::format("{} {}", info.fact("attach.role"), info.fact("attach.request")));
  }
  EXPECT_EQ(found, (std::multiset<std::string>{"draft 1", "draft 2", "target 1", "target 2"}))
      << contents(folder / "err");
}

// The graph that moves the cells of the cache is a step without tokens.
TEST_F(AttachServer, ContextShift) {
  make_model("small");
  start("-c 256 -np 1 --context-shift");
  const std::string answer =
      ask(post(port_, "/completion",
               R"({"prompt": "A boat", "n_predict": 300, "ignore_eos": true, "temperature": 0})"));
  EXPECT_NE(answer.find("\"tokens_predicted\":300"), std::string::npos) << answer;
  stop();
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  std::uint32_t shifts = 0;
  for (std::uint32_t i = 0; i < *reader.step_count(); ++i) {
    const Step step = *reader.step(StepId{i});
    if (step.phase == Phase::Other && step.n_tokens == 0) ++shifts;
  }
  EXPECT_GE(shifts, 1U);
}

TEST_F(AttachServer, Embeddings) {
  make_model("bert");
  start("--embedding");
  const std::string answer =
      ask(post(port_, "/embedding", R"({"content": "a wooden boat on the sea"})"));
  EXPECT_NE(answer.find("\"embedding\""), std::string::npos) << answer;
  stop();
  ASSERT_EQ(sessions().size(), 1U);
  expect_valid(sessions()[0]);
  const SessionReader reader = open(sessions()[0]);
  EXPECT_EQ(reader.step(StepId{*reader.step_count() - 1})->phase, Phase::Embed);
}

}  // namespace
}  // namespace tt
