// How handlers read parameters and answer: values and problems in, HTTP out.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <expected>
#include <optional>

#include "analysis/page.h"
#include "api/json.h"
#include "api/problem.h"

namespace tt {

void answer(httplib::Response& response, const Json& json, int status = 200);
void answer(httplib::Response& response, const Problem& problem);

// A query parameter that is a whole number from 0 to `most`; none when absent.
std::expected<std::optional<std::uint64_t>, Problem> number_parameter(
    const httplib::Request& request, const char* name, std::uint64_t most);

// from (or `from_name`) and limit of a page. At most kMostRows rows at a time.
inline constexpr std::uint64_t kMostRows = 10'000;
std::expected<PageRange, Problem> page_parameters(const httplib::Request& request,
                                                  std::uint64_t usual_limit,
                                                  const char* from_name = "from");

}  // namespace tt
