#include "analysis/common/layer_set.h"

#include <algorithm>
#include <format>
#include <limits>
#include <optional>

#include "tracer/text/join.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

std::optional<std::int32_t> number(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : parse_number<std::int32_t>(text);
}

std::optional<LayerSet::Range> range(std::string_view text) {
  const auto dash = text.find('-');
  const auto first = number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return LayerSet::Range{.first = *first, .last = *last};
}

// "5-2".
bool is_reversed(std::string_view text) {
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return false;
  const auto first = number(text.substr(0, dash)), last = number(text.substr(dash + 1));
  return first && last && *first > *last;
}

}  // namespace

LayerSet LayerSet::all() {
  using Limits = std::numeric_limits<std::int32_t>;
  return {.ranges = {{.first = Limits::min(), .last = Limits::max()}}, .outside = true};
}

LayerSet LayerSet::one(LayerId layer) {
  if (layer == kNoLayer) return {.outside = true};
  return {.ranges = {{.first = layer.v, .last = layer.v}}};
}

bool LayerSet::has(LayerId layer) const {
  if (layer == kNoLayer) return outside;
  return std::ranges::any_of(
      ranges, [&](const Range& r) { return r.first <= layer.v && layer.v <= r.last; });
}

std::optional<LayerId> parse_layer(std::string_view text) {
  if (text == "outside" || text == "none") return kNoLayer;
  return number(text).transform([](std::int32_t layer) { return LayerId{layer}; });
}

std::expected<LayerSet, std::string> parse_layers(std::string_view text) {
  if (text == "all") return LayerSet::all();
  LayerSet set;
  for (std::string_view rest = text;;) {
    const auto comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    if (parse_layer(part) == kNoLayer) {
      set.outside = true;
    } else if (const auto layers = range(part)) {
      set.ranges.push_back(*layers);
    } else if (is_reversed(part)) {
      return std::unexpected(
          std::format("\"{}\" is not a valid range of layers: it ends before it starts.", part));
    } else {
      return std::unexpected(std::format(
          "\"{}\" is not a valid layer list. Use layer numbers and ranges starting at 0, "
          "such as 0,3-5; \"outside\" for tensors outside of layers; or \"all\".",
          part));
    }
    if (comma == std::string_view::npos) return set;
    rest.remove_prefix(comma + 1);
  }
}

std::string to_text(const LayerSet& set) {
  if (set == LayerSet::all()) return "all";
  std::string text = join(set.ranges, [](const LayerSet::Range& range) {
    return range.first == range.last ? std::to_string(range.first)
                                     : std::format("{}-{}", range.first, range.last);
  });
  std::erase(text, ' ');
  if (set.outside) text += text.empty() ? "outside" : ",outside";
  return text;
}

}  // namespace tt
