#include "api/json/analysis/findings_json.h"

#include <cstdint>
#include <format>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "api/text/finding_text.h"

namespace tt {

namespace {

Json figures_json(const Figures& figures) {
  Json all = Json::array();
  for (const Figure& figure : figures.all()) {
    Json value = std::visit([](const auto& of) { return Json(of); }, figure.value);
    all.push_back(
        {{"name", figure.name}, {"value", std::move(value)}, {"unit", to_text(figure.unit)}});
  }
  return all;
}

Json evidence_json(const Evidence& evidence, const Figures& figures) {
  const std::optional<double> step = figures.number("step");
  std::string rest = evidence.rest;
  constexpr std::string_view kStep = "{step}";
  if (const auto at = rest.find(kStep); at != std::string::npos)
    rest.replace(at, kStep.size(), std::format("{}", step.value_or(0)));
  const auto or_null = [](std::string_view text) { return text.empty() ? Json() : Json(text); };
  return {{"view", to_text(evidence.view)},
          {"shows", evidence.shows},
          {"rows", or_null(evidence.rows)},
          {"across", or_null(evidence.across)},
          {"value", or_null(evidence.value)},
          {"filter", evidence.filter},
          {"generated", evidence.generated},
          {"undisturbed", evidence.undisturbed},
          {"step", step ? Json(static_cast<std::uint64_t>(*step)) : Json()},
          {"rest", rest},
          {"sql", evidence.sql}};
}

}  // namespace

Json findings_json(std::span<const Finding> findings, std::span<const Advice> advice,
                   bool has_experts) {
  Json headline = Json::array(), all = Json::array(), advised = Json::array();
  for (const HeadlineFigure& figure : headline_of(findings))
    headline.push_back(
        {{"name", figure.name}, {"value", figure.value}, {"topic", to_text(figure.topic)}});
  for (const Finding& finding : findings) {
    const FindingBasis& basis = finding.basis;
    all.push_back(
        {{"topic", to_text(finding.topic)},
         {"kind", to_text(finding.kind)},
         {"role", to_text(finding.role)},
         {"text", finding_text(finding)},
         {"figures", figures_json(finding.figures)},
         {"basis",
          {{"phase", basis.phase ? Json(to_text(*basis.phase)) : Json()},
           {"steps", basis.steps},
           {"clean_only", basis.clean_only}}},
         {"evidence", evidence_json(evidence_of(finding.topic, has_experts), finding.figures)}});
  }
  for (const Advice& one : advice) {
    AdviceText words = advice_text(one);
    advised.push_back(
        {{"kind", to_text(one.kind)},
         {"text", std::move(words.advice)},
         {"because", std::move(words.because)},
         {"figures", figures_json(one.figures)},
         {"estimated_gain", one.estimated_gain ? Json(*one.estimated_gain) : Json()}});
  }
  return {{"headline", std::move(headline)},
          {"findings", std::move(all)},
          {"advice", std::move(advised)}};
}

}  // namespace tt
