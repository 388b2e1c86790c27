// Whole-session results: validation of a recording, comparison of two sessions, findings, report.
#include <algorithm>
#include <array>
#include <expected>
#include <format>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/findings/session_figures.h"
#include "analysis/findings/session_findings.h"
#include "analysis/report/comparison.h"
#include "analysis/report/report.h"
#include "analysis/report/validation.h"
#include "analysis/report/values_difference.h"
#include "api/json/analysis/comparison_json.h"
#include "api/json/analysis/findings_json.h"
#include "api/json/result_json.h"
#include "api/report/report_text.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr std::uint64_t kDefaultTokens = 1000;
constexpr std::uint32_t kDefaultValuesWidth = 96, kDefaultValuesHeight = 64;  // cells
constexpr std::uint32_t kMaxValuesPixels = 512;                               // of a side

struct FormatName {
  std::string_view word;
  ReportFormat format;
  const char* type;
};
constexpr std::array kFormats = {
    FormatName{"html", ReportFormat::Html, "text/html; charset=utf-8"},
    FormatName{"md", ReportFormat::Markdown, "text/markdown; charset=utf-8"},
    FormatName{"json", ReportFormat::JsonText, "application/json"}};

std::expected<FormatName, Problem> format_of(const Request& request) {
  static constexpr std::array<std::string_view, 3> kWords = {kFormats[0].word, kFormats[1].word,
                                                             kFormats[2].word};
  return enum_parameter(request, "format", kWords, kWords[0])
      .transform([](const std::string& word) {
        return *std::ranges::find(kFormats, word, &FormatName::word);
      });
}

// nullopt when absent.
std::expected<std::optional<Axis>, Problem> compared_axis(const Request& request) {
  std::array<std::string_view, kComparedAxes.size()> words;
  std::ranges::transform(kComparedAxes, words.begin(), [](Axis axis) { return to_text(axis); });
  return enum_parameter(request, "by", words)
      .transform([](const std::string& word) -> std::optional<Axis> {
        const auto axis = std::ranges::find(kComparedAxes, word,
                                            [](Axis by) { return std::string_view(to_text(by)); });
        return axis == kComparedAxes.end() ? std::nullopt : std::optional(*axis);
      });
}

// A reader and the index of its session, held during a request.
struct IndexedSession {
  SessionReader reader;
  std::shared_ptr<const IndexCache::Handle> cached;
  std::optional<SessionIndex> truncated{};

  const SessionIndex& index() const { return truncated ? *truncated : **cached; }

  // The cached index may cover steps after the damage; the reader ends before it. Build an
  // index that ends there, too.
  Status truncate_at_damage(const ContinueCheck& keep_going) {
    const auto end = reader.truncate_at_damage(keep_going);
    if (!end) return std::unexpected(end.error());
    if (!*end) return {};
    auto built = SessionIndex::build(reader, keep_going);
    if (!built) return std::unexpected(built.error());
    truncated = *std::move(built);
    return {};
  }
};
std::expected<IndexedSession, TraceError> open_indexed(SessionStore& sessions, IndexCache& indexes,
                                                       const std::string& id,
                                                       const ContinueCheck& keep_going) {
  auto reader = sessions.open(id);
  if (!reader) return std::unexpected(reader.error());
  auto index = indexes.get_or_build(id, sessions.tag(id), *reader, keep_going);
  if (!index) return std::unexpected(index.error());
  return IndexedSession{.reader = *std::move(reader),
                        .cached = std::make_shared<const IndexCache::Handle>(*std::move(index))};
}

// Extending an index waits for its readers, so handles are taken in the order of the ids to
// avoid deadlock. A session compared with itself uses one handle.
std::expected<std::pair<IndexedSession, IndexedSession>, TraceError> open_two_indexed(
    SessionStore& sessions, IndexCache& indexes, const std::string& left_id,
    const std::string& right_id, const ContinueCheck& keep_going) {
  if (right_id < left_id) {
    auto opened = open_two_indexed(sessions, indexes, right_id, left_id, keep_going);
    if (opened) std::swap(opened->first, opened->second);
    return opened;
  }
  auto left = open_indexed(sessions, indexes, left_id, keep_going);
  if (!left) return std::unexpected(left.error());
  if (right_id == left_id) {
    auto reader = sessions.open(right_id);
    if (!reader) return std::unexpected(reader.error());
    IndexedSession right{.reader = *std::move(reader), .cached = left->cached};
    return std::pair(*std::move(left), std::move(right));
  }
  auto right = open_indexed(sessions, indexes, right_id, keep_going);
  if (!right) return std::unexpected(right.error());
  return std::pair(*std::move(left), *std::move(right));
}

void respond_validation(SessionStore& sessions, const std::string& id, Response& response,
                        const ContinueCheck& keep_going) {
  const auto file = sessions.file(id);
  if (!file) return respond(response, problem_of(file.error()));
  const SessionStore::Lease held = sessions.lease(*file);
  const auto validation = validate(file->path, keep_going);
  if (!validation) return respond(response, problem_of(validation.error()));
  respond(response, to_json(*validation));
}

void respond_comparison(SessionStore& sessions, IndexCache& indexes, const std::string& left_id,
                        const std::string& right_id, const CompareQuery& query, Response& response,
                        const ContinueCheck& keep_going) {
  auto opened = open_two_indexed(sessions, indexes, left_id, right_id, keep_going);
  if (!opened) return respond(response, problem_of(opened.error()));
  auto& [left, right] = *opened;
  const auto compute = [&] {
    return compare({.index = left.index(), .reader = left.reader},
                   {.index = right.index(), .reader = right.reader}, query, keep_going);
  };
  auto comparison = compute();
  if (is_damaged(comparison) && left.truncate_at_damage(keep_going) &&
      right.truncate_at_damage(keep_going)) {
    comparison = compute();
    set_damage_header(response, left.reader.readable_steps().or_else(
                                    [&] { return right.reader.readable_steps(); }));
  }
  if (!comparison) return respond(response, problem_of(comparison.error()));
  respond(response, to_json(*comparison, left.index().info(), right.index().info()));
}

// The same for captured values, which need no index.
template <class Compute>
void respond_values(SessionStore& sessions, const std::string& left_id, const std::string& right_id,
                    Response& response, const ContinueCheck& keep_going, const Compute& compute) {
  auto left = sessions.open(left_id), right = sessions.open(right_id);
  if (!left || !right) return respond(response, problem_of(left ? right.error() : left.error()));
  const auto found = query_valid_prefix(
      *left,
      [&](const SessionReader&) {
        return query_valid_prefix(
            *right, [&](const SessionReader&) { return compute(*left, *right, keep_going); },
            keep_going);
      },
      keep_going);
  if (!found) return respond(response, problem_of(found.error()));
  set_damage_header(response,
                    left->readable_steps().or_else([&] { return right->readable_steps(); }));
  respond(response, *found);
}

// kDefaultTolerance when absent.
std::expected<double, Problem> tolerance_parameter(const Request& request) {
  if (!request.has_param("tolerance")) return kDefaultTolerance;
  const auto tolerance = parse_number<double>(request.get_param_value("tolerance"));
  if (tolerance && *tolerance >= 0 && *tolerance <= kMaxTolerance) return *tolerance;
  return std::unexpected(
      parameter_problem("tolerance", std::format("must be a number from 0 to {}.", kMaxTolerance)));
}

std::expected<std::uint32_t, Problem> cells_parameter(const Request& request, const char* name,
                                                      std::uint32_t default_value) {
  const auto cells = number_parameter(request, name, kMaxValuesPixels);
  if (!cells || *cells == 0U)
    return std::unexpected(parameter_problem(
        name, std::format("must be a whole number from 1 to {}.", kMaxValuesPixels)));
  return static_cast<std::uint32_t>(cells->value_or(default_value));
}

QueryQueue::Subject both(const QueryQueue::Subject& left, const QueryQueue::Subject& right) {
  QueryQueue::Subject subject{.version = {}, .small = left.small && right.small};
  if (left.version && right.version) subject.version = *left.version + "-" + *right.version;
  return subject;
}

// Without a validation, which takes as long as everything else.
void respond_findings(SessionStore& sessions, IndexCache& indexes, const std::string& id,
                      Response& response, const ContinueCheck& keep_going) {
  auto opened = open_indexed(sessions, indexes, id, keep_going);
  if (!opened) return respond(response, problem_of(opened.error()));
  const auto compute = [&] {
    return gather_session_figures(opened->index(), opened->reader, keep_going);
  };
  auto figures = compute();
  if (is_damaged(figures) && opened->truncate_at_damage(keep_going)) {
    figures = compute();
    set_damage_header(response, opened->reader.readable_steps());
  }
  if (!figures) return respond(response, problem_of(figures.error()));
  respond(response, findings_json(session_findings(*figures), session_advice(*figures),
                                  figures->info.n_experts > 0));
}

void respond_report(SessionStore& sessions, IndexCache& indexes, const std::string& id,
                    const std::optional<std::string>& other_id, const FormatName& format,
                    Response& response, const ContinueCheck& keep_going) {
  const auto file = sessions.file(id);
  if (!file) return respond(response, problem_of(file.error()));
  auto opened = open_two_indexed(sessions, indexes, id, other_id.value_or(id), keep_going);
  if (!opened) return respond(response, problem_of(opened.error()));
  auto& [session, other] = *opened;
  std::optional<ReportComparison> compared;
  const auto compute = [&]() -> std::expected<ReportData, TraceError> {
    if (other_id) {
      auto both =
          gather_report_comparison({.index = session.index(), .reader = session.reader},
                                   {.index = other.index(), .reader = other.reader}, keep_going);
      if (!both) return std::unexpected(both.error());
      compared = *std::move(both);
    }
    return gather_report_data(file->path, session.index(), session.reader, keep_going);
  };
  auto figures = compute();
  if (is_damaged(figures) && session.truncate_at_damage(keep_going) &&
      other.truncate_at_damage(keep_going)) {
    figures = compute();
    set_damage_header(response, session.reader.readable_steps().or_else(
                                    [&] { return other.reader.readable_steps(); }));
  }
  if (!figures) return respond(response, problem_of(figures.error()));
  if (format.format == ReportFormat::Html)
    response.set_header("Content-Security-Policy", html_report_policy());
  const Report report = report_of(*figures, compared ? &*compared : nullptr);
  respond(response, TextResponse{text_of(report, format.format), format.type});
}

}  // namespace

void add_report_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                       QueryQueue& queue) {
  http.Get("/api/v1/sessions/:id/validation", [&](const Request& request, Response& response) {
    const std::string& id = request.path_params.at("id");
    const QueryQueue::Subject subject = query_subject(sessions, id, Work::AllSteps);
    if (not_modified(request, response, subject.version)) return;
    queue.respond(request, response, subject,
                  [&sessions, id](Response& out, const ContinueCheck& keep_going) {
                    respond_validation(sessions, id, out, keep_going);
                  });
  });
  http.Get(
      "/api/v1/sessions/:id/comparison/:other", [&](const Request& request, Response& response) {
        ParameterReader read;
        const CompareQuery query{.by = read.take(compared_axis(request)),
                                 .phase = read.take(enum_parameter(request, "phase", Phase::Other)),
                                 .tokens = read.take(page_parameters(request, kDefaultTokens))};
        if (read.problem()) return respond(response, *read.problem());
        const std::string& left = request.path_params.at("id");
        const std::string& right = request.path_params.at("other");
        const auto subject = both(query_subject(sessions, left, Work::AllSteps),
                                  query_subject(sessions, right, Work::AllSteps));
        if (not_modified(request, response, subject.version)) return;
        queue.respond(request, response, subject,
                      [&, left, right, query](Response& out, const ContinueCheck& keep_going) {
                        respond_comparison(sessions, indexes, left, right, query, out, keep_going);
                      });
      });
  // `read_query(read, request)` makes the function that computes the answer from both sessions.
  const auto add_values = [&](const char* path, auto read_query, Work work) {
    http.Get(path, [&, read_query, work](const Request& request, Response& response) {
      ParameterReader read;
      auto compute = read_query(read, request);
      if (read.problem()) return respond(response, *read.problem());
      const std::string& left = request.path_params.at("id");
      const std::string& right = request.path_params.at("other");
      const auto subject =
          both(query_subject(sessions, left, work), query_subject(sessions, right, work));
      if (not_modified(request, response, subject.version)) return;
      queue.respond(request, response, subject,
                    [&, left, right, compute = std::move(compute)](
                        Response& out, const ContinueCheck& keep_going) {
                      respond_values(sessions, left, right, out, keep_going, compute);
                    });
    });
  };
  add_values(
      "/api/v1/sessions/:id/comparison/:other/values",
      [](ParameterReader& read, const Request& request) {
        const ValuesQuery query{.tolerance = read.take(tolerance_parameter(request)),
                                .page = read.take(page_parameters(request, kDefaultRows))};
        return [=](const SessionReader& left, const SessionReader& right,
                   const ContinueCheck& keep_going) {
          return compare_values(left, right, query, keep_going).transform([](const auto& found) {
            return to_json(found);
          });
        };
      },
      Work::AllSteps);
  add_values(
      "/api/v1/sessions/:id/comparison/:other/values/picture",
      [](ParameterReader& read, const Request& request) {
        const auto number = [&](const char* name) {
          const auto found = read.take(number_parameter(request, name, kMaxId));
          if (!found)
            read.take(std::expected<int, Problem>(
                std::unexpected(parameter_problem(name, "is needed: a whole number."))));
          return static_cast<std::uint32_t>(found.value_or(0));
        };
        const ValuesPictureQuery query{
            .step = StepId{number("step")},
            .op = OpId{number("op")},
            .tensor = read.take(text_parameter(request, "tensor")),
            .width = read.take(cells_parameter(request, "width", kDefaultValuesWidth)),
            .height = read.take(cells_parameter(request, "height", kDefaultValuesHeight))};
        return [=](const SessionReader& left, const SessionReader& right, const ContinueCheck&) {
          return values_picture(left, right, query).transform([](const auto& found) {
            return to_json(found);
          });
        };
      },
      Work::Small);
  http.Get("/api/v1/sessions/:id/findings", [&](const Request& request, Response& response) {
    const std::string& id = request.path_params.at("id");
    const QueryQueue::Subject subject = query_subject(sessions, id, Work::AllSteps);
    if (not_modified(request, response, subject.version)) return;
    queue.respond(request, response, subject,
                  [&sessions, &indexes, id](Response& out, const ContinueCheck& keep_going) {
                    respond_findings(sessions, indexes, id, out, keep_going);
                  });
  });
  http.Get("/api/v1/sessions/:id/report", [&](const Request& request, Response& response) {
    const auto format = format_of(request);
    if (!format) return respond(response, format.error());
    const std::string& id = request.path_params.at("id");
    std::optional<std::string> other;
    if (request.has_param("compare")) other = request.get_param_value("compare");
    if (other && other->size() > 200) {
      return respond(response,
                     Problem{ErrorCode::BadRequest, "compare: an id has at most 200 characters."});
    }
    QueryQueue::Subject subject = query_subject(sessions, id, Work::AllSteps);
    if (other) subject = both(subject, query_subject(sessions, *other, Work::AllSteps));
    if (not_modified(request, response, subject.version)) return;
    queue.respond(request, response, subject,
                  [&, id, other, format](Response& out, const ContinueCheck& keep_going) {
                    respond_report(sessions, indexes, id, other, *format, out, keep_going);
                  });
  });
}

}  // namespace tt
