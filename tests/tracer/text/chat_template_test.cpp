// Conversations in the chat templates of common model families (chat_template_corpus_test.cpp
// compares many more with llama-server). The expected text is the output of Jinja2 for the same
// template and messages (trim_blocks, lstrip_blocks). Exception: where the template rejects a
// system message, its text is prepended to the first user message.
#include "tracer/text/chat_template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/models/model_edit.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

constexpr const char* kLlama3 =
    R"({% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>

'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>

' }}{% endif %})";

constexpr const char* kGemma =
    R"({{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '
' + message['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %})";

constexpr const char* kMistral = R"({%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if (message["role"] == "user") != (loop.index0 % 2 == 0) %}
        {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif %}
    {%- if message["role"] == "user" %}
        {%- if loop.first and system_message is defined %}
            {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] + eos_token }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
)";

constexpr const char* kPhi3 =
    R"({% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'user' %}{{'<|user|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>
' + message['content'] + '<|end|>
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>
' }}{% else %}{{ eos_token }}{% endif %})";

const ChatTokens kMarks{.begin = "<s>", .end = "</s>", .adds_bos = true};
using Messages = std::vector<ChatMessage>;
const Messages kOne = {{"user", "Hello"}};
const Messages kTurns = {{"user", " Hello "}, {"assistant", "Hi."}, {"user", "Bye"}};
const Messages kSystem = {{"system", "Be brief."}, {"user", "Hello"}};
const Messages kTwice = {{"user", "a"}, {"user", "b"}};

TEST(ChatTemplate, FormatsConversationsOfCommonFamilies) {
  JinjaEngine engine;
  struct Case {
    const char* name;
    const char* source;
    const Messages& messages;
    const char* text;
  };
  const Case cases[] = {
      {"llama 3, one", kLlama3, kOne,
       "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"llama 3, turns", kLlama3, kTurns,
       "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\nHi.<|eot_id|>"
       "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"llama 3, system", kLlama3, kSystem,
       "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
       "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"gemma, one", kGemma, kOne,
       "<start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\n"},
      {"gemma, turns", kGemma, kTurns,
       "<start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\nHi.<end_of_turn>\n"
       "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"},
      {"gemma, system", kGemma, kSystem,
       "<start_of_turn>user\nBe brief.\nHello<end_of_turn>\n<start_of_turn>model\n"},
      {"mistral, one", kMistral, kOne, "[INST] Hello[/INST]"},
      {"mistral, turns", kMistral, kTurns, "[INST]  Hello [/INST] Hi.</s>[INST] Bye[/INST]"},
      {"mistral, system", kMistral, kSystem, "[INST] Be brief.\n\nHello[/INST]"},
      {"phi 3, turns", kPhi3, kTurns,
       "<|user|>\n Hello "
       "<|end|>\n<|assistant|>\nHi.<|end|>\n<|user|>\nBye<|end|>\n<|assistant|>\n"},
      {"phi 3, system", kPhi3, kSystem,
       "<|system|>\nBe brief.<|end|>\n<|user|>\nHello<|end|>\n<|assistant|>\n"},
      {"phi 3, twice", kPhi3, kTwice, "<|user|>\na<|end|>\n<|user|>\nb<|end|>\n<|assistant|>\n"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto text = apply_chat_template(engine, c.source, c.messages, kMarks);
    ASSERT_TRUE(text.has_value()) << text.error();
    EXPECT_EQ(*text, c.text);
  }
}

TEST(ChatTemplate, WritesBosOnlyIfTokenizerDoesNot) {
  JinjaEngine engine;
  constexpr const char* kLiteral = "<s>{% for m in messages %}[{{ m['content'] }}]{% endfor %}";
  constexpr const char* kVariable = "{{ bos_token }}{{ messages[0]['content'] }}{{ bos_token }}";
  struct Case {
    const char* source;
    bool adds_bos;
    const char* text;
  };
  for (const Case& c : {Case{kLiteral, true, "[Hello]"}, Case{kLiteral, false, "<s>[Hello]"},
                        Case{kVariable, true, "Hello<s>"}, Case{kVariable, false, "<s>Hello<s>"}}) {
    SCOPED_TRACE(c.text);
    const auto text = apply_chat_template(engine, c.source, kOne,
                                          {.begin = "<s>", .end = "</s>", .adds_bos = c.adds_bos});
    ASSERT_TRUE(text.has_value()) << text.error();
    EXPECT_EQ(*text, c.text);
  }
}

TEST(ChatTemplate, ReportsErrorsOfTemplate) {
  JinjaEngine engine;
  struct Case {
    const char* name;
    const char* source;
    const Messages& messages;
    const char* says;
  };
  const Messages starts_wrong = {{"assistant", "Hi."}, {"user", "Hello"}};
  const Messages unknown_role = {{"user", "Hello"}, {"critic", "No."}};
  const Case cases[] = {
      {"gemma, twice", kGemma, kTwice, "Conversation roles must alternate"},
      {"gemma, assistant first", kGemma, starts_wrong, "Conversation roles must alternate"},
      {"mistral, twice", kMistral, kTwice, "conversation roles must alternate"},
      {"mistral, unknown role", kMistral, unknown_role, "Only user and assistant roles"},
      {"no end", "\n{% if messages %}\nno end", kOne,
       "{% if %} is not closed with {% endif %} (line 2 of the template)"},
      {"unknown filter", "\n\n{{ messages | no_such_filter }}", kOne,
       "unknown filter 'no_such_filter' for Array (line 3 of the template)"},
      {"unknown function", "\n{{ no_such_function(messages) }}", kOne,
       "Cannot call something that is not a function: got UndefinedValue (line 2 of the template)"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto text = apply_chat_template(engine, c.source, c.messages, kMarks);
    ASSERT_FALSE(text.has_value()) << *text;
    EXPECT_TRUE(text.error().contains(c.says)) << text.error();
    EXPECT_FALSE(text.error().contains('\n')) << text.error();
  }
}

// Names of JavaScript are ordinary names: nothing of the engine is reached.
TEST(ChatTemplate, ReachesNoJavaScript) {
  JinjaEngine engine;
  const Messages messages = {{"user", "constructor"}};
  for (const char* expression : {"messages.constructor",
                                 "messages[0].__proto__",
                                 "messages[0]['constructor']",
                                 "messages[0].content.prototype",
                                 "''.constructor",
                                 "[].constructor",
                                 "{}.__proto__",
                                 "range.constructor",
                                 "raise_exception.prototype",
                                 "globalThis",
                                 "eval",
                                 "Function",
                                 "process",
                                 "module",
                                 "render",
                                 "strftime_now.constructor",
                                 "namespace.constructor",
                                 "messages[0].content.matchAll",
                                 "(1).toString",
                                 "loop",
                                 "{'a': 1}.valueOf",
                                 "messages[0].hasOwnProperty",
                                 "messages['length2']",
                                 "[1].map.constructor"}) {
    SCOPED_TRACE(expression);
    const std::string source = std::string("{{ ") + expression + " is defined }}";
    const auto text = apply_chat_template(engine, source, messages, kMarks);
    ASSERT_TRUE(text.has_value()) << text.error();
    EXPECT_EQ(*text, "False");
  }
  // Keys of data that JavaScript gives a meaning, in their order.
  Conversation conversation(messages);
  conversation.arguments =
      R"({"d": {"b": 1, "1": 2, "__proto__": {"x": 3}, "constructor": "c", "0": 1.0, "a": 10}})";
  const auto text = apply_chat_template(
      engine, "{{ d | tojson }}{{ d.constructor }}{{ d['__proto__'].x }}{{ x is defined }}",
      conversation, kMarks);
  ASSERT_TRUE(text.has_value()) << text.error();
  EXPECT_EQ(
      *text,
      R"({"b": 1, "1": 2, "__proto__": {"x": 3}, "constructor": "c", "0": 1.0, "a": 10}c3False)");
}

// The same weights and vocabulary with another chat template.
std::filesystem::path with_template(const std::filesystem::path& model, const char* source,
                                    const std::filesystem::path& out) {
  return with_changes(model, out, [&](gguf_context* file) {
    gguf_set_val_str(file, "tokenizer.chat_template", source);
  });
}

TEST(ChatTemplate, PromptHasExactlyOneBos) {
  const TempFolder folder;
  for (const bool adds : {true, false}) {
    SCOPED_TRACE(adds);
    TracedModel traced(
        with_changes(two_layer_model("small"), folder / "mistral.gguf", [&](auto* file) {
          gguf_set_val_str(file, "tokenizer.chat_template", kMistral);
          gguf_set_val_bool(file, "tokenizer.ggml.add_bos_token", adds);
        }));
    const auto ids = traced.engine().tokens_of(kTurns);
    ASSERT_TRUE(ids.has_value()) << ids.error().message;
    EXPECT_EQ(traced.engine().piece(ids->front()), "<s>");
    EXPECT_EQ(std::ranges::count(*ids, ids->front()), 1);
  }
}

// A template that no conversation passes is a warning at load, with the construct and its line.
TEST(ChatTemplate, WarnsAtLoadIfNoConversationPasses) {
  struct Case {
    const char *source, *says;
  };
  const TempFolder folder;
  for (const Case& c :
       {Case{"{% for m in messages %}\n{{ m.content | no_such_filter }}{% endfor %}",
             "unknown filter 'no_such_filter' for String (line 2 of the template)"},
        Case{"a\n\n{% if messages %}", "{% if %} is not closed with {% endif %} (line 3"},
        Case{"{{ raise_exception('No chat.') }}", "No chat. (line 1 of the template)"}}) {
    SCOPED_TRACE(c.source);
    TracedModel traced(with_template(two_layer_model("small"), c.source, folder / "wrong.gguf"));
    const ModelFacts& facts = traced.engine().facts();
    EXPECT_FALSE(facts.has_chat_template || facts.can_chat);
    ASSERT_EQ(facts.warnings.size(), 1U);
    EXPECT_TRUE(facts.warnings[0].starts_with("Chat is not possible: ")) << facts.warnings[0];
    EXPECT_TRUE(facts.warnings[0].contains(c.says)) << facts.warnings[0];
    const auto tokens = traced.engine().tokens_of(kOne);
    ASSERT_FALSE(tokens.has_value());
    EXPECT_EQ(tokens.error().message, facts.warnings[0]);
    EXPECT_TRUE(traced.engine().tokens_of("Once").has_value());
  }
  // One that passes some conversations is not.
  TracedModel gemma(with_template(two_layer_model("small"), kGemma, folder / "gemma.gguf"));
  EXPECT_TRUE(gemma.engine().facts().warnings.empty());
}

TEST(ChatTemplate, OptionReplacesTheTemplateAndMissingOneIsChatMl) {
  const TempFolder folder;
  TracedModel replaced(two_layer_model("small"), TracedModel::small_context(),
                       {.chat_template = "{% for m in messages %}({{ m.content }}){% endfor %}"});
  EXPECT_EQ(replaced.engine().tokens_of(kOne).value(),
            replaced.engine().tokens_of("(Hello)").value());

  TracedModel none(with_changes(two_layer_model("small"), folder / "none.gguf", [](auto* file) {
    gguf_remove_key(file, "tokenizer.chat_template");
  }));
  EXPECT_EQ(none.engine().tokens_of(kOne).value(),
            none.engine()
                .tokens_of("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
                .value());
  ASSERT_EQ(none.engine().facts().warnings.size(), 1U);
  EXPECT_TRUE(none.engine().facts().warnings[0].contains("ChatML"));
  EXPECT_TRUE(none.engine().facts().can_chat);
  EXPECT_FALSE(none.engine().facts().has_chat_template);
}

TEST(ChatTemplate, TemplateErrorFailsOnlyTheRequest) {
  const TempFolder folder;
  TracedModel traced(
      with_template(generated_model({.shape = "small"}), kMistral, folder / "mistral.gguf"));
  GenerationRequest request = greedy_tokens(1, 5);
  request.reuse_prefix = true;
  request.prompt = kTurns;
  const auto before = traced.run(request);
  ASSERT_EQ(before.result.reason, StopReason::Length) << before.result.error;

  GenerationRequest rejected = request;
  rejected.prompt = kTwice;
  const auto checked = traced.engine().check(rejected);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().kind, EngineError::Kind::BadConversation);
  EXPECT_TRUE(checked.error().message.contains("roles must alternate")) << checked.error().message;
  const auto failed = traced.run(rejected);
  EXPECT_EQ(failed.result.reason, StopReason::Error);
  EXPECT_EQ(failed.result.error, checked.error().message);
  EXPECT_EQ(failed.info.state, SessionState::Failed);
  EXPECT_EQ(failed.result.steps, 0U);
  EXPECT_TRUE(check_session(failed.file).value().empty());

  // The earlier recording is intact, and the context is still reusable.
  EXPECT_TRUE(check_session(before.file).value().empty());
  EXPECT_EQ(before.steps().size(), before.result.steps);
  const auto after = traced.run(request);
  EXPECT_EQ(after.result.text, before.result.text);
  EXPECT_EQ(after.result.reused_tokens, after.result.prompt_tokens - 1);

  // The tokenizer adds BOS, once.
  const auto ids = traced.engine().tokens_of(kTurns);
  ASSERT_TRUE(ids.has_value());
  EXPECT_EQ(std::ranges::count(*ids, ids->front()), 1);
  EXPECT_EQ(traced.engine().piece(ids->front()), "<s>");
}

}  // namespace
}  // namespace tt::test
