#include "api/report/report_text.h"

#include <algorithm>
#include <string_view>

#include "api/report/svg_chart.h"
#include "api/text/cause_text.h"
#include "api/text/change_text.h"
#include "api/text/finding_text.h"
#include "templates.h"
#include "tracer/text/jinja/jinja_engine.h"

namespace tt {

namespace {

// The data for the templates and for --json.
Json to_json(const Report& report, ReportFormat format) {
  // A "|" would end the cell of a Markdown table, a newline the row.
  const auto cell_text = [&](std::string text) {
    std::ranges::replace(text, '\n', ' ');
    if (format != ReportFormat::Markdown) return text;
    std::string safe;
    for (const char c : text) {
      if (c == '|' || c == '*' || c == '_' || c == '`' || c == '<') safe += '\\';
      safe += c;
    }
    return safe;
  };
  Json sections = Json::array();
  for (const ReportSection& section : report.sections) {
    Json charts = Json::array(), columns = Json::array(), rows = Json::array();
    if (format == ReportFormat::Html)
      for (const Chart& chart : section.charts) charts.push_back(svg_of(chart));
    for (const ReportColumn& column : section.columns)
      columns.push_back({{"name", column.name}, {"right", column.right}});
    for (const auto& row : section.rows) {
      Json cells = Json::array();
      for (const std::string& cell : row) cells.push_back(cell_text(cell));
      rows.push_back(std::move(cells));
    }
    Json section_json = {{"title", section.title},
                         {"text", section.text},
                         {"charts", std::move(charts)},
                         {"columns", std::move(columns)},
                         {"rows", std::move(rows)}};
    if (format != ReportFormat::Html) section_json.erase("charts");
    sections.push_back(std::move(section_json));
  }
  Json advice = Json::array();
  for (const Advice& one : report.advice) {
    const AdviceText words = advice_text(one);
    advice.push_back({{"advice", words.advice}, {"because", words.because}});
  }
  Json findings = Json::array();
  for (const Finding& one : report.findings) findings.push_back(finding_text(one));
  Json compared = nullptr;
  if (report.compared) {
    const Comparison& comparison = report.compared->comparison;
    Json causes = Json::array();
    for (const DifferenceCause& cause : comparison.causes)
      causes.push_back(cell_text(cause_line(cause)));
    if (causes.empty()) causes.push_back(kNoCause);
    compared = {{"with", cell_text(report.compared->with)},
                {"change", what_changed(comparison)},
                {"causes", std::move(causes)}};
  }
  return {{"title", cell_text(report.title)}, {"subtitle", cell_text(report.subtitle)},
          {"compared", std::move(compared)},  {"findings", std::move(findings)},
          {"advice", std::move(advice)},      {"sections", std::move(sections)}};
}

}  // namespace

std::string text_of(const Report& report, ReportFormat format) {
  const Json data = to_json(report, format);
  if (format == ReportFormat::JsonText) return tt::text_of(data);
  const char* page = format == ReportFormat::Html ? kHtmlTemplate : kMarkdownTemplate;
  return JinjaEngine().call("fill", tt::text_of({{"template", page}, {"variables", data}}));
}

std::string html_report_policy() {
  constexpr std::string_view page = kHtmlTemplate;
  constexpr std::string_view begin = R"("Content-Security-Policy" content=")";
  constexpr std::size_t from = page.find(begin) + begin.size();
  static_assert(page.contains(begin));
  return std::string(page.substr(from, page.find('"', from) - from));
}

}  // namespace tt
