#include "tracer/request/sampling.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <format>
#include <limits>
#include <optional>
#include <ranges>
#include <string_view>

#include "tracer/text/join.h"
#include "tracer/text/parse_number.h"

namespace tt {

std::string_view to_text(SamplerKind kind) {
  return std::ranges::find(kSamplerNames, kind, &SamplerName::kind)->name;
}

std::string samplers_text(const std::vector<SamplerKind>& samplers) {
  std::string all;
  for (const SamplerKind kind : samplers) {
    if (!all.empty()) all += ';';
    all += to_text(kind);
  }
  return all;
}

std::expected<SamplerKind, std::string> parse_sampler(std::string_view name) {
  std::string word;  // without the separators, which llama.cpp has in three forms
  for (const char c : name) {
    if (c != '_' && c != '-')
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (word == "temp") return SamplerKind::Temperature;
  if (word == "nucleus") return SamplerKind::TopP;
  if (word == "typ") return SamplerKind::TypicalP;
  for (const SamplerName& each : kSamplerNames) {
    std::string own(each.name);
    std::erase(own, '_');
    if (own == word) return each.kind;
  }
  return std::unexpected(std::format("unknown sampler \"{}\"; known: {}", name.substr(0, 40),
                                     join(kSamplerNames, &SamplerName::name)));
}

std::expected<std::vector<SamplerKind>, std::string> parse_samplers(std::string_view list) {
  std::vector<SamplerKind> samplers;
  for (const auto part : std::views::split(list, ';')) {
    const auto kind = parse_sampler(std::string_view(part));
    if (!kind) return std::unexpected(kind.error());
    if (samplers.size() == kMaxSamplers)
      return std::unexpected(std::format("more than {} samplers", kMaxSamplers));
    samplers.push_back(*kind);
  }
  return samplers;
}

std::expected<std::vector<SamplerKind>, std::string> parse_sampler_letters(std::string_view word) {
  std::vector<SamplerKind> samplers;
  for (const char letter : word) {
    const auto* const known = std::ranges::find(kSamplerNames, letter, &SamplerName::letter);
    if (known == kSamplerNames.end() || samplers.size() == kMaxSamplers) {
      return std::unexpected(std::format("must have at most {} of these letters: {}", kMaxSamplers,
                                         join(kSamplerNames, [](const SamplerName& each) {
                                           return std::format("{} ({})", each.letter, each.name);
                                         })));
    }
    samplers.push_back(known->kind);
  }
  return samplers;
}

std::expected<LogitBias, std::string> parse_logit_bias(std::string_view text) {
  const std::size_t sign = text.find_first_of("+-");
  if (sign != std::string_view::npos && sign > 0) {
    const auto id = parse_number<std::uint32_t>(text.substr(0, sign));
    const std::string_view size = text.substr(sign + 1);
    auto bias = size == "inf" ? std::optional(std::numeric_limits<double>::infinity())
                              : parse_number<double>(size);
    if (bias && text[sign] == '-') bias = -*bias;
    const bool excluded = bias && std::isinf(*bias) && *bias < 0;
    if (id && *id <= kMaxInt32 && bias &&
        (excluded || (*bias >= kBiasBounds.min && *bias <= kBiasBounds.max))) {
      return LogitBias{.token = static_cast<std::int32_t>(*id), .bias = static_cast<float>(*bias)};
    }
  }
  return std::unexpected(
      std::format("\"{}\" must be a token id, + or -, and a number up to {}, or -inf, as in "
                  "15043-1.5",
                  text.substr(0, 40), kBiasBounds.max));
}

std::vector<std::pair<std::string, std::string>> sampling_facts(const Sampling& sampling) {
  // Of the others, only what differs from the default: all of them take more than a page of the
  // session file, and pages that are added when the session ends are lost if the file is cut off.
  constexpr std::array<std::string_view, 4> kAlways = {"temperature", "top_k", "top_p", "min_p"};
  const Sampling defaults;
  std::vector<std::pair<std::string, std::string>> facts;
  for (const SamplingField& field : kSamplingFields) {
    std::visit(
        [&](auto member) {
          if (sampling.*member != defaults.*member || std::ranges::contains(kAlways, field.name))
            facts.emplace_back(field.name, std::format("{}", sampling.*member));
        },
        field.member);
  }
  if (sampling.samplers != defaults.samplers)
    facts.emplace_back("samplers", samplers_text(sampling.samplers));
  if (sampling.dry_multiplier != 0) {
    for (std::size_t i = 0; i < sampling.dry_sequence_breakers.size(); ++i)
      facts.emplace_back(std::format("dry_sequence_breakers.{}", i),
                         sampling.dry_sequence_breakers[i]);
  }
  for (const LogitBias& each : sampling.logit_bias) {
    const auto* id = std::get_if<std::int32_t>(&each.token);
    facts.emplace_back(
        "logit_bias." + (id ? std::to_string(*id) : std::get<std::string>(each.token)),
        std::format("{}", each.bias));
  }
  if (!sampling.grammar.empty()) facts.emplace_back("grammar", sampling.grammar);
  return facts;
}

}  // namespace tt
