#include <charconv>
#include <limits>

#include "analysis/access_table.h"
#include "analysis/op_table.h"
#include "analysis/step_summary.h"
#include "api/trace_json.h"
#include "server/answers.h"
#include "server/routes.h"

namespace tt {

namespace {

constexpr std::uint64_t kUsualRows = 1000;
constexpr std::uint64_t kUsualSteps = 100;  // each is derived from its template when asked for

using Request = httplib::Request;
using Response = httplib::Response;

std::expected<StepId, Problem> step_of(const Request& request) {
  const std::string& text = request.path_params.at("step");
  StepId id;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, id.v);
  if (parsed.ec != std::errc{} || parsed.ptr != end)
    return std::unexpected(Problem{Fault::NotFound, "Steps are numbered from 0."});
  return id;
}

// Answers with what `question` says of the session that the path names.
template <class Question>
void about_session(const SessionStore& sessions, const Request& request, Response& response,
                   Question question) {
  const auto reader = sessions.open(request.path_params.at("id"));
  if (!reader) return answer(response, problem_of(reader.error()));
  const auto found = question(*reader);
  if (!found) return answer(response, problem_of(found.error()));
  answer(response, to_json(*found));
}

std::expected<Page<Token>, TraceError> token_page(const SessionReader& reader, PageRange range) {
  const auto total = reader.token_count();
  if (!total) return std::unexpected(total.error());
  auto rows = reader.tokens(static_cast<std::uint32_t>(range.from),
                            static_cast<std::uint32_t>(range.limit));
  if (!rows) return std::unexpected(rows.error());
  return Page<Token>{.total = *total, .rows = *std::move(rows)};
}

}  // namespace

void add_trace_routes(httplib::Server& http, const SessionStore& sessions) {
  http.Get("/api/v1/sessions/:id/tokens", [&sessions](const Request& request, Response& response) {
    const auto range = page_parameters(request, kUsualRows);
    if (!range) return answer(response, range.error());
    about_session(sessions, request, response,
                  [&](const SessionReader& reader) { return token_page(reader, *range); });
  });

  http.Get("/api/v1/sessions/:id/steps", [&sessions](const Request& request, Response& response) {
    const auto range = page_parameters(request, kUsualSteps);
    if (!range) return answer(response, range.error());
    about_session(sessions, request, response,
                  [&](const SessionReader& reader) { return step_summaries(reader, *range); });
  });

  http.Get("/api/v1/sessions/:id/steps/:step/ops",
           [&sessions](const Request& request, Response& response) {
             const auto step = step_of(request);
             if (!step) return answer(response, step.error());
             const auto range = page_parameters(request, kUsualRows);
             if (!range) return answer(response, range.error());
             about_session(sessions, request, response, [&](const SessionReader& reader) {
               return op_table(reader, *step, *range);
             });
           });

  http.Get("/api/v1/sessions/:id/steps/:step/accesses", [&sessions](const Request& request,
                                                                    Response& response) {
    const auto step = step_of(request);
    if (!step) return answer(response, step.error());
    const auto range = page_parameters(request, kUsualRows);
    if (!range) return answer(response, range.error());
    const auto op = number_parameter(request, "op", std::numeric_limits<std::uint32_t>::max());
    if (!op) return answer(response, op.error());
    AccessFilter filter;
    if (*op) filter.op = OpId{static_cast<std::uint32_t>(**op)};
    about_session(sessions, request, response, [&](const SessionReader& reader) {
      return access_table(reader, *step, filter, *range);
    });
  });
}

}  // namespace tt
