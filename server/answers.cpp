#include "server/answers.h"

#include <charconv>
#include <format>
#include <limits>

namespace tt {

void answer(httplib::Response& response, const Json& json, int status) {
  response.status = status;
  response.set_header("Cache-Control", "no-store");
  response.set_content(text_of(json), "application/json");
}

void answer(httplib::Response& response, const Problem& problem) {
  response.status = status_of(problem.fault);
  response.set_header("Cache-Control", "no-store");
  if (response.status == 503) response.set_header("Retry-After", "2");
  response.set_content(text_of(problem), "application/problem+json");
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
