#include "server/http/responses.h"

#include <format>
#include <functional>
#include <utility>

#include "server/frontend/frontend.h"

namespace tt {

namespace {

// Returns true when the entity tags of an If-None-Match field ("a", W/"b", ...) contain `tag`.
// Uses weak comparison (RFC 9110, 13.1.2). '*' never matches: the response for this target may
// still be an error.
bool contains_etag(std::string_view tags, std::string_view tag) {
  for (std::size_t at = 0; at < tags.size();) {
    const std::size_t open = tags.find('"', at);
    if (open == std::string_view::npos) return false;
    const std::size_t close = tags.find('"', open + 1);
    if (close == std::string_view::npos) return false;
    if (tags.substr(open, close + 1 - open) == tag) return true;
    at = close + 1;
  }
  return false;
}

}  // namespace

void respond(httplib::Response& response, const Json& json, int status) {
  response.status = status;
  if (!response.has_header("Cache-Control")) response.set_header("Cache-Control", "no-store");
  response.set_content(text_of(json), "application/json");
}

void respond(httplib::Response& response, const TextResponse& text) {
  if (!response.has_header("Cache-Control")) response.set_header("Cache-Control", "no-store");
  response.set_content(text.text, text.type);
}

bool not_modified(const httplib::Request& request, httplib::Response& response,
                  const std::optional<std::string>& tag, StrongEtag same) {
  if (!tag) {
    response.set_header("Cache-Control", "no-store");
    return false;
  }
  // Includes the target, so that a tag of one resource never matches another.
  const std::string etag =
      std::format("\"{}-{:x}\"", *tag, std::hash<std::string>{}(request.target));
  response.set_header("Cache-Control", "private, no-cache");
  response.set_header("ETag", (same == StrongEtag::Yes ? "" : "W/") + etag);
  if (!contains_etag(request.get_header_value("If-None-Match"), etag)) return false;
  response.status = 304;
  return true;
}

void respond(httplib::Response& response, const Problem& problem) {
  response.headers.erase("ETag");
  response.headers.erase("Cache-Control");
  response.status = status_of(problem);
  response.set_header("Cache-Control", "no-store");
  if (response.status == 503) response.set_header("Retry-After", "2");
  // The detail of a 4xx may quote client input, which must not reach the log.
  std::string note = code_of(problem.error_code);
  if (response.status >= 500) note += ": " + problem.detail;
  response.user_data.set(kLogNote, std::move(note));
  response.set_content(text_of(problem), "application/problem+json");
}

void respond(const httplib::Request& request, httplib::Response& response, const StaticFile& file) {
  response.set_header("Cache-Control", file.cache);
  response.set_header("ETag", file.etag);
  if (request.get_header_value("If-None-Match") == file.etag) {
    response.status = 304;
    return;
  }
  response.set_content(file.body, file.type);
}

}  // namespace tt
