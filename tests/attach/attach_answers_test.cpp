// The texts of a recorded llama-server are the answers that it gave: of each request, and without
// the tokens of drafts that were not accepted.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "analysis/speculation/draft_ledger.h"
#include "tests/attach/attach_fixture.h"
#include "tracer/format/model/server_slots.h"
#include "tracer/text/recorded_answer.h"

namespace tt {
namespace {

// What llama-server says about an answer.
struct Said {
  std::string text;
  std::uint64_t tokens = 0;
  std::uint32_t slot = 0;
};

// `response`: HTTP head and JSON.
Said said_in(const std::string& response) {
  const auto json = nlohmann::json::parse(
      response.substr(std::min(response.size(), response.find('{'))), nullptr, false);
  EXPECT_TRUE(json.is_object() && json.contains("content")) << response;
  if (!json.is_object()) return {};
  return {.text = json.value("content", ""),
          .tokens = json.value("tokens_predicted", 0UL),
          .slot = json.value("id_slot", 99U)};
}

struct Recorded {
  std::string text;                                        // of the answer
  std::uint64_t generated = 0, rejected = 0, unknown = 0;  // tokens
  std::optional<std::uint32_t> slot;
};

class AttachAnswers : public AttachServer {
 protected:
  // By sequence.
  static std::map<std::uint32_t, Recorded> recorded_in(const fs::path& file) {
    const SessionReader reader = open(file);
    const auto tokens = *reader.tokens(0, 1'000'000);
    const ServerSlots slots = server_slots(*reader.info());
    std::map<std::uint32_t, Recorded> found;
    for (const Token& token : tokens) {
      if (!token.sequence || !token.generated) continue;
      Recorded& of = found[*token.sequence];
      of.slot = server_slot_of(slots, token.sequence);
      of.generated += in_answer(token) ? 1U : 0U;
      of.rejected += token.draft == Draft::Rejected ? 1U : 0U;
      of.unknown += token.draft == Draft::Unknown ? 1U : 0U;
    }
    for (const SequenceAnswer& answer : recorded_answers(*reader.info(), tokens))
      if (answer.sequence) found[*answer.sequence].text = answer.text;
    return found;
  }
  // The last token of an answer is not evaluated, and the result of its last draft is not known:
  // as much of what the server said is in no session.
  static bool is_of(const Recorded& recorded, const Said& said) {
    return said.slot == recorded.slot.value_or(said.slot) && said.text.starts_with(recorded.text) &&
           recorded.generated + 1 <= said.tokens &&
           said.tokens <= recorded.generated + 1 + recorded.unknown;
  }
  // Each answer is that of one sequence.
  static void expect_same(const std::map<std::uint32_t, Recorded>& recorded,
                          std::vector<Said> said) {
    EXPECT_EQ(recorded.size(), said.size());
    for (const auto& [sequence, answer] : recorded) {
      const auto found =
          std::ranges::find_if(said, [&](const Said& one) { return is_of(answer, one); });
      EXPECT_NE(found, said.end())
          << "sequence " << sequence << ", " << answer.generated << " tokens: " << answer.text;
      if (found != said.end()) said.erase(found);
    }
    for (const Said& one : said) ADD_FAILURE() << one.tokens << " tokens: " << one.text;
  }
  // Requests that arrive some milliseconds apart, `rounds` times as many as there are slots. Each
  // has another number of tokens.
  std::vector<Said> ask_slots(int slots, int rounds) {
    std::vector<Said> said;
    int tokens = 20;
    for (int round = 0; round < rounds; ++round) {
      std::string script;
      for (int i = 0; i < slots; ++i, ++tokens)
        script += std::format(
            "({}) > {} &\nsleep 0.{:03}\n",
            completion(port_, std::format("{} of story {} about boats", tokens, i), tokens),
            (folder / std::format("answer{}", i).c_str()).string(), round + i);
      ask(script + "wait\n");
      for (int i = 0; i < slots; ++i)
        said.push_back(said_in(contents(folder / std::format("answer{}", i).c_str())));
    }
    return said;
  }
  fs::path target() const {
    for (const fs::path& file : sessions())
      if (open(file).info()->fact("attach.role") != "draft") return file;
    return {};
  }
};

// A stream of the cache per slot.
TEST_F(AttachAnswers, OfSlotsWithTheirOwnCaches) {
  make_model("small");
  start("-np 3 -c 1536");
  const std::vector<Said> said = ask_slots(3, 3);
  stop();
  expect_valid(target());
  expect_same(recorded_in(target()), said);
  std::uint64_t tokens = 0;
  for (const Said& one : said) tokens += one.tokens - 1;
  EXPECT_EQ(open(target()).info()->fact_number("result.generated_tokens"), tokens);

  // The slot that the server names in its answer, everywhere.
  std::map<std::uint32_t, std::uint32_t> used;
  for (const Said& one : said) ++used[one.slot];
  EXPECT_EQ(used, (std::map<std::uint32_t, std::uint32_t>{{0, 3}, {1, 3}, {2, 3}}));
  std::map<std::uint32_t, std::uint32_t> recorded;
  const nlohmann::json shown = run_json(folder, "show --json " + target().string());
  std::string rows = "sequence,server_slot\n";
  for (const auto& answer : shown["answers"]) {
    const std::size_t sequence = answer["sequence"];
    ++recorded[answer["server_slot"].get<std::uint32_t>()];
    EXPECT_EQ(shown["server_slots"][sequence - 1], answer["server_slot"]);
    rows += std::format("{},{}\n", sequence, answer["server_slot"].get<std::uint32_t>());
  }
  EXPECT_EQ(recorded, used);
  const Result by_sql =
      run_tt(folder, std::format("sql {} \"SELECT DISTINCT sequence, server_slot FROM token WHERE "
                                 "generated ORDER BY 1\" --csv",
                                 target().string()));
  EXPECT_EQ(by_sql.out, rows) << by_sql.err;
}

// All slots use the cells of one cache.
TEST_F(AttachAnswers, OfSlotsWithOneCache) {
  make_model("small");
  start("-np 3 -c 1536 --kv-unified");
  const std::vector<Said> said = ask_slots(3, 3);
  stop();
  expect_valid(target());
  expect_same(recorded_in(target()), said);
  std::uint64_t tokens = 0;
  for (const Said& one : said) tokens += one.tokens - 1;
  EXPECT_EQ(open(target()).info()->fact_number("result.generated_tokens"), tokens);

  const nlohmann::json shown = run_json(folder, "show --json " + target().string());
  ASSERT_EQ(shown["answers"].size(), said.size());
  std::string all;
  for (const auto& answer : shown["answers"])
    all += (all.empty() ? "" : "\n") + answer["text"].get<std::string>();
  EXPECT_TRUE(shown["answers"][0]["server_slot"].is_null()) << "one cache does not name the slots";
  EXPECT_EQ(shown["answer"], all);
}

// A draft model that is mostly wrong, and one that is right where the target has no choice.
TEST_F(AttachAnswers, WithoutDraftsThatWereNotAccepted) {
  make_model("small");
  make_model("small --seed 7", "other");
  fs::copy_file(folder / "model.gguf", folder / "same.gguf");
  for (const char* draft : {"other", "same"}) {
    SCOPED_TRACE(draft);
    fs::remove_all(folder / "traces");
    start(std::format("-md {}.gguf -c 512 -np 1 --spec-type draft-simple", draft));
    std::vector<Said> said;
    for (const char* request :
         {R"({"prompt": "A boat", "n_predict": 40, "ignore_eos": true, "temperature": 0})",
          R"({"prompt": "The wind", "n_predict": 33, "ignore_eos": true, "temperature": 0.8,
              "seed": 3})"})
      said.push_back(said_in(ask(post(port_, "/completion", request))));
    stop();
    expect_valid(target());
    const auto recorded = recorded_in(target());
    expect_same(recorded, said);
    std::uint64_t rejected = 0, unknown = 0;
    for (const auto& [sequence, answer] : recorded) {
      rejected += answer.rejected;
      unknown += answer.unknown;
    }
    EXPECT_GT(rejected, 0U);
    EXPECT_EQ(draft_ledger(open(target()), kAllRows)->rejected, rejected);
    EXPECT_EQ(open(target()).info()->fact_number("result.rejected_tokens"), rejected);
    const Result drafts = run_tt(
        folder, std::format("sql {} \"SELECT count(*) FROM token WHERE draft = 'unknown'\" --csv",
                            target().string()));
    EXPECT_EQ(drafts.out, std::format("count(*)\n{}\n", unknown)) << drafts.err;
  }
}

// A step has as many tokens of each slot: a longer draft goes on in the next one.
TEST_F(AttachAnswers, OfSlotsWithDrafts) {
  make_model("small");
  make_model("small --seed 7", "draft");
  for (const char* cache : {"", "--kv-unified"}) {
    SCOPED_TRACE(cache);
    fs::remove_all(folder / "traces");
    start(std::format("-md draft.gguf -np 3 -c 1536 --spec-type draft-simple {}", cache));
    const std::vector<Said> said = ask_slots(3, 2);
    stop();
    expect_valid(target());
    const auto recorded = recorded_in(target());
    expect_same(recorded, said);
    EXPECT_TRUE(
        std::ranges::any_of(recorded, [](const auto& one) { return one.second.rejected > 0; }));
  }
}

}  // namespace
}  // namespace tt
