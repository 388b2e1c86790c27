#include "server/frontend/detail/reply.h"

#include <array>
#include <cstddef>
#include <format>
#include <string_view>
#include <utility>

#include "server/frontend/detail/request_id.h"

namespace tt {

int status_of(RejectionReason reason) {
  static constexpr std::array kStatus = {400, 401, 403, 404, 405, 408,
                                         413, 415, 426, 429, 431, 503};
  return kStatus.at(static_cast<std::size_t>(reason));
}

}  // namespace tt

namespace tt::frontend {
namespace {

std::string_view status_text(int status) {
  static constexpr std::pair<int, std::string_view> kTexts[] = {
      {200, "OK"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {426, "Upgrade Required"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {503, "Service Unavailable"}};
  for (const auto& [known, text] : kTexts)
    if (known == status) return text;
  return "Error";
}

}  // namespace

Reply reply_of(const Rejection& rejection, const RejectionRenderer& renderer) {
  RejectionBody body = renderer ? renderer(rejection)
                                : RejectionBody{"text/plain; charset=utf-8", rejection.why + "\n"};
  Reply reply{.status = status_of(rejection.reason),
              .type = std::move(body.type),
              .body = std::move(body.text),
              .headers = {},
              .note = rejection.why};
  if (rejection.retry_after_s > 0) {
    reply.headers.push_back(std::format("Retry-After: {}", rejection.retry_after_s));
  }
  if (rejection.reload) reply.headers.emplace_back("Refresh: 0");
  if (rejection.reason == RejectionReason::Unauthorized) {
    reply.headers.emplace_back("WWW-Authenticate: Bearer realm=\"tensor-trace\"");
  }
  if (rejection.reason == RejectionReason::MethodNotAllowed)
    reply.headers.emplace_back("Allow: GET");
  if (rejection.reason == RejectionReason::UpgradeRequired) {
    reply.headers.emplace_back("Sec-WebSocket-Version: 13");
    reply.headers.emplace_back("Upgrade: websocket");
  }
  return reply;
}

std::string common_headers(const FrontendRules& rules, std::string_view cors_origin,
                           std::string_view request_id) {
  std::string ancestors;
  for (const std::string& origin : rules.embed_origins) ancestors += " " + origin;
  std::string lines = std::format(
      "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'self'; "
      "frame-ancestors{}; object-src 'none'\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Cross-Origin-Opener-Policy: same-origin\r\n"
      "{}: {}\r\n",
      ancestors.empty() ? " 'none'" : ancestors, kRequestIdField, request_id);
  // Caches must keep the responses to different origins apart.
  if (!rules.cors_origins.empty()) lines += "Vary: Origin\r\n";
  if (!cors_origin.empty()) {
    lines += std::format(
        "Access-Control-Allow-Origin: {}\r\n"
        "Access-Control-Expose-Headers: Content-Disposition, ETag, Location, Retry-After, "
        "X-Request-Id\r\n",
        cors_origin);
  }
  return lines;
}

std::string to_response(const Reply& reply, std::string_view method,
                        std::string_view common_headers) {
  std::string lines;
  for (const std::string& header : reply.headers) lines += header + "\r\n";
  if (reply.status != 204) {
    lines +=
        std::format("Content-Type: {}\r\nContent-Length: {}\r\n", reply.type, reply.body.size());
  }
  return std::format(
      "HTTP/1.1 {} {}\r\n"
      "{}"
      "Connection: close\r\n"
      "Cache-Control: no-store\r\n"
      "{}\r\n{}",
      reply.status, status_text(reply.status), common_headers, lines,
      method == "HEAD" ? "" : reply.body);
}

}  // namespace tt::frontend
