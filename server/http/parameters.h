// Parses query parameters: numbers, text, enum names, flags, sort orders, pages. The error
// names the allowed values. An absent optional parameter is nullopt.
#pragma once

#include <httplib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <format>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/common/layer_set.h"
#include "analysis/common/page.h"
#include "analysis/parameters/parse.h"
#include "api/json/problem.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/text/join.h"

namespace tt {

// The problem of a parameter; `detail` follows its name (analysis/parameters/parse.h). Empty name:
// of several.
Problem parameter_problem(const std::string& name, const std::string& detail);

// A whole number from 0 to `max`; nullopt when absent.
std::expected<std::optional<std::uint64_t>, Problem> number_parameter(
    const httplib::Request& request, const char* name, std::uint64_t max);

// Two number parameters with the start and the end of a range. Error when `to` is less than
// `from`.
struct Bounds {
  std::optional<std::uint64_t> from{}, to{};
};
std::expected<Bounds, Problem> bounds_parameters(const httplib::Request& request, const char* from,
                                                 const char* to, std::uint64_t max);

// Text of at most `max` characters; empty when absent.
std::expected<std::string, Problem> text_parameter(const httplib::Request& request,
                                                   const char* name,
                                                   std::size_t max = kMaxTextLength);

// The side of a picture in pixels, from 1 to kMaxPixels.
inline constexpr std::uint32_t kMaxPixels = 4096;
inline constexpr std::uint32_t kDefaultPictureWidth = 1400, kDefaultPictureHeight = 800;
std::expected<std::uint32_t, Problem> pixels_parameter(const httplib::Request& request,
                                                       const char* name,
                                                       std::uint32_t default_value);

// Whether a raster of this size is asked for in the format of api/raster_format.md instead of JSON,
// which has at most kMaxJsonCells cells.
inline constexpr std::uint64_t kMaxJsonCells = std::uint64_t{1} << 23;
std::expected<bool, Problem> columns_parameter(const httplib::Request& request, std::uint32_t width,
                                               std::uint32_t height);

// One of `words`; `default_value` when absent.
std::expected<std::string, Problem> enum_parameter(const httplib::Request& request,
                                                   const char* name,
                                                   std::span<const std::string_view> words,
                                                   std::string_view default_value = {});

// Page start ("from") and "limit": `default_limit` rows by default, at most kMaxRows.
std::expected<PageRange, Problem> page_parameters(const httplib::Request& request,
                                                  std::uint64_t default_limit);

// "true" or "false"; nullopt when absent.
std::expected<std::optional<bool>, Problem> flag_parameter(const httplib::Request& request,
                                                           const char* name);
// A layer number, or "outside" ("none") for kNoLayer; nullopt when absent.
std::expected<std::optional<LayerId>, Problem> layer_parameter(const httplib::Request& request);

// The parameter "layers" in the syntax of parse_layers(); all layers when absent.
std::expected<LayerSet, Problem> layers_parameter(const httplib::Request& request);

// "\"kind\" must be one of intermediate, weight, kv, input."
Problem not_one_of(const char* name, const std::string& words);

// An enum value from 0 to `last`, by its to_text() name; nullopt when absent.
template <class Enum>
  requires std::is_enum_v<Enum>
std::expected<std::optional<Enum>, Problem> enum_parameter(const httplib::Request& request,
                                                           const char* name, Enum last) {
  if (!request.has_param(name)) return std::nullopt;
  const std::string word = request.get_param_value(name);
  std::vector<std::string> words;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<Enum>(i);
    if (word == to_text(value)) return value;
    words.emplace_back(to_text(value));
  }
  return std::unexpected(not_one_of(name, join(words)));
}

// The parameter "sort": one of `names`, with a '-' prefix for descending order. The first name
// is the default.
template <class By, std::size_t N>
using SortKeys = std::array<std::pair<std::string_view, By>, N>;
template <class By, std::size_t N>
std::expected<Order<By>, Problem> order_parameter(const httplib::Request& request,
                                                  const SortKeys<By, N>& names) {
  if (!request.has_param("sort")) return Order<By>{.by = names[0].second};
  const std::string text = request.get_param_value("sort");
  const bool descending = text.starts_with('-');
  for (const auto& [name, by] : names) {
    if (std::string_view(text).substr(descending ? 1 : 0) == name)
      return Order<By>{.by = by, .descending = descending};
  }
  return std::unexpected(not_one_of("sort", join(names | std::views::keys, [](auto name) {
                                      return std::format("{0}, -{0}", name);
                                    })));
}

}  // namespace tt
