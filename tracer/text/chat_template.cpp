#include "tracer/text/chat_template.h"

#include <chrono>
#include <format>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "tracer/sandbox/fields.h"

namespace tt {

namespace {

// Keeps the order of keys, which templates print.
using Json = nlohmann::ordered_json;

// The processor's time is limited: on a busy machine a good template may wait for seconds.
constexpr JobLimits kTemplateLimits{.time = std::chrono::seconds(15),
                                    .cpu_time = std::chrono::seconds(2)};

// The request of render() in dialect.js.
std::string render_request(std::string_view source, const Conversation& conversation,
                           const ChatTokens& marks) {
  const auto given = [](const std::string& text, Json missing) {
    return text.empty() ? std::move(missing) : Json::parse(text);
  };
  Json messages = Json::array();
  for (const ChatMessage& message : conversation.messages)
    messages.push_back(given(message.json, {{"role", message.role}, {"content", message.content}}));
  const Json request = {{"template", source},
                        {"messages", std::move(messages)},
                        {"tools", given(conversation.tools, nullptr)},
                        {"arguments", given(conversation.arguments, Json::object())},
                        {"bos", marks.begin},
                        {"eos", marks.end},
                        {"adds_bos", marks.adds_bos},
                        {"adds_eos", marks.adds_eos}};
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::expected<std::string, std::string> rendered(JinjaEngine& engine, std::string_view request) {
  const Json result = Json::parse(engine.call("render", request));
  if (result.contains("text")) return result["text"].get<std::string>();
  std::string reason = result["error"].get<std::string>();
  if (const auto line = result["line"].get<std::size_t>(); line > 0)
    reason += std::format(" (line {} of the template)", line);
  return std::unexpected(std::move(reason));
}

}  // namespace

std::expected<std::string, std::string> apply_chat_template(JinjaEngine& engine,
                                                            std::string_view source,
                                                            const Conversation& conversation,
                                                            const ChatTokens& marks) {
  return rendered(engine, render_request(source, conversation, marks));
}

// Result of the job: whether there is a text, then the text or the error.
JobKind chat_template_job(JinjaEngine& engine) {
  return job_kind("chat_template", [&engine](std::string_view request) {
    auto text = rendered(engine, request);
    return text ? pack_fields({"1", *text}) : pack_fields({"0", text.error()});
  });
}

std::expected<std::string, ChatError> render_chat(Sandbox& sandbox, std::string_view source,
                                                  const Conversation& conversation,
                                                  const ChatTokens& marks,
                                                  const KeepGoing& keep_going) {
  using Kind = ChatError::Kind;
  const auto result = sandbox.run("chat_template", render_request(source, conversation, marks),
                                  kTemplateLimits, keep_going);
  if (result) {
    const auto fields = unpack_fields(*result);
    if (fields.at(0) == "1") return std::string(fields.at(1));
    return std::unexpected(ChatError{
        .kind = Kind::Conversation,
        .message = std::format("The model's chat template rejects this conversation: {}. Send it "
                               "as plain text instead.",
                               fields.at(1)),
        .reason = std::string(fields.at(1))});
  }
  const JobError& error = result.error();
  if (error.kind == JobError::Kind::Time || error.kind == JobError::Kind::Busy ||
      error.kind == JobError::Kind::Unavailable || error.kind == JobError::Kind::Cancelled) {
    return std::unexpected(
        ChatError{.kind = Kind::Server,
                  .message = std::format("The chat template {}. Try again later.", error.reason)});
  }
  return std::unexpected(ChatError{
      .kind = Kind::Template,
      .message =
          std::format("The model's chat template {}. Send plain text instead.", error.reason)});
}

}  // namespace tt
