#include "tests/server/http/contract_table.h"

#include <algorithm>
#include <cctype>
#include <format>
#include <ranges>

namespace tt::test {

namespace {

using nlohmann::json;

constexpr const char* kProblem = "application/problem+json";

const json& resolve_reference(const json& document, json&& node) = delete;
const json& resolve_reference(const json& document, const json& node) {
  if (!node.is_object() || !node.contains("$ref")) return node;
  const std::string ref = node["$ref"];
  return resolve_reference(document, document.at(json::json_pointer(ref.substr(1))));
}

std::map<int, std::set<std::string>> responses_of(const json& document, const json& responses) {
  std::map<int, std::set<std::string>> found;
  for (const auto& [status, entry] : responses.items()) {
    std::set<std::string>& types = found[std::stoi(status)];
    const json& response = resolve_reference(document, entry);
    if (!response.contains("content")) continue;
    for (const auto& [type, media] : response["content"].items()) types.insert(type);
  }
  return found;
}

void add_parameters(const json& document, const json& holder,
                    std::vector<ContractTable::Parameter>& parameters) {
  if (!holder.contains("parameters")) return;
  for (const json& entry : holder["parameters"]) {
    const json& parameter = resolve_reference(document, entry);
    parameters.push_back({.name = parameter["name"],
                          .in_path = parameter["in"] == "path",
                          .schema = resolve_reference(document, parameter["schema"])});
  }
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : hex_digit(text[i + 2]);
    if (low < 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

bool path_matches(std::string_view pattern, std::string_view path) {
  auto pattern_segments = pattern | std::views::split('/');
  auto path_segments = path | std::views::split('/');
  return std::ranges::equal(pattern_segments, path_segments, [](auto one, auto other) {
    const std::string_view segment(one);
    const std::string_view value(other);
    return segment.starts_with('{') ? !value.empty() : segment == value;
  });
}

}  // namespace

ContractTable::ContractTable(std::string_view openapi_json) {
  const json document = json::parse(openapi_json);
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [method, entry] : item.items()) {
      if (method == "parameters") continue;
      Operation operation{.id = entry["operationId"],
                          .method = upper(method),
                          .path = path,
                          .parameters = {},
                          .body_type = {},
                          .body_example = {},
                          .responses = responses_of(document, entry["responses"])};
      add_parameters(document, item, operation.parameters);
      add_parameters(document, entry, operation.parameters);
      if (entry.contains("requestBody")) {
        const auto& content = entry["requestBody"]["content"];
        operation.body_type = content.begin().key();
        operation.body_example = content.begin()->value("example", json());
      }
      operations_.push_back(std::move(operation));
    }
  }
  any_request_ = responses_of(document, document["x-any-request"]);
  for (const json& code :
       document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]) {
    problem_codes_.insert(code.get<std::string>());
  }
}

const ContractTable::Operation* ContractTable::find_operation(std::string_view method,
                                                              std::string_view target) const {
  const std::string path = percent_decode(target.substr(0, target.find_first_of("?#")));
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  const auto found = std::ranges::find_if(operations_, [&](const Operation& one) {
    return one.method == wanted && path_matches(one.path, path);
  });
  return found == operations_.end() ? nullptr : &*found;
}

std::string ContractTable::violation(const Operation* operation, std::string_view method,
                                     const RawResponse& answer) const {
  const auto header = [&](const char* name) {
    const auto at = answer.headers.find(name);
    return at == answer.headers.end() ? std::string() : at->second;
  };
  if (header("x-request-id").empty()) return "no X-Request-Id header";
  const std::string type = header("content-type").substr(0, header("content-type").find(';'));
  std::set<std::string> allowed;
  bool known = false;
  const auto allow = [&](const std::map<int, std::set<std::string>>& responses) {
    const auto at = responses.find(answer.status);
    if (at == responses.end()) return;
    known = true;
    allowed.insert(at->second.begin(), at->second.end());
  };
  allow(any_request_);
  if (operation != nullptr) {
    allow(operation->responses);
  } else if (answer.status == 404) {
    return problem_violation(answer);
  } else if (answer.status == 200 || answer.status == 206 || answer.status == 416) {
    return {};  // a static file
  }
  if (!known) return std::format("status {} is not in the contract", answer.status);
  if (method == "HEAD" || allowed.empty()) {
    return answer.body.empty() ? "" : "unexpected body";
  }
  if (!allowed.contains(type))
    return std::format("status {} with media type \"{}\"", answer.status, type);
  if (type == kProblem) return problem_violation(answer);
  // Streamed bodies are not checked: they are cut off when the client closes its side, as
  // these clients do. So are bodies that do not fit the buffers of a connection, if the client sent
  // bytes after its request: the system resets a connection that is closed with unread bytes.
  constexpr std::size_t kBuffered = 64U << 10;
  const std::string length = header("content-length");
  const bool is_cut_off =
      answer.body.size() > kBuffered && !length.empty() && answer.body.size() < std::stoull(length);
  if (type == "application/json" && header("content-encoding").empty() &&
      header("transfer-encoding").empty() && !is_cut_off && !json::accept(answer.body)) {
    return "the body is not JSON";
  }
  return {};
}

std::string ContractTable::problem_violation(const RawResponse& answer) const {
  if (answer.body.empty()) return {};  // response to HEAD
  const json problem = json::parse(answer.body, nullptr, false);
  if (!problem.is_object()) return "the problem is not a JSON object: " + answer.body.substr(0, 80);
  for (const char* field : {"type", "title", "code", "detail"}) {
    if (!problem.contains(field) || !problem[field].is_string() ||
        problem[field].get_ref<const std::string&>().empty()) {
      return std::format("the problem has no {}", field);
    }
  }
  if (problem.value("status", 0) != answer.status) return "the problem has another status";
  if (!problem_codes_.contains(problem["code"].get<std::string>())) {
    return "unknown problem code: " + problem["code"].get<std::string>();
  }
  return {};
}

}  // namespace tt::test
