#include "server/http/parameters.h"

#include <limits>
#include <utility>

#include "tracer/text/join.h"

namespace tt {

namespace {

// The value of an optional parameter.
template <class Parse>
auto parsed(const httplib::Request& request, const char* name, Parse parse) {
  using Value = decltype(parse(std::string()))::value_type;
  using Found = std::expected<std::optional<Value>, Problem>;
  if (!request.has_param(name)) return Found(std::nullopt);
  return Found(
      parse(request.get_param_value(name))
          .transform([](Value value) { return std::optional(std::move(value)); })
          .transform_error([&](const std::string& why) { return parameter_problem(name, why); }));
}

}  // namespace

Problem parameter_problem(const std::string& name, const std::string& detail) {
  if (name.empty()) return {ErrorCode::BadRequest, detail};
  return {ErrorCode::BadRequest,
          std::format("\"{}\"{}{}", name, detail.starts_with(':') ? "" : " ", detail)};
}

std::expected<std::optional<std::uint64_t>, Problem> number_parameter(
    const httplib::Request& request, const char* name, std::uint64_t max) {
  return parsed(request, name, [=](const std::string& text) { return parse_whole(text, 0, max); });
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

std::expected<std::string, Problem> text_parameter(const httplib::Request& request,
                                                   const char* name, std::size_t max) {
  return parsed(request, name, [=](std::string text) { return parse_text(std::move(text), max); })
      .transform([](std::optional<std::string> text) { return std::move(text).value_or(""); });
}

std::expected<std::uint32_t, Problem> pixels_parameter(const httplib::Request& request,
                                                       const char* name,
                                                       std::uint32_t default_value) {
  const auto pixels = number_parameter(request, name, kMaxPixels);
  if (!pixels || *pixels == 0U)
    return std::unexpected(
        Problem{ErrorCode::BadRequest,
                std::format("\"{}\" must be a whole number from 1 to {}.", name, kMaxPixels)});
  return static_cast<std::uint32_t>(pixels->value_or(default_value));
}

std::expected<bool, Problem> columns_parameter(const httplib::Request& request, std::uint32_t width,
                                               std::uint32_t height) {
  static constexpr std::string_view kFormats[] = {"json", "columns"};
  const auto format = enum_parameter(request, "format", kFormats, "json");
  if (!format) return std::unexpected(format.error());
  const bool columns = *format == "columns";
  if (!columns && std::uint64_t{width} * height > kMaxJsonCells)
    return std::unexpected(
        Problem{ErrorCode::BadRequest,
                std::format("A raster of more than {} cells (width times height) requires "
                            "format=columns. Set it, or reduce width or height.",
                            kMaxJsonCells)});
  return columns;
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
  return parsed(request, name, parse_flag);
}

std::expected<std::optional<LayerId>, Problem> layer_parameter(const httplib::Request& request) {
  return parsed(request, "layer", parse_layer_number);
}

std::expected<LayerSet, Problem> layers_parameter(const httplib::Request& request) {
  return parsed(request, "layers", parse_layer_list).transform([](std::optional<LayerSet> layers) {
    return std::move(layers).value_or(LayerSet::all());
  });
}

Problem not_one_of(const char* name, const std::string& words) {
  return {ErrorCode::BadRequest, std::format("\"{}\" must be one of {}.", name, words)};
}

}  // namespace tt
