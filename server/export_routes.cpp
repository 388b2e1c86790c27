// A session in the formats of other tools, made while it is sent.
#include <algorithm>
#include <array>
#include <format>
#include <memory>
#include <string>
#include <utility>

#include "api/exchange/export.h"
#include "server/routes.h"
#include "server/session_question.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;
using namespace tt::exchange;

std::expected<Format, Problem> format_parameter(const Request& request) {
  std::vector<std::string_view> names;
  for (const FormatFacts& facts : formats()) names.push_back(facts.name);
  return word_parameter(request, "format", names, facts_of(Format::Parquet).name)
      .transform([](const std::string& name) { return *format_named(name); });
}

std::expected<LogLevel, Problem> level_parameter(const Request& request) {
  constexpr std::array<std::string_view, 3> kLevels = {"minimal", "detailed", "verbose"};
  return word_parameter(request, "level", kLevels, "detailed")
      .transform([&](const std::string& name) {
        return static_cast<LogLevel>(std::ranges::find(kLevels, name) - kLevels.begin());
      });
}

ExportOptions options_of(const Request& request, ParameterReader& read) {
  ExportOptions options;
  options.format = read.take(format_parameter(request));
  options.level = read.take(level_parameter(request));
  const auto first = read.take(number_parameter(request, "first_step", kMostIds));
  options.range.first = StepId{static_cast<std::uint32_t>(first.value_or(0))};
  if (const auto last = read.take(number_parameter(request, "last_step", kMostIds)))
    options.range.last = StepId{static_cast<std::uint32_t>(*last)};
  options.range.per_head = read.take(flag_parameter(request, "per_head")).value_or(false);
  return options;
}

void send_export(const Request& request, Response& response, SessionStore& sessions) {
  ParameterReader read;
  const ExportOptions options = options_of(request, read);
  if (read.problem()) return answer(response, *read.problem());
  const std::string& id = request.path_params.at("id");
  if (unchanged(request, response, sessions.tag(id))) return;
  auto opened = sessions.open(id);
  if (!opened) return answer(response, problem_of(opened.error()));
  // An export is made while it is sent: damage in its way would be told too late.
  const auto whole_steps = end_at_damage(*opened, options, while_connected(request));
  if (!whole_steps) return answer(response, problem_of(whole_steps.error()));
  tell_damage(response, *whole_steps);
  const auto reader = std::make_shared<const SessionReader>(*std::move(opened));
  // What can be seen to be wrong is said while there is still a status to say it with.
  if (const Written possible = check_export(*reader, options); !possible)
    return answer(response, problem_of(possible.error()));
  const FormatFacts& facts = facts_of(options.format);
  response.set_header("Content-Disposition",
                      std::format("attachment; filename=\"{}{}\"", id, facts.extension));
  response.set_chunked_content_provider(
      std::string(facts.media_type), [reader, options](std::size_t, httplib::DataSink& sink) {
        const ByteSink to_client = [&](std::string_view bytes) -> Written {
          if (sink.write(bytes.data(), bytes.size())) return {};
          return std::unexpected(cancelled_error());
        };
        // An answer that ends early, without its last chunk, says that it is not whole.
        const bool whole = export_session(*reader, options, to_client, [&] {
                             return sink.is_writable();
                           }).has_value();
        if (whole) sink.done();
        return whole;
      });
}

}  // namespace

void add_export_routes(httplib::Server& http, SessionStore& sessions) {
  http.Get("/api/v1/sessions/:id/export", [&sessions](const Request& request, Response& response) {
    send_export(request, response, sessions);
  });
}

}  // namespace tt
