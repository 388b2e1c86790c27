#include "server/http/route_contract.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <format>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "server/http/responses.h"
#include "tracer/text/join.h"
#include "tracer/text/nearest.h"

namespace tt {

namespace {

// "/a/b" has two segments.
std::vector<std::string> segments_of(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  std::vector<std::string> segments;
  for (const auto part : path | std::views::split('/')) {
    segments.emplace_back(std::string_view(part));
  }
  return segments;
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& segments) {
  return std::ranges::equal(pattern, segments, [](const auto& wanted, const auto& given) {
    return wanted.empty() ? !given.empty() : wanted == given;
  });
}

}  // namespace

RouteContract::RouteContract(std::string_view openapi_json) {
  const auto document = nlohmann::json::parse(openapi_json);
  // All parameter references have the form "#/components/parameters/...".
  const auto resolved = [&](const nlohmann::json& parameter) -> nlohmann::json {
    if (!parameter.contains("$ref")) return parameter;
    return document.at(
        nlohmann::json::json_pointer(parameter["$ref"].get<std::string>().substr(1)));
  };
  const auto add_names = [&](Parameters& names, const nlohmann::json& holder) {
    if (!holder.contains("parameters")) return;
    for (const auto& entry : holder["parameters"]) {
      const nlohmann::json parameter = resolved(entry);
      if (parameter["in"] == "query") names.insert(parameter["name"].get<std::string>());
    }
  };
  for (const auto& [name, item] : document["paths"].items()) {
    Path path;
    for (std::string& segment : path.segments = segments_of(name)) {
      if (segment.starts_with('{')) segment.clear();
    }
    for (const auto& [key, operation] : item.items()) {
      if (key == "parameters") continue;
      std::string method = key;
      std::ranges::transform(method, method.begin(),
                             [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      Parameters& names = path.operations[method];
      add_names(names, item);
      add_names(names, operation);
      if (method == "GET") path.operations["HEAD"] = names;
    }
    paths_.push_back(std::move(path));
  }
}

const RouteContract::Path* RouteContract::find(std::string_view path) const {
  const auto segments = segments_of(path);
  const auto found = std::ranges::find_if(
      paths_, [&](const Path& one) { return matches(one.segments, segments); });
  return found == paths_.end() ? nullptr : &*found;
}

std::string RouteContract::methods_of(std::string_view path) const {
  const Path* found = find(path);
  return found == nullptr ? "" : join(found->operations | std::views::keys);
}

std::string RouteContract::similar_path(std::string_view path) const {
  struct Theirs {
    std::string_view path, ours;
  };
  // Routes of llama-server, some of which it has for clients of other programs.
  constexpr std::array kLlamaServer = {
      Theirs{"/completion", "POST /api/v1/generate"},
      Theirs{"/completions", "POST /api/v1/generate"},
      Theirs{"/v1/completions", "POST /api/v1/generate"},
      Theirs{"/chat/completions", "POST /api/v1/generate"},
      Theirs{"/v1/chat/completions", "POST /api/v1/generate"},
      Theirs{"/responses", "POST /api/v1/generate"},
      Theirs{"/v1/responses", "POST /api/v1/generate"},
      Theirs{"/v1/messages", "POST /api/v1/generate"},
      Theirs{"/api/chat", "POST /api/v1/generate"},
      Theirs{"/api/generate", "POST /api/v1/generate"},
      Theirs{"/v1/health", "GET /api/v1/health"},
      Theirs{"/props", "GET /api/v1/server"},
      Theirs{"/slots", "GET /api/v1/generate"},
      Theirs{"/v1/models", "GET /api/v1/models"},
      Theirs{"/api/tags", "GET /api/v1/models"},
      Theirs{"/api/show", "GET /api/v1/models"},
  };
  if (const auto* theirs = std::ranges::find(kLlamaServer, path, &Theirs::path);
      theirs != kLlamaServer.end())
    return std::string(theirs->ours);
  const std::string versioned = "/api/v1" + std::string(path);
  if (find(versioned) != nullptr) return versioned;
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::vector<std::string> given = segments_of(path);
  std::string best;
  std::size_t fewest = 2;  // segments that differ
  for (const Path& known : paths_) {
    if (known.segments.size() != given.size()) continue;
    std::string made;
    std::size_t changed = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const std::string& wanted = known.segments[i];
      const bool same = wanted.empty() || wanted == given[i];
      made += '/' + (same ? given[i] : wanted);
      if (!same) changed += nearest_names(given[i], {wanted}).empty() ? fewest : 1;
    }
    if (changed >= fewest) continue;
    fewest = changed;
    best = std::move(made);
  }
  return best;
}

std::optional<Problem> RouteContract::check_query(const httplib::Request& request) const {
  const Path* path = find(request.path);
  if (path == nullptr) return std::nullopt;
  const auto operation = path->operations.find(request.method);
  if (operation == path->operations.end()) return std::nullopt;
  for (const auto& [name, value] : request.params) {
    if (operation->second.contains(name)) {
      if (request.get_param_value_count(name) == 1) continue;
      return Problem{ErrorCode::BadRequest, std::format("\"{}\" must be given only once.", name)};
    }
    const auto& known = operation->second;
    return Problem{
        ErrorCode::BadRequest,
        known.empty() ? std::format("Unknown parameter \"{}\". This route has no parameters.", name)
                      : unknown_name("parameter", name, {known.begin(), known.end()})};
  }
  return std::nullopt;
}

}  // namespace tt
