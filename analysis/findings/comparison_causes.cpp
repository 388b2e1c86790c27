#include "analysis/findings/comparison_causes.h"

#include <array>
#include <format>
#include <string>
#include <string_view>
#include <utility>

namespace tt {

namespace {

using Facts = FactsByName;

// The facts "GROUP.*", without those that change from session to session.
Facts facts_of(const SessionInfo& info, std::string_view group) {
  Facts facts;
  for (const auto& [name, value] : info.facts)
    if (name.starts_with(group)) facts[name] = value;
  facts.erase("host.memory_available_bytes");
  facts.erase("host.read_bandwidth");  // measured or not
  facts.erase("host.read_bandwidth_threads");
  facts.erase("host.compute_peak");
  facts.erase("host.compute_peak_threads");
  facts.erase("host.no_read_bandwidth");
  facts.erase("host.no_compute_peak");
  std::erase_if(facts,
                [](const auto& fact) { return fact.first.starts_with("request.breakpoints."); });
  // The most likely token needs no chance.
  if (info.fact("request.temperature") == "0") facts.erase("request.seed");
  return facts;
}

Facts model_facts(const SessionInfo& info) {
  Facts facts;
  if (const auto description = info.fact("model.description"); !description.empty())
    facts["model.description"] = description;
  if (info.model_files.empty()) return facts;
  const std::string& path = info.model_files.front().path;
  facts["model.file"] = path.substr(path.rfind('/') + 1);
  std::uint64_t bytes = 0;
  for (const ModelFile& file : info.model_files) bytes += file.size;
  facts["model.bytes"] = std::to_string(bytes);
  return facts;
}

Facts recording_facts(const SessionInfo& info) {
  return {{"record.level", to_text(info.level)},
          {"record.timing", info.exact_timing ? "exact" : "fast"}};
}

Facts reuse_facts(const SessionInfo& info) {
  const auto reused = info.fact_number("result.reused_tokens").value_or(0);
  Facts facts = {{"result.reused_tokens", std::to_string(reused)}};
  for (const char* name : {"result.prompt_tokens", "result.reused_from"})
    if (const auto value = info.fact(name); !value.empty()) facts[name] = value;
  return facts;
}

Facts graph_facts(const SessionConditions& conditions) {
  std::uint32_t learned = 0;
  for (const auto& [phase, times] : conditions.phases) learned += times.learned;
  return {{"steps.new_graph", std::to_string(learned)}};
}

Facts disturbance(const SessionConditions& conditions) {
  if (!conditions.verdict || *conditions.verdict == Verdict::Clean) return {};
  return {{"machine", conditions.text}};
}

}  // namespace

const char* to_text(DifferenceKind kind) {
  constexpr std::array kWords = {"altered", "model",      "settings",  "recording", "request",
                                 "reuse",   "new_graphs", "disturbed", "machine",   "library"};
  return kWords[std::to_underlying(kind)];
}

std::vector<DifferenceCause> causes_of(const CauseSide& left, const CauseSide& right) {
  std::vector<DifferenceCause> causes;
  const auto add = [&](DifferenceKind kind, const Facts& of_left, const Facts& of_right) {
    if (auto facts = differing_facts(of_left, of_right); !facts.empty())
      causes.push_back({.kind = kind, .facts = std::move(facts)});
  };
  const auto add_group = [&](DifferenceKind kind, std::string_view group) {
    add(kind, facts_of(left.info, group), facts_of(right.info, group));
  };
  add_group(DifferenceKind::Altered, "altered.");
  add(DifferenceKind::Model, model_facts(left.info), model_facts(right.info));
  add_group(DifferenceKind::Settings, "context.");
  add(DifferenceKind::Recording, recording_facts(left.info), recording_facts(right.info));
  add_group(DifferenceKind::Request, "request.");
  if (left.info.fact_number("result.reused_tokens").value_or(0) !=
      right.info.fact_number("result.reused_tokens").value_or(0))
    add(DifferenceKind::Reuse, reuse_facts(left.info), reuse_facts(right.info));
  add(DifferenceKind::NewGraphs, graph_facts(left.conditions), graph_facts(right.conditions));
  add(DifferenceKind::Disturbed, disturbance(left.conditions), disturbance(right.conditions));
  add_group(DifferenceKind::Machine, "host.");
  add_group(DifferenceKind::Library, "library.");
  return causes;
}

}  // namespace tt
