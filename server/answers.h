// How handlers read parameters and answer: values and problems in, HTTP out.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <expected>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/page.h"
#include "api/json.h"
#include "api/problem.h"
#include "server/static_files.h"

namespace tt {

// An answer is not kept by anyone, unless unchanged() has said otherwise of it.
void answer(httplib::Response& response, const Json& json, int status = 200);
void answer(httplib::Response& response, const Problem& problem);

// First in every handler of a GET about a session, when its parameters are
// understood:
//
//   if (unchanged(request, response, sessions.tag(id))) return;
//
// True: the client has this very answer already; 304 is said, nothing is left to
// do. Else the answer will carry an ETag. `tag` names the state of what the
// answer is about (SessionStore::tag()); without one it may be another the next
// moment, and is not kept.
bool unchanged(const httplib::Request& request, httplib::Response& response,
               const std::optional<std::string>& tag);

// A problem when the query has a parameter that is none of `names`, or one twice.
std::optional<Problem> refuse_unknown(const httplib::Request& request,
                                      std::initializer_list<std::string_view> names);
// 304 to a client that has it (If-None-Match).
void answer(const httplib::Request& request, httplib::Response& response, const StaticFile& file);

// A query parameter that is a whole number from 0 to `most`; none when absent.
std::expected<std::optional<std::uint64_t>, Problem> number_parameter(
    const httplib::Request& request, const char* name, std::uint64_t most);

// from (or `from_name`) and limit of a page. At most kMostRows rows at a time.
inline constexpr std::uint64_t kMostRows = 10'000;
std::expected<PageRange, Problem> page_parameters(const httplib::Request& request,
                                                  std::uint64_t usual_limit,
                                                  const char* from_name = "from");

}  // namespace tt
