// Arbitrary bytes as the body of a generation, a query, a question about sets and a PATCH request:
// a request whose numbers are within their bounds, or a problem with a reason.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/json/generation_body.h"
#include "api/json/query_json.h"
#include "api/json/session_json.h"
#include "api/json/set_json.h"
#include "tests/fuzz/limits.h"
#include "tracer/request/request_bounds.h"

namespace {

using namespace tt;

template <class Parsed>
void expect_reason(const Parsed& parsed, const char* what) {
  if (!parsed && parsed.error().detail.empty())
    fuzz::report_finding(std::string(what) + ": a problem without a reason");
}

void expect_within(double value, const NumberBounds& bounds) {
  // Also false for NaN.
  if (!(value >= static_cast<float>(bounds.min) && value <= static_cast<float>(bounds.max)))
    fuzz::report_finding(std::string(bounds.name) + " is " + std::to_string(value));
}

void expect_bounded(const GenerationRequest& request) {
  const Sampling& sampling = request.sampling;
  for (const SamplingField& field : kSamplingFields) {
    std::visit([&](auto member) { expect_within(sampling.*member, field.bounds()); }, field.member);
  }
  if (request.stop.size() > kMaxStops) fuzz::report_finding("too many stop strings");
  const auto* conversation = std::get_if<Conversation>(&request.prompt);
  if (conversation != nullptr && conversation->messages.size() > kMaxMessages)
    fuzz::report_finding("too many messages");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  {
    const fuzz::Limits limits("generation body");
    const auto generation = parse_generation_body(body);
    expect_reason(generation, "generation body");
    if (generation) expect_bounded(generation->request);
  }
  {
    const fuzz::Limits limits("query body");
    expect_reason(parse_query_body(body), "query body");
  }
  {
    const fuzz::Limits limits("bodies of sets");
    expect_reason(parse_set_query_body(body), "query body of a set");
    expect_reason(parse_set_comparison_body(body), "comparison body of sets");
    expect_reason(parse_generality_body(body), "generality body");
    expect_reason(parse_trend_body(body), "trend body");
  }
  {
    const fuzz::Limits limits("PATCH body");
    expect_reason(parse_title_body(body), "PATCH body");
  }
  return 0;
}
