#include "tracer/text/chat_template.h"

#include <exception>
#include <format>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/sandbox/fields.h"

// Third-party header: disable warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wextra-semi"
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <minja/chat-template.hpp>
#pragma GCC diagnostic pop

namespace tt {

std::expected<std::string, std::string> apply_chat_template(const std::string& source,
                                                            std::span<const ChatMessage> messages,
                                                            const ChatTokens& marks) {
  try {
    const minja::chat_template chat(source, marks.begin, marks.end);
    minja::chat_template_inputs inputs;
    inputs.messages = nlohmann::ordered_json::array();
    for (const ChatMessage& message : messages) {
      inputs.messages.push_back({{"role", message.role}, {"content", message.content}});
    }
    std::string text = chat.apply(inputs);
    if (marks.adds_bos && text.starts_with(marks.begin)) text.erase(0, marks.begin.size());
    return text;
  } catch (const std::bad_alloc&) {
    throw;  // a limit of the process, not an error of the template
  } catch (const std::exception& error) {
    // Keep the first line of the message; the rest quotes the template once per nesting level.
    std::string_view what = error.what();
    what = what.substr(0, what.find('\n'));
    if (what.ends_with(':')) what.remove_suffix(1);
    return std::unexpected(std::format(
        "The model's chat template rejects this conversation: {}. Send it as plain text instead.",
        what));
  }
}

// Input of the job: template, marks, then role and content of each message. Result: whether there
// is a text, then the text or the error.
JobKind chat_template_job() {
  return job_kind("chat_template", [](std::string_view input) {
    const auto fields = unpack_fields(input);
    const ChatTokens marks{.begin = std::string(fields.at(1)),
                           .end = std::string(fields.at(2)),
                           .adds_bos = fields.at(3) == "1"};
    std::vector<ChatMessage> messages;
    for (std::size_t at = 4; at + 1 < fields.size(); at += 2)
      messages.push_back({.role = std::string(fields[at]), .content = std::string(fields[at + 1])});
    auto text = apply_chat_template(std::string(fields.at(0)), messages, marks);
    return text ? pack_fields({"1", *text}) : pack_fields({"0", text.error()});
  });
}

std::expected<std::string, ChatError> render_chat(Sandbox& sandbox, std::string_view source,
                                                  std::span<const ChatMessage> messages,
                                                  const ChatTokens& marks,
                                                  const KeepGoing& keep_going) {
  std::vector<std::string_view> input = {source, marks.begin, marks.end,
                                         marks.adds_bos ? "1" : "0"};
  for (const ChatMessage& message : messages) {
    input.push_back(message.role);
    input.push_back(message.content);
  }
  using Kind = ChatError::Kind;
  const auto result = sandbox.run("chat_template", pack_fields(input), {}, keep_going);
  if (result) {
    const auto fields = unpack_fields(*result);
    if (fields.at(0) == "1") return std::string(fields.at(1));
    return std::unexpected(
        ChatError{.kind = Kind::Conversation, .message = std::string(fields.at(1))});
  }
  const JobError& error = result.error();
  if (error.kind == JobError::Kind::Busy || error.kind == JobError::Kind::Unavailable ||
      error.kind == JobError::Kind::Cancelled) {
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
