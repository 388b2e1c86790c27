// GET requests with any path below /api/v1/sessions and any query: the response must be one
// that the API contract allows.
//
// An input is a request target. query_parameters_mutator.cpp generates new ones from the
// operations and parameters of api/openapi.yaml.
#include <algorithm>
#include <string>
#include <string_view>

#include "api/openapi/openapi.h"
#include "tests/fuzz/in_process_server.h"
#include "tests/fuzz/limits.h"
#include "tests/server/http/contract_table.h"

namespace {

// Whether `text` is a target of a session that the in-process server has.
bool is_session_target(std::string_view text) {
  return text.starts_with("/api/v1/sessions") &&
         std::ranges::none_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tt;
  static fuzz::InProcessServer server;
  static const test::ContractTable contract{openapi_json()};
  const std::string target(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kMaxTarget = 4000;  // the HTTP library itself rejects longer ones
  if (size > kMaxTarget || !is_session_target(target)) return 0;
  const auto* operation = contract.find_operation("GET", target);
  const fuzz::Limits limits("request");
  test::RawResponse answer =
      server.answer("GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  answer.headers["x-request-id"] = "1";  // set by the HTTP front end
  // InProcessServer truncates a long body.
  if (answer.body.size() >= fuzz::InProcessServer::kMaxBody ||
      answer.headers.contains("transfer-encoding"))
    answer.headers["content-encoding"] = "cut";
  const std::string violation = contract.violation(operation, "GET", answer);
  // 503: a busy machine computes longer than the request waits.
  if (!violation.empty() || (answer.status >= 500 && answer.status != 503))
    fuzz::report_finding(target + ": " + std::to_string(answer.status) + " " + violation);
  return 0;
}
