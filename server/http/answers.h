// How handlers answer: values and problems in, HTTP out.
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

// An answer is not kept by anyone, unless unchanged() has said otherwise of it.
void answer(httplib::Response& response, const Json& json, int status = 200);
void answer(httplib::Response& response, const Problem& problem);
// What is no JSON: DOT, CSV.
struct TextAnswer {
  std::string text;
  const char* type = "text/plain; charset=utf-8";
};
void answer(httplib::Response& response, const TextAnswer& text);

// First in every handler of a GET about a session, when its parameters are
// understood:
//
//   if (unchanged(request, response, sessions.tag(id))) return;
//
// True: the client has this very answer already; 304 is said, nothing is left to
// do. Else the answer will carry an ETag. `tag` names the state of what the
// answer is about (SessionStore::tag()); without one it may be another the next
// moment, and is not kept.
//
// SameBytes::Yes where equal tags mean equal bytes. Answers may be compressed or
// not, and are the same then in other bytes; files may be asked for in parts.
enum class SameBytes : bool { No, Yes };
bool unchanged(const httplib::Request& request, httplib::Response& response,
               const std::optional<std::string>& tag, SameBytes same = SameBytes::No);

// 304 to a client that has it (If-None-Match).
void answer(const httplib::Request& request, httplib::Response& response, const StaticFile& file);

}  // namespace tt
