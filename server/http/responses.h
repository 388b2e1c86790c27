// Writes HTTP responses from JSON values, problems, text and files.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/json/json.h"
#include "api/json/problem.h"
#include "server/http/static_files.h"

namespace tt {

// Responses are sent with Cache-Control: no-store, unless not_modified() has set caching headers.
void respond(httplib::Response& response, const Json& json, int status = 200);
void respond(httplib::Response& response, const Problem& problem);
// A response that is not JSON: DOT, CSV.
struct TextResponse {
  std::string text;
  const char* type = "text/plain; charset=utf-8";
};
void respond(httplib::Response& response, const TextResponse& text);

// Conditional GET. Call it first in every GET handler for a session, after the parameters are
// parsed:
//
//   if (not_modified(request, response, sessions.tag(id))) return;
//
// Returns true when the client already has this response: the status is set to 304 and the
// handler returns. Otherwise the response gets an ETag. `tag` identifies the state of the
// resource (SessionStore::tag()). Without a tag the response may change at any time and is not
// cached.
//
// StrongEtag::Yes: equal tags mean equal bytes (strong ETag), as range requests for files
// require. Other responses may be compressed or not, so their bytes differ (weak ETag).
enum class StrongEtag : bool { No, Yes };
bool not_modified(const httplib::Request& request, httplib::Response& response,
                  const std::optional<std::string>& tag, StrongEtag same = StrongEtag::No);

// Sends 304 when If-None-Match contains the ETag of the file.
void respond(const httplib::Request& request, httplib::Response& response, const StaticFile& file);

}  // namespace tt
