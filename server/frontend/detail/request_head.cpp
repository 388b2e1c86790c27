#include "server/frontend/detail/request_head.h"

#include <algorithm>
#include <cctype>
#include <format>
#include <ranges>

namespace tt::frontend {
namespace {

// RFC 9110 5.6.2
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("!#$%&'*+-.^_`|~").contains(static_cast<char>(c));
  });
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text,
                             [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

Rejection too_large(std::string why) { return {RejectionReason::HeadTooLarge, std::move(why)}; }

}  // namespace

Rejection malformed_request(std::string_view what) {
  return {RejectionReason::Malformed, std::format("Malformed HTTP/1.1 request: {}.", what)};
}

bool equals_ignore_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::size_t RequestHead::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields, [&](const Field& field) { return equals_ignore_case(field.name, name); }));
}

std::optional<std::string_view> RequestHead::first(std::string_view name) const {
  const auto found = std::ranges::find_if(
      fields, [&](const Field& field) { return equals_ignore_case(field.name, name); });
  if (found == fields.end()) return std::nullopt;
  return found->value;
}

bool RequestHead::has_token(std::string_view name, std::string_view token) const {
  for (const Field& field : fields) {
    if (!equals_ignore_case(field.name, name)) continue;
    for (const auto part : std::views::split(field.value, ',')) {
      if (equals_ignore_case(trim(std::string_view(part)), token)) return true;
    }
  }
  return false;
}

std::string_view RequestHead::query() const {
  const auto question = target.find('?');
  return question == std::string_view::npos ? std::string_view{} : target.substr(question + 1);
}

std::expected<RequestHead, Rejection> parse_request_head(std::string_view text) {
  RequestHead head;
  bool is_request_line = true;
  for (;;) {
    const auto end = text.find("\r\n");
    if (end == std::string_view::npos)
      return std::unexpected(malformed_request("blank line missing"));
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (is_request_line) {
      is_request_line = false;
      const auto first = line.find(' ');
      const auto last = line.rfind(' ');
      if (first == std::string_view::npos || first == last) {
        return std::unexpected(malformed_request("invalid request line"));
      }
      head.method = line.substr(0, first);
      head.target = line.substr(first + 1, last - first - 1);
      head.version = line.substr(last + 1);
      if (constexpr std::string_view kScheme = "http://";
          equals_ignore_case(head.target.substr(0, kScheme.size()), kScheme)) {
        // Absolute form, which clients of proxies send.
        head.target.remove_prefix(kScheme.size());
        const auto slash = std::min(head.target.find('/'), head.target.size());
        head.authority = head.target.substr(0, slash);
        head.target = slash == head.target.size() ? "/" : head.target.substr(slash);
        if (head.authority.empty())
          return std::unexpected(malformed_request("invalid request line"));
      }
      const bool target_is_path =
          head.target.starts_with('/') || (head.target == "*" && head.method == "OPTIONS");
      if (!is_token(head.method) || !target_is_path || head.target.contains(' ') ||
          has_control(head.target) || (head.version != "HTTP/1.1" && head.version != "HTTP/1.0")) {
        return std::unexpected(malformed_request("invalid request line"));
      }
      continue;
    }
    if (line.empty()) return head;
    if (line.size() > kMaxFieldBytes) {
      return std::unexpected(
          too_large(std::format("A header is longer than {} bytes.", kMaxFieldBytes)));
    }
    if (head.fields.size() == kMaxFields) {
      return std::unexpected(too_large(std::format("There are more than {} headers.", kMaxFields)));
    }
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || has_control(line)) {
      return std::unexpected(malformed_request("invalid header line"));
    }
    head.fields.push_back({line.substr(0, colon), trim(line.substr(colon + 1))});
  }
}

}  // namespace tt::frontend
