// A statement of arbitrary bytes, sent to the SQL endpoint: the response is rows or a problem
// with a reason, within the time limit.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/fuzz/in_process_server.h"
#include "tests/fuzz/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tt;
  static fuzz::InProcessServer server;
  constexpr std::array<const char*, 3> kFormats = {"json", "ndjson", "csv"};
  const std::string sql(reinterpret_cast<const char*>(data), size);
  // The sanitizers slow the query down: part of the one-second limit is left to them.
  const nlohmann::json body = {{"sql", sql},
                               {"limit", 1000},
                               {"timeout_ms", 200},
                               {"format", kFormats[size % kFormats.size()]}};
  const std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const fuzz::Limits limits("request");
  const test::RawResponse answer = server.answer(
      "POST /api/v1/sessions/plausible/query HTTP/1.1\r\nHost: 127.0.0.1\r\n"
      "Content-Type: application/json\r\nContent-Length: " +
      std::to_string(text.size()) + "\r\n\r\n" + text);
  const int status = answer.status;
  if (status != 200 && (status < 400 || status >= 500) && status != 503)
    fuzz::report_finding("status " + std::to_string(status) + " " + answer.body);
  return 0;
}
