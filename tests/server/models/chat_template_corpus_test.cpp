// The prompt of a conversation is that of llama-server (--jinja): text and tokens.
//
// The text: the chat templates of tests/data/templates, each with 12 conversations, with and
// without tools, and with enable_thinking absent, true and false, against POST /apply-template. The
// answers of llama-server are recorded (llama_server.json), because it must start once per
// template: each run asks the real one for some of the templates, other ones every day.
// UPDATE_GOLDEN=1 asks for all and records them again (about 2 minutes).
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/server/support/llama_server.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"
#include "tracer/text/chat_template.h"

namespace tt::test {
namespace {

using Json = nlohmann::ordered_json;

std::filesystem::path folder() { return source_path("tests/data/templates"); }

std::string text_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string source_of(const std::string& name) { return text_in(folder() / (name + ".jinja")); }

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    if (entry.path().extension() == ".jinja") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

// The bodies for /apply-template, 48 per template.
std::vector<Json> requests() {
  const Json given = Json::parse(text_in(folder() / "conversations.json"));
  std::vector<Json> bodies;
  for (const Json& messages : given["conversations"]) {
    for (const bool tools : {false, true}) {
      for (const std::string thinking : {"", "true", "false"}) {
        Json body = {{"messages", messages}};
        if (tools) body["tools"] = given["tools"];
        if (!thinking.empty())
          body["chat_template_kwargs"] = {{"enable_thinking", Json::parse(thinking)}};
        bodies.push_back(std::move(body));
      }
    }
  }
  return bodies;
}

Conversation conversation_of(const Json& body) {
  Conversation out;
  for (const Json& message : body["messages"])
    out.messages.push_back({.role = message["role"], .content = "", .json = message.dump()});
  if (body.contains("tools")) out.tools = body["tools"].dump();
  if (body.contains("chat_template_kwargs")) out.arguments = body["chat_template_kwargs"].dump();
  return out;
}

// The tokens of the bundled model.
const ChatTokens kMarks{.begin = "<s>", .end = "</s>"};

// A text, or null: rejected.
Json rendered(JinjaEngine& engine, const std::string& source, const Json& body) {
  const auto text = apply_chat_template(engine, source, conversation_of(body), kMarks);
  return text ? Json(*text) : Json();
}

// The response of llama-server as JSON; null: an error.
Json post(const LlamaServer& server, const std::string& path, const Json& body) {
  const auto answer = server.client().Post(path, body.dump(), "application/json");
  if (!answer || answer->status != 200) return {};
  return Json::parse(answer->body);
}

const std::vector<std::string> kOptions = {"--jinja", "-c", "512", "--no-warmup"};

// What llama-server answers to `bodies`, null for an error. null: it refuses the template.
Json ask_llama_server(const std::string& name, const std::vector<Json>& bodies) {
  std::vector<std::string> options = kOptions;
  options.insert(options.end(), {"--chat-template-file", (folder() / (name + ".jinja")).string()});
  const LlamaServer server(kTestPaths.bundled_model, options, LlamaServer::Refusal::Allowed);
  if (!server.started()) {
    EXPECT_TRUE(server.log().contains("chat template is not supported")) << server.log();
    return {};
  }
  Json texts = Json::array();
  for (const Json& body : bodies) {
    const Json answer = post(server, "/apply-template", body);
    texts.push_back(answer.is_null() ? Json() : answer["prompt"]);
  }
  return texts;
}

// Recorded answers: each distinct text once.
Json compact(const Json& texts) {
  if (texts.is_null()) return {};
  Json out = {{"texts", Json::array()}, {"answers", Json::array()}};
  for (const Json& text : texts) {
    const auto at = std::ranges::find(out["texts"], text);
    out["answers"].push_back(at - out["texts"].begin());
    if (at == out["texts"].end()) out["texts"].push_back(text);
  }
  return out;
}
Json expanded(const Json& recorded) {
  if (recorded.is_null()) return {};
  Json texts = Json::array();
  for (const std::size_t at : recorded["answers"]) texts.push_back(recorded["texts"][at]);
  return texts;
}

// Templates that print the present date are not recorded.
bool has_date(const std::string& name) { return name.starts_with("date"); }

// Where the two differ, and why.
std::string known_difference(const std::string& name, const Json& body) {
  static const std::map<std::string, std::string> kRefusedThere = {
      {"numbers", "its parser knows no //"},
  };
  static const std::set<std::string> kStartedWithTools = {"arguments_items", "arguments_text",
                                                          "loop_unpack", "tests"};
  if (const auto found = kRefusedThere.find(name); found != kRefusedThere.end())
    return found->second;
  const Json& last = body["messages"].back();
  const bool has_text =
      last["role"] == "assistant" && !last["content"].empty() && last["content"] != "";
  if (kStartedWithTools.contains(name) && has_text && body.contains("tools"))
    return "it parses the started answer for tool calls, and rejects it: a rule for answers, not "
           "for prompts";
  return "";
}

TEST(ChatTemplateCorpus, EqualsLlamaServer) {
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  const std::vector<Json> bodies = requests();
  const std::vector<std::string> names = template_names();
  ASSERT_GE(names.size(), 60U);
  ASSERT_EQ(bodies.size(), 72U);
  Json recorded = Json::parse(text_in(folder() / "llama_server.json"));
  const auto day = std::chrono::duration_cast<std::chrono::days>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  constexpr std::size_t kPerDay = 2;
  JinjaEngine engine;
  std::size_t equal = 0, both_refuse = 0, listed = 0, asked = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    SCOPED_TRACE(name);
    const std::string source = source_of(name);
    const std::size_t groups = names.size() / kPerDay;
    const bool today = i % groups == static_cast<std::size_t>(day) % groups;
    Json theirs;
    if (update || today || has_date(name)) {
      theirs = ask_llama_server(name, bodies);
      ++asked;
      if (!update && !has_date(name)) {
        EXPECT_EQ(theirs, expanded(recorded[name])) << "llama-server changed: UPDATE_GOLDEN=1";
      }
      if (!has_date(name)) recorded[name] = compact(theirs);
    } else {
      ASSERT_TRUE(recorded.contains(name)) << "not recorded: run with UPDATE_GOLDEN=1";
      theirs = expanded(recorded[name]);
    }
    for (std::size_t n = 0; n < bodies.size(); ++n) {
      const Json ours = rendered(engine, source, bodies[n]);
      const Json expected = theirs.is_null() ? Json() : theirs[n];
      if (!known_difference(name, bodies[n]).empty()) {
        EXPECT_NE(ours, expected) << "no longer different: remove it from known_difference()";
        ++listed;
      } else {
        EXPECT_EQ(ours, expected) << bodies[n];
        ++(ours.is_null() ? both_refuse : equal);
      }
    }
  }
  std::printf(
      "%zu templates, %zu prompts: %zu equal, %zu refused by both, %zu listed; asked: %zu\n",
      names.size(), names.size() * bodies.size(), equal, both_refuse, listed, asked);
  if (update) {
    std::ofstream out(folder() / "llama_server.json");
    out << "{\n";
    std::size_t left = recorded.size();
    for (const auto& [name, answers] : recorded.items())
      out << Json(name) << ": " << answers << (--left > 0 ? ",\n" : "\n");
    out << "}\n";
  }
}

// The ids in the arguments of tools are longer than the numbers of JavaScript.
TEST(ChatTemplateCorpus, LongIntegersEqualLlamaServer) {
  const TempFolder folder;
  const std::string source =
      "{% for m in messages %}{{ m.content }}{% for call in m.tool_calls %}"
      "{{ call.function.arguments.id }} {{ call.function.arguments | tojson }}"
      "{{ call.function.arguments.items() | list | length }}{% endfor %}{% endfor %}";
  const auto file = folder / "ids.jinja";
  std::ofstream(file) << source;
  std::vector<std::string> options = kOptions;
  options.insert(options.end(), {"--chat-template-file", file.string()});
  const LlamaServer server(kTestPaths.bundled_model, options);
  ASSERT_TRUE(server.started());
  JinjaEngine engine;
  for (const char* arguments :
       {R"({"id": 1234567890123456789, "small": -3})", R"({"id": -9007199254740993})",
        R"({"id": 9223372036854775807, "all": [9007199254740993, 1e3, 0.1]})",
        R"({"id": 18446744073709551615})", R"({"id": 123456789012345678901234567890})"}) {
    SCOPED_TRACE(arguments);
    const Json call = {{"type", "function"},
                       {"id", "1"},
                       {"function", {{"name", "find"}, {"arguments", arguments}}}};
    const Json body = {
        {"messages",
         {{{"role", "user"}, {"content", "Find."}},
          {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}},
          {{"role", "tool"}, {"content", "Found."}, {"tool_call_id", "1"}},
          {{"role", "user"}, {"content", "Thanks."}}}}};
    const Json theirs = post(server, "/apply-template", body);
    ASSERT_TRUE(theirs.contains("prompt"));
    EXPECT_EQ(rendered(engine, source, body), theirs["prompt"]);
  }
}

struct TokenCase {
  const char* name;
  const char* chat;  // the template; empty: none
  bool add_bos;
};

// The tokens of a conversation and of a text, with the tokenizer's flags of a model.
TEST(PromptTokens, EqualLlamaServer) {
  const TempFolder models;
  const TokenCase cases[] = {
      {"bos_in_template",
       "{{ bos_token }}{% for m in messages %}[INST]{{ m.content }}[/INST]{{ eos_token }}{% endfor "
       "%}",
       true},
      {"bos_in_template_only",
       "{{ bos_token }}{% for m in messages %}[INST]{{ m.content }}[/INST]{{ eos_token }}{% endfor "
       "%}",
       false},
      {"bos_nowhere", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", false},
      {"literal_bos", "<s>{% for m in messages %}{{ m.content }}</s>{% endfor %}", true},
      {"chatml", "", true},
  };
  const Json messages = {{{"role", "system"}, {"content", "Be brief."}},
                         {{"role", "user"}, {"content", "Hello </s> there, <s>you"}}};
  for (const TokenCase& c : cases) {
    SCOPED_TRACE(c.name);
    const auto model = with_changes(
        two_layer_model("small"), models.path() / (std::string(c.name) + ".gguf"), [&](auto* file) {
          if (*c.chat != 0)
            gguf_set_val_str(file, "tokenizer.chat_template", c.chat);
          else
            gguf_remove_key(file, "tokenizer.chat_template");
          gguf_set_val_bool(file, "tokenizer.ggml.add_bos_token", c.add_bos);
        });
    TracedModel traced(model);
    const LlamaServer server(model, kOptions);
    ASSERT_TRUE(server.started());
    const auto tokens = [&](const Json& text) {
      return post(server, "/tokenize",
                  {{"content", text}, {"add_special", true}, {"parse_special", true}})["tokens"]
          .get<std::vector<std::int32_t>>();
    };
    const auto chat = traced.engine().tokens_of(conversation_of({{"messages", messages}}));
    ASSERT_TRUE(chat.has_value()) << chat.error().message;
    const Json prompt = post(server, "/apply-template", {{"messages", messages}})["prompt"];
    EXPECT_EQ(*chat, tokens(prompt)) << prompt;
    const Json answered =
        post(server, "/v1/chat/completions", {{"messages", messages}, {"max_tokens", 1}});
    EXPECT_EQ(Json(chat->size()), answered["usage"]["prompt_tokens"]);

    for (const std::string text : {"Once upon a time", "<s>Twice</s> upon", " space", ""}) {
      SCOPED_TRACE(text);
      if (text.empty()) continue;
      const auto plain = traced.engine().tokens_of(text);
      ASSERT_TRUE(plain.has_value());
      EXPECT_EQ(*plain, tokens(text));
      const Json completed = post(server, "/completion", {{"prompt", text}, {"n_predict", 1}});
      EXPECT_EQ(Json(plain->size()), completed["tokens_evaluated"]);
    }
  }
}

// Structures of real templates that were once rejected, or changed without a word.
TEST(ChatTemplateCorpus, StructuresOfReportedTemplates) {
  JinjaEngine engine;
  struct Case {
    const char *source, *text;
  };
  const Case cases[] = {
      {R"({% if thinking is undefined or thinking is true %}T{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %})",
       "T<system>Be brief<user>Hi"},
      {R"({% for m in messages %}{% if m.role == "ghost" %}{{ raise_exception("no " "ghosts") }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %})",
       "<system>Be brief<user>Hi"},
      {R"({% for m in messages %}{% if m.role == "system" %}[S]{{ m.content | capitalize }}[/S]{% else %}[U]{{ m.content }}[/U]{% endif %}{% endfor %})",
       "[S]Be brief[/S][U]Hi[/U]"},
  };
  const std::vector<ChatMessage> messages = {{"system", "Be brief"}, {"user", "Hi"}};
  for (const Case& c : cases) {
    const auto text = apply_chat_template(engine, c.source, messages, kMarks);
    ASSERT_TRUE(text.has_value()) << text.error();
    EXPECT_EQ(*text, c.text);
  }
}

}  // namespace
}  // namespace tt::test
