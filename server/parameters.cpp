#include "server/parameters.h"

#include <charconv>
#include <cstdint>

namespace tt {

std::expected<std::optional<std::string>, Problem> text_parameter(const httplib::Request& request,
                                                                  const char* name) {
  constexpr std::size_t kMostBytes = 200;
  if (!request.has_param(name)) return std::nullopt;
  std::string text = request.get_param_value(name);
  if (text.size() > kMostBytes) {
    return std::unexpected(Problem{
        Fault::BadRequest, std::format("\"{}\" is too long: at most {} bytes.", name, kMostBytes)});
  }
  return text;
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
  const std::string text = request.get_param_value("layer");
  if (text == "none") return kNoLayer;
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end) {
    return std::unexpected(
        Problem{Fault::BadRequest,
                "\"layer\" takes the number of a layer, from 0, or none: what is "
                "outside of any."});
  }
  // Beyond any that a model can have: nothing is in it.
  return LayerId{number > INT32_MAX ? INT32_MAX : static_cast<std::int32_t>(number)};
}

Problem not_one_of(const char* name, const std::string& words) {
  return {Fault::BadRequest, std::format("\"{}\" is one of {}.", name, words)};
}

}  // namespace tt
