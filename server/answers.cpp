#include "server/answers.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <functional>
#include <limits>

namespace tt {

namespace {

// Whether the entity tags of an If-None-Match field, "a", W/"b"..., hold `tag`.
// Weak and strong are the same here (RFC 9110, 13.1.2). '*' matches nothing: the
// answer to this very target may still be a problem.
bool holds_tag(std::string_view tags, std::string_view tag) {
  for (std::size_t at = 0; at < tags.size();) {
    const std::size_t open = tags.find('"', at);
    if (open == tags.npos) return false;
    const std::size_t close = tags.find('"', open + 1);
    if (close == tags.npos) return false;
    if (tags.substr(open, close + 1 - open) == tag) return true;
    at = close + 1;
  }
  return false;
}

// Of UTF-8: every byte but those that continue one.
std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

void answer(httplib::Response& response, const Json& json, int status) {
  response.status = status;
  if (!response.has_header("Cache-Control")) response.set_header("Cache-Control", "no-store");
  response.set_content(text_of(json), "application/json");
}

bool unchanged(const httplib::Request& request, httplib::Response& response,
               const std::optional<std::string>& tag, SameBytes same) {
  if (!tag) {
    response.set_header("Cache-Control", "no-store");
    return false;
  }
  // With the target in it, a tag of one answer is never taken for another's.
  const std::string etag =
      std::format("\"{}-{:x}\"", *tag, std::hash<std::string>{}(request.target));
  response.set_header("Cache-Control", "private, no-cache");
  response.set_header("ETag", (same == SameBytes::Yes ? "" : "W/") + etag);
  if (!holds_tag(request.get_header_value("If-None-Match"), etag)) return false;
  response.status = 304;
  return true;
}

void answer(httplib::Response& response, const Problem& problem) {
  response.headers.erase("ETag");
  response.headers.erase("Cache-Control");
  response.status = status_of(problem);
  response.set_header("Cache-Control", "no-store");
  if (response.status == 503) response.set_header("Retry-After", "2");
  response.set_content(text_of(problem), "application/problem+json");
}

void answer(const httplib::Request& request, httplib::Response& response, const StaticFile& file) {
  response.set_header("Cache-Control", file.cache);
  response.set_header("ETag", file.etag);
  if (request.get_header_value("If-None-Match") == file.etag) {
    response.status = 304;
    return;
  }
  response.set_content(file.body, file.type);
}

std::expected<std::optional<std::uint64_t>, Problem> number_parameter(
    const httplib::Request& request, const char* name, std::uint64_t most) {
  if (!request.has_param(name)) return std::nullopt;
  const std::string text = request.get_param_value(name);
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value > most) {
    return std::unexpected(Problem{
        Fault::BadRequest, std::format("\"{}\" takes a whole number from 0 to {}.", name, most)});
  }
  return value;
}

std::expected<std::string, Problem> text_parameter(const httplib::Request& request,
                                                   const char* name, std::size_t most) {
  std::string text = request.get_param_value(name);
  if (characters_of(text) > most) {
    return std::unexpected(
        Problem{Fault::BadRequest, std::format("\"{}\" takes at most {} characters.", name, most)});
  }
  return text;
}

std::expected<std::string, Problem> word_parameter(const httplib::Request& request,
                                                   const char* name,
                                                   std::span<const std::string_view> words,
                                                   std::string_view usual) {
  if (!request.has_param(name)) return std::string(usual);
  std::string word = request.get_param_value(name);
  if (std::ranges::contains(words, word)) return word;
  std::string known;
  for (const std::string_view one : words)
    known += std::format("{}{}", known.empty() ? "" : ", ", one);
  return std::unexpected(
      Problem{Fault::BadRequest, std::format("\"{}\" takes one of: {}.", name, known)});
}

std::expected<PageRange, Problem> page_parameters(const httplib::Request& request,
                                                  std::uint64_t usual_limit,
                                                  const char* from_name) {
  const auto from = number_parameter(request, from_name, std::numeric_limits<std::uint32_t>::max());
  if (!from) return std::unexpected(from.error());
  const auto limit = number_parameter(request, "limit", kMostRows);
  if (!limit) return std::unexpected(limit.error());
  return PageRange{.from = from->value_or(0), .limit = limit->value_or(usual_limit)};
}

}  // namespace tt
