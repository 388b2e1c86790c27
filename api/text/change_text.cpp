#include "api/text/change_text.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <vector>

#include "analysis/common/format_units.h"
#include "api/text/finding_text.h"
#include "api/text/listed.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

std::string percent(double ratio) { return std::format("{:+.1f} %", 100 * (ratio - 1)); }

std::string duration(Ns time) { return format_duration(static_cast<double>(time.v)); }

const char* token_of(Phase phase) {
  return phase == Phase::Generate ? "generated token" : "prompt token";
}

std::string source_name(Source source, const ModelMemory& memory) {
  switch (source) {
    case Source::Disk:
      return "mapped file";
    case Source::Repacked:
      return "repacked weights";
    case Source::Kv:
      return memory.recurrent.v == 0 ? "KV cache"
             : memory.kv.v == 0      ? "recurrent state"
                                     : "KV cache and recurrent state";
    case Source::Compute:
      return "intermediate results";
    case Source::Input:
      return "inputs";
    case Source::Device:
      return "memory of a device";
    case Source::Buffer:
      return "other memory";
  }
  return "";
}

// ": KV cache 216 KiB and 768 KiB (the largest difference), intermediate results 203 KiB and 301
// KiB". Empty: no source differs.
std::string sources_text(const Comparison& comparison) {
  std::vector<std::string> parts;
  for (const ComparedSource& row : comparison.sources) {
    const std::string left = format_bytes(row.left), right = format_bytes(row.right);
    if (left != right)
      parts.push_back(std::format("{} {} and {}{}", source_name(row.source, comparison.left_memory),
                                  left, right, parts.empty() ? " (the largest difference)" : ""));
  }
  return parts.empty() ? "" : ": " + join(parts);
}

// Empty: the recordings have no accesses.
std::string bytes_text(const Comparison& comparison) {
  const auto& [phase, before, after, time] = *comparison.change;
  if (before.bytes_read == 0 && after.bytes_read == 0) return "";
  const std::string left = format_bytes(before.bytes_read), right = format_bytes(after.bytes_read);
  const char* token = token_of(phase);
  return left == right ? std::format(" A {} reads {} in both.", token, left)
                       : std::format(" A {} reads {} in the first and {} in the second{}.", token,
                                     left, right, sources_text(comparison));
}

// " The first session needs 815 MiB of RAM and the second 1.00 GiB: compute buffers 90.5 MiB and
// 289 MiB." Empty: not known of both.
std::string memory_text(const ModelMemory& left, const ModelMemory& right) {
  if (left.is_empty() || right.is_empty()) return "";
  const auto size = [](Bytes bytes) { return format_bytes(static_cast<double>(bytes.v)); };
  const char* least = left.compute && right.compute ? "" : "at least ";
  if (left.enough() == right.enough())
    return std::format(" Both need {}{} of RAM.", least, size(left.enough()));
  std::vector<std::string> parts;
  const auto add = [&](const char* name, Bytes of_left, Bytes of_right) {
    if (of_left != of_right)
      parts.push_back(std::format("{} {} and {}", name, size(of_left), size(of_right)));
  };
  add("weights in the file", left.file, right.file);
  add("repacked weights", left.repacked, right.repacked);
  add("KV cache", left.kv, right.kv);
  add("recurrent state", left.recurrent, right.recurrent);
  add("compute buffers", left.compute_buffers(), right.compute_buffers());
  return std::format(" The first session needs {}{} of RAM and the second {}: {}.", least,
                     size(left.enough()), size(right.enough()), join(parts));
}

std::string time_text(const TokenChange& change) {
  const auto& [phase, left, right, time] = change;
  const char* token = token_of(phase);
  if (!change.has_enough_steps()) {
    const std::string why = std::format(
        "Too few undisturbed steps to compare the times of a {}: {} and {}, and {} are needed in "
        "each session",
        token, left.steps, right.steps, kLeastSamples);
    if (left.steps == 0 || right.steps == 0) return why;
    return std::format("{}. Their medians, not comparable: {} and {}", why, duration(left.median),
                       duration(right.median));
  }
  const std::string evidence = std::format(
      "{:.0f} % interval of the change: {} to {}; medians of {} and {} undisturbed steps",
      100 * kConfidence, percent(*time.low), percent(*time.high), left.steps, right.steps);
  const std::string times = std::format("A {} takes {} in the first session and {} in the second",
                                        token, duration(left.median), duration(right.median));
  if (time.verdict == SpeedVerdict::Equal)
    return std::format("{}: no significant difference ({})", times, evidence);
  return std::format(
      "{}: {:.1f} % {} ({}). That is more than the steps of one session differ, but another load "
      "of "
      "the machine may be the cause",
      times, 100 * std::abs(time.ratio - 1), time.verdict == SpeedVerdict::Slower ? "more" : "less",
      evidence);
}

// " Whole runs: 4.4 tokens/s and 3.2 tokens/s without the prompt, 1.20 s and 2.30 s to the first
// token." Empty: not known of both.
std::string speeds_text(const Comparison& comparison) {
  const auto &left = comparison.left_speed, &right = comparison.right_speed;
  std::vector<std::string> parts;
  if (left.per_second() && right.per_second())
    parts.push_back(std::format("{} and {} without the prompt", speed_text(*left.per_second()),
                                speed_text(*right.per_second())));
  if (left.first_token_ns && right.first_token_ns)
    parts.push_back(std::format("{} and {} to the first token", duration(Ns{*left.first_token_ns}),
                                duration(Ns{*right.first_token_ns})));
  if (parts.empty()) return "";
  const bool comparable = comparison.change && comparison.change->has_enough_steps();
  return std::format(" Whole runs, with all their steps: {}{}.", join(parts),
                     comparable ? "" : ", not comparable for the same reason");
}

}  // namespace

std::string chosen_text(const Comparison& comparison) {
  if (!comparison.chosen) return "";
  const auto& [tokens, first, largest, other] = *comparison.chosen;
  const auto percent = [](double share) { return std::format("{:.3g} %", 100 * share); };
  const auto same = [&](const ChosenChange::At& at) {
    return std::format("token {} “{}”: {} and {}", at.token, at.left.text,
                       percent(at.left.probability), percent(at.right.probability));
  };
  std::string text =
      std::format("Probabilities of {} that both sessions chose after the same text: ",
                  counted(tokens, "token"));
  if (!first)
    text += "no difference";
  else if (first->token == largest->token)
    text += std::format("the first and largest difference at {}", same(*first));
  else
    text +=
        std::format("the first difference at {}; the largest at {}", same(*first), same(*largest));
  text += ".";
  if (other)
    text += std::format(" At token {} they chose “{}” ({}) and “{}” ({}).", other->token,
                        other->left.text, percent(other->left.probability), other->right.text,
                        percent(other->right.probability));
  return text;
}

std::string tokens_text(const Comparison& comparison) {
  const TokenAlignment& tokens = comparison.tokens;
  if (tokens.common == tokens.left && tokens.common == tokens.right) {
    const bool is_altered =
        std::ranges::contains(comparison.causes, DifferenceKind::Altered, &DifferenceCause::kind);
    return is_altered ? "The change at the breakpoint did not change the text."
                      : std::format("The same {}.", counted(tokens.common, "token"));
  }
  return tokens.common == std::min(tokens.left, tokens.right)
             ? std::format("No token differs: one session ended after {}.",
                           counted(tokens.common, "token"))
             : std::format("The first token that differs is token {}.", tokens.common);
}

std::string graphs_text(const Comparison& comparison) {
  const auto only = [&](TemplateMatch match) {
    return static_cast<std::uint64_t>(
        std::ranges::count(comparison.templates, match, &ComparedTemplate::match));
  };
  const auto left = only(TemplateMatch::OnlyLeft), right = only(TemplateMatch::OnlyRight);
  if (left + right == 0) return "Both sessions run the same ops.";
  std::vector<std::string> graphs;
  for (const auto& [count, session] : {std::pair{left, "first"}, std::pair{right, "second"}})
    if (count > 0) graphs.push_back(std::format("{} of the {}", counted(count, "graph"), session));
  const auto is_cause = [&](DifferenceKind kind) {
    return std::ranges::contains(comparison.causes, kind, &DifferenceCause::kind);
  };
  const bool model = is_cause(DifferenceKind::Model), settings = is_cause(DifferenceKind::Settings);
  return std::format(
      "Ops that only one session runs: in {}. {}", listed(graphs),
      model && settings ? "Their models and settings differ."
      : model           ? "Their models differ."
      : settings        ? "Their settings differ."
                 : "A prompt that is evaluated in other parts, or reused, has other graphs.");
}

std::string what_changed(const Comparison& comparison) {
  const std::string memory = memory_text(comparison.left_memory, comparison.right_memory);
  if (!comparison.change) return "The sessions have no phase with tokens in common." + memory;
  return std::format("{}.{}{}{}", time_text(*comparison.change), speeds_text(comparison),
                     bytes_text(comparison), memory);
}

}  // namespace tt
