#include "analysis/report/comparison_causes.h"

#include <algorithm>
#include <format>
#include <map>
#include <string_view>

#include "tracer/text/join.h"

namespace tt {

namespace {

// Facts by name, without those that change from session to session or are results.
std::map<std::string_view, std::string_view> facts_of(const SessionInfo& info) {
  std::map<std::string_view, std::string_view> facts;
  for (const auto& [name, value] : info.facts) facts[name] = value;
  facts.erase("host.memory_available_bytes");
  // The most likely token needs no chance.
  if (info.fact("request.temperature") == "0") facts.erase("request.seed");
  return facts;
}

// The text of a value in a sentence; prompts and lists of tokens are long.
std::string value_text(std::string_view value) {
  constexpr std::size_t kLongest = 32;
  if (value.empty()) return "none";
  if (value.size() > kLongest || value.contains('\n')) return "...";
  return std::string(value);
}

// "threads 2 and 4, repack on and off": the facts "GROUP.*" that differ.
std::string differing(const SessionInfo& left, const SessionInfo& right, std::string_view group) {
  constexpr std::size_t kNames = 6;
  const auto of_left = facts_of(left), of_right = facts_of(right);
  std::map<std::string_view, std::pair<std::string_view, std::string_view>> both;
  for (const auto& [name, value] : of_left)
    if (name.starts_with(group)) both[name].first = value;
  for (const auto& [name, value] : of_right)
    if (name.starts_with(group)) both[name].second = value;
  std::vector<std::string> out;
  std::size_t more = 0;
  for (const auto& [name, values] : both) {
    if (values.first == values.second) continue;
    if (out.size() == kNames) {
      ++more;
      continue;
    }
    const std::string a = value_text(values.first), b = value_text(values.second);
    const std::string_view short_name = name.substr(group.size());
    out.push_back(a == "..." || b == "..." ? std::string(short_name)
                                           : std::format("{} {} and {}", short_name, a, b));
  }
  if (more > 0) out.push_back(std::format("{} more", more));
  return join(out);
}

std::string model_of(const SessionInfo& info) {
  const std::string_view name = info.fact("model.description");
  std::string file;
  if (!info.model_files.empty()) {
    const std::string& path = info.model_files.front().path;
    file = path.substr(path.rfind('/') + 1);
  }
  return name.empty() ? file : std::format("{} ({})", file, name);
}

void name_models(const SessionInfo& left, const SessionInfo& right, std::vector<std::string>& out) {
  const auto sizes = [](const SessionInfo& info) {
    std::uint64_t sum = 0;
    for (const ModelFile& file : info.model_files) sum += file.size;
    return sum;
  };
  const std::string a = model_of(left), b = model_of(right);
  if (a == b && sizes(left) == sizes(right)) return;
  out.push_back(a == b ? std::format("Other model: two files {} of different sizes.", a)
                       : std::format("Other model: {} and {}.", a, b));
}

void name_group(const CauseSide& left, const CauseSide& right, std::string_view what,
                std::string_view group, std::vector<std::string>& out) {
  if (const std::string facts = differing(left.info, right.info, group); !facts.empty())
    out.push_back(std::format("{}: {}.", what, facts));
}

void name_recording(const SessionInfo& left, const SessionInfo& right,
                    std::vector<std::string>& out) {
  if (left.level != right.level) {
    out.push_back(std::format("Other recording level: {} and {}.", to_text(left.level),
                              to_text(right.level)));
  }
  if (left.exact_timing != right.exact_timing) {
    out.push_back(std::format("Exact timing in the {} session only: it makes every op slower.",
                              left.exact_timing ? "left" : "right"));
  }
}

std::string reuse_text(const SessionInfo& info, std::string_view side) {
  const auto reused = info.fact_number("result.reused_tokens").value_or(0);
  if (reused == 0) return std::format("the {} session reused none", side);
  const std::string_view from = info.fact("result.reused_from");
  return std::format("the {} session reused {} of its {} prompt tokens{}", side, reused,
                     info.fact_number("result.prompt_tokens").value_or(reused),
                     from.empty() ? "" : std::format(" from session {}", from));
}

void name_reuse(const SessionInfo& left, const SessionInfo& right, std::vector<std::string>& out) {
  const auto reused = [](const SessionInfo& info) {
    return info.fact_number("result.reused_tokens").value_or(0);
  };
  if (reused(left) == reused(right)) return;
  out.push_back(std::format("Reused prefix: {}, {}. Reused tokens are not evaluated.",
                            reuse_text(left, "left"), reuse_text(right, "right")));
}

void name_learned(const SessionConditions& left, const SessionConditions& right,
                  std::vector<std::string>& out) {
  const auto learned = [](const SessionConditions& of) {
    std::uint32_t sum = 0;
    for (const auto& [phase, times] : of.phases) sum += times.learned;
    return sum;
  };
  const std::uint32_t a = learned(left), b = learned(right);
  if (a == b) return;
  out.push_back(
      std::format("New graphs: {} step{} on the left and {} on the right had a graph for "
                  "the first time, which the recording slows down.",
                  a, a == 1 ? "" : "s", b));
}

void name_machine(const CauseSide& side, std::string_view name, std::vector<std::string>& out) {
  if (!side.conditions.verdict || *side.conditions.verdict == Verdict::Clean) return;
  out.push_back(std::format("The machine held up the {} session: {}", name, side.conditions.text));
}

}  // namespace

std::vector<std::string> causes_of(const CauseSide& left, const CauseSide& right) {
  std::vector<std::string> causes;
  name_models(left.info, right.info, causes);
  name_group(left, right, "Other settings", "context.", causes);
  name_recording(left.info, right.info, causes);
  name_group(left, right, "Other request", "request.", causes);
  name_reuse(left.info, right.info, causes);
  name_learned(left.conditions, right.conditions, causes);
  name_machine(left, "left", causes);
  name_machine(right, "right", causes);
  name_group(left, right, "Other machine", "host.", causes);
  name_group(left, right, "Other version of llama.cpp", "library.", causes);
  return causes;
}

}  // namespace tt
