#include "tracer/text/chat_template.h"

#include <exception>
#include <format>
#include <string_view>

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

}  // namespace tt
