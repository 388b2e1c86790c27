// Whole-session results: validation of a recording, comparison of two sessions, report.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/report/comparison.h"
#include "analysis/report/report.h"
#include "analysis/report/validation.h"
#include "api/json/comparison_json.h"
#include "api/json/validation_json.h"
#include "api/report/report_text.h"
#include "server/http/session_question.h"
#include "server/routes/routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr std::uint64_t kUsualTokens = 1000;
// A report has no scripts and only inline styles.
constexpr const char* kReportPolicy = "default-src 'none'; style-src 'unsafe-inline'";

struct FormatWord {
  std::string_view word;
  ReportFormat format;
  const char* type;
};
constexpr std::array kFormats = {
    FormatWord{"html", ReportFormat::Html, "text/html; charset=utf-8"},
    FormatWord{"md", ReportFormat::Markdown, "text/markdown; charset=utf-8"},
    FormatWord{"json", ReportFormat::JsonText, "application/json"}};

std::expected<FormatWord, Problem> format_of(const Request& request) {
  static constexpr std::array<std::string_view, 3> kWords = {kFormats[0].word, kFormats[1].word,
                                                             kFormats[2].word};
  return word_parameter(request, "format", kWords, kWords[0])
      .transform([](const std::string& word) {
        return *std::ranges::find(kFormats, word, &FormatWord::word);
      });
}

// A reader and the index of its session, held during a request.
struct Lent {
  SessionReader reader;
  std::shared_ptr<const IndexShelf::Lease> shelved;
  std::optional<SessionIndex> before_damage{};

  const SessionIndex& index() const { return before_damage ? *before_damage : **shelved; }

  // The cached index may cover steps after the damage; the reader ends before it. Build an
  // index that ends there, too.
  std::expected<void, TraceError> end_at_damage(const KeepGoing& keep_going) {
    const auto end = reader.end_at_damage(keep_going);
    if (!end) return std::unexpected(end.error());
    if (!*end) return {};
    auto built = SessionIndex::build(reader, keep_going);
    if (!built) return std::unexpected(built.error());
    before_damage = *std::move(built);
    return {};
  }
};
std::expected<Lent, TraceError> open_indexed(SessionStore& sessions, IndexShelf& indexes,
                                             const std::string& id, const KeepGoing& keep_going) {
  auto reader = sessions.open(id);
  if (!reader) return std::unexpected(reader.error());
  auto index = indexes.lend(id, sessions.tag(id), *reader, keep_going);
  if (!index) return std::unexpected(index.error());
  return Lent{.reader = *std::move(reader),
              .shelved = std::make_shared<const IndexShelf::Lease>(*std::move(index))};
}

// Extending an index waits for its readers, so handles are taken in the order of the ids to
// avoid deadlock. A session compared with itself uses one handle.
std::expected<std::pair<Lent, Lent>, TraceError> open_two_indexed(SessionStore& sessions,
                                                                  IndexShelf& indexes,
                                                                  const std::string& left_id,
                                                                  const std::string& right_id,
                                                                  const KeepGoing& keep_going) {
  if (right_id < left_id) {
    auto lent = open_two_indexed(sessions, indexes, right_id, left_id, keep_going);
    if (lent) std::swap(lent->first, lent->second);
    return lent;
  }
  auto left = open_indexed(sessions, indexes, left_id, keep_going);
  if (!left) return std::unexpected(left.error());
  if (right_id == left_id) {
    auto reader = sessions.open(right_id);
    if (!reader) return std::unexpected(reader.error());
    Lent right{.reader = *std::move(reader), .shelved = left->shelved};
    return std::pair(*std::move(left), std::move(right));
  }
  auto right = open_indexed(sessions, indexes, right_id, keep_going);
  if (!right) return std::unexpected(right.error());
  return std::pair(*std::move(left), *std::move(right));
}

void answer_validation(SessionStore& sessions, const Request& request, Response& response) {
  const std::string& id = request.path_params.at("id");
  if (unchanged(request, response, sessions.tag(id))) return;
  const auto file = sessions.file(id);
  if (!file) return answer(response, problem_of(file.error()));
  const auto validation = validate(file->path, while_connected(request));
  if (!validation) return answer(response, problem_of(validation.error()));
  answer(response, to_json(*validation));
}

void answer_comparison(SessionStore& sessions, IndexShelf& indexes, const Request& request,
                       Response& response) {
  ParameterReader read;
  const PageRange tokens = read.take(page_parameters(request, kUsualTokens));
  if (read.problem()) return answer(response, *read.problem());
  const std::string &left_id = request.path_params.at("id"),
                    &right_id = request.path_params.at("other");
  const auto left_tag = sessions.tag(left_id), right_tag = sessions.tag(right_id);
  std::optional<std::string> tag;
  if (left_tag && right_tag) tag = *left_tag + "-" + *right_tag;
  if (unchanged(request, response, tag)) return;
  const KeepGoing keep_going = while_connected(request);
  auto lent = open_two_indexed(sessions, indexes, left_id, right_id, keep_going);
  if (!lent) return answer(response, problem_of(lent.error()));
  auto& [left, right] = *lent;
  const auto ask = [&] {
    return compare({.index = left.index(), .reader = left.reader},
                   {.index = right.index(), .reader = right.reader}, tokens, keep_going);
  };
  auto comparison = ask();
  if (is_damaged(comparison) && left.end_at_damage(keep_going) && right.end_at_damage(keep_going)) {
    comparison = ask();
    tell_damage(response,
                left.reader.whole_steps().or_else([&] { return right.reader.whole_steps(); }));
  }
  if (!comparison) return answer(response, problem_of(comparison.error()));
  answer(response, to_json(*comparison, left.index().info(), right.index().info()));
}

void answer_report(SessionStore& sessions, IndexShelf& indexes, const Request& request,
                   Response& response) {
  const auto format = format_of(request);
  if (!format) return answer(response, format.error());
  const std::string& id = request.path_params.at("id");
  if (unchanged(request, response, sessions.tag(id))) return;
  const auto file = sessions.file(id);
  if (!file) return answer(response, problem_of(file.error()));
  const KeepGoing keep_going = while_connected(request);
  auto lent = open_indexed(sessions, indexes, id, keep_going);
  if (!lent) return answer(response, problem_of(lent.error()));
  const auto ask = [&] {
    return report_figures(file->path, lent->index(), lent->reader, keep_going);
  };
  auto figures = ask();
  if (is_damaged(figures) && lent->end_at_damage(keep_going)) {
    figures = ask();
    tell_damage(response, lent->reader.whole_steps());
  }
  if (!figures) return answer(response, problem_of(figures.error()));
  if (format->format == ReportFormat::Html)
    response.set_header("Content-Security-Policy", kReportPolicy);
  answer(response, TextAnswer{text_of(report_of(*figures), format->format), format->type});
}

}  // namespace

void add_report_routes(httplib::Server& http, SessionStore& sessions, IndexShelf& indexes) {
  http.Get("/api/v1/sessions/:id/validation", [&](const Request& request, Response& response) {
    answer_validation(sessions, request, response);
  });
  http.Get("/api/v1/sessions/:id/comparison/:other",
           [&](const Request& request, Response& response) {
             answer_comparison(sessions, indexes, request, response);
           });
  http.Get("/api/v1/sessions/:id/report", [&](const Request& request, Response& response) {
    answer_report(sessions, indexes, request, response);
  });
}

}  // namespace tt
