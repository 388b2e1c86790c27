#include "server/http/parameters.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "tracer/text/join.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

// Counts the code points of UTF-8 text: all bytes except continuation bytes.
std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::expected<std::optional<std::uint64_t>, Problem> number_parameter(
    const httplib::Request& request, const char* name, std::uint64_t max) {
  if (!request.has_param(name)) return std::nullopt;
  const auto value = parse_number<std::uint64_t>(request.get_param_value(name));
  if (!value || *value > max) {
    return std::unexpected(
        Problem{ErrorCode::BadRequest,
                std::format("\"{}\" must be a whole number from 0 to {}.", name, max)});
  }
  return value;
}

std::expected<std::optional<double>, Problem> percent_parameter(const httplib::Request& request,
                                                                const char* name) {
  if (!request.has_param(name)) return std::nullopt;
  const auto value = parse_number<double>(request.get_param_value(name), std::chars_format::fixed);
  if (!value || !(*value >= 0 && *value <= 100)) {
    return std::unexpected(Problem{ErrorCode::BadRequest,
                                   std::format("\"{}\" must be a number from 0 to 100.", name)});
  }
  return value;
}

std::expected<Bounds, Problem> bounds_parameters(const httplib::Request& request, const char* from,
                                                 const char* to, std::uint64_t max) {
  const auto begin = number_parameter(request, from, max);
  if (!begin) return std::unexpected(begin.error());
  const auto end = number_parameter(request, to, max);
  if (!end) return std::unexpected(end.error());
  if (*begin && *end && **end < **begin) {
    return std::unexpected(
        Problem{ErrorCode::BadRequest,
                std::format("\"{}\" is {} and \"{}\" is {}: the end is before the start.", from,
                            **begin, to, **end)});
  }
  return Bounds{.from = *begin, .to = *end};
}

std::expected<std::vector<std::uint64_t>, Problem> numbers_parameter(
    const httplib::Request& request, const char* name, std::uint64_t max, std::size_t count) {
  std::vector<std::uint64_t> numbers;
  if (!request.has_param(name)) return numbers;
  const std::string text = request.get_param_value(name);
  for (const auto word : std::views::split(text, ',')) {
    const auto value = parse_number<std::uint64_t>(std::string_view(word));
    if (!value || *value > max || numbers.size() == count) {
      return std::unexpected(Problem{
          ErrorCode::BadRequest,
          std::format("\"{}\" must be at most {} comma-separated whole numbers from 0 to {}.", name,
                      count, max)});
    }
    numbers.push_back(*value);
  }
  return numbers;
}

std::expected<std::string, Problem> text_parameter(const httplib::Request& request,
                                                   const char* name, std::size_t max) {
  std::string text = request.get_param_value(name);
  if (characters_of(text) > max) {
    return std::unexpected(Problem{
        ErrorCode::BadRequest, std::format("\"{}\" must have at most {} characters.", name, max)});
  }
  return text;
}

std::expected<std::string, Problem> enum_parameter(const httplib::Request& request,
                                                   const char* name,
                                                   std::span<const std::string_view> words,
                                                   std::string_view default_value) {
  if (!request.has_param(name)) return std::string(default_value);
  std::string word = request.get_param_value(name);
  if (std::ranges::contains(words, word)) return word;
  return std::unexpected(
      Problem{ErrorCode::BadRequest, std::format("\"{}\" must be one of: {}.", name, join(words))});
}

std::expected<PageRange, Problem> page_parameters(const httplib::Request& request,
                                                  std::uint64_t default_limit) {
  const auto from = number_parameter(request, "from", std::numeric_limits<std::uint32_t>::max());
  if (!from) return std::unexpected(from.error());
  const auto limit = number_parameter(request, "limit", kMaxRows);
  if (!limit) return std::unexpected(limit.error());
  return PageRange{.from = from->value_or(0), .limit = limit->value_or(default_limit)};
}

std::expected<std::optional<bool>, Problem> flag_parameter(const httplib::Request& request,
                                                           const char* name) {
  if (!request.has_param(name)) return std::nullopt;
  const std::string word = request.get_param_value(name);
  if (word != "true" && word != "false") return std::unexpected(not_one_of(name, "true, false"));
  return word == "true";
}

std::expected<std::optional<LayerId>, Problem> layer_parameter(const httplib::Request& request) {
  if (!request.has_param("layer")) return std::nullopt;
  const auto layer = parse_layer(request.get_param_value("layer"));
  if (layer) return layer;
  return std::unexpected(Problem{ErrorCode::BadRequest,
                                 "\"layer\" must be a layer number from 0, or outside (or none)."});
}

std::expected<LayerSet, Problem> layers_parameter(const httplib::Request& request) {
  if (!request.has_param("layers")) return LayerSet::all();
  return text_parameter(request, "layers").and_then([](const std::string& text) {
    return parse_layers(text).transform_error([](const std::string& why) {
      return Problem{ErrorCode::BadRequest, "\"layers\": " + why};
    });
  });
}

Problem not_one_of(const char* name, const std::string& words) {
  return {ErrorCode::BadRequest, std::format("\"{}\" must be one of {}.", name, words)};
}

}  // namespace tt
