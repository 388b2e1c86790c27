// How handlers read parameters and answer: values and problems in, HTTP out.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
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
//
// SameBytes::Yes where equal tags mean equal bytes. Answers may be compressed or
// not, and are the same then in other bytes; files may be asked for in parts.
enum class SameBytes : bool { No, Yes };
bool unchanged(const httplib::Request& request, httplib::Response& response,
               const std::optional<std::string>& tag, SameBytes same = SameBytes::No);

// 304 to a client that has it (If-None-Match).
void answer(const httplib::Request& request, httplib::Response& response, const StaticFile& file);

// A query parameter that is a whole number from 0 to `most`; none when absent.
std::expected<std::optional<std::uint64_t>, Problem> number_parameter(
    const httplib::Request& request, const char* name, std::uint64_t most);

// A text of at most `most` characters, kMostText as a rule; empty when absent.
inline constexpr std::size_t kMostText = 200;
std::expected<std::string, Problem> text_parameter(const httplib::Request& request,
                                                   const char* name, std::size_t most = kMostText);

// One of `words`; `usual` when absent.
std::expected<std::string, Problem> word_parameter(const httplib::Request& request,
                                                   const char* name,
                                                   std::span<const std::string_view> words,
                                                   std::string_view usual = {});

// from (or `from_name`) and limit of a page. At most kMostRows rows at a time.
inline constexpr std::uint64_t kMostRows = 10'000;
std::expected<PageRange, Problem> page_parameters(const httplib::Request& request,
                                                  std::uint64_t usual_limit,
                                                  const char* from_name = "from");

}  // namespace tt
