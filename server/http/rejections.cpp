#include "server/http/rejections.h"

#include <string>

#include "api/json/problem.h"

namespace tt {

namespace {

ErrorCode fault_of(RejectionReason reason) {
  switch (reason) {
    case RejectionReason::Malformed:
    case RejectionReason::UpgradeRequired:
    case RejectionReason::HeadTooLarge:
      return ErrorCode::BadRequest;
    case RejectionReason::Unauthorized:
      return ErrorCode::Unauthorized;
    case RejectionReason::ForeignOrigin:
      return ErrorCode::Forbidden;
    case RejectionReason::NotFound:
      return ErrorCode::NotFound;
    case RejectionReason::MethodNotAllowed:
      return ErrorCode::MethodNotAllowed;
    case RejectionReason::Timeout:
      return ErrorCode::Timeout;
    case RejectionReason::BodyTooLarge:
      return ErrorCode::BodyTooLarge;
    case RejectionReason::BodyType:
      return ErrorCode::BodyType;
    case RejectionReason::TooManyAttempts:
      return ErrorCode::TooManyAttempts;
    case RejectionReason::TooManyConnections:
      return ErrorCode::TooManyConnections;
  }
  return ErrorCode::Internal;
}

// The page contains no client input: `why` of these two reasons is fixed text of the server.
std::string login_page(const Rejection& rejection) {
  return R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>tensor-trace: log in</title>
<h1>Log in to tensor-trace</h1>
<p>)" + rejection.why +
         R"(</p>
<p>Open the login link that the server printed at startup. A link works once, within ten minutes.
To print another link, send the signal SIGUSR1 to the server:</p>
<pre>kill -USR1 PID
docker compose -f docker/compose.yaml kill -s USR1</pre>
<p>Programs send <code>Authorization: Bearer KEY</code>. The server option
<code>--api-key-file</code> sets the key.</p>
<p><a href="">Try this address again</a></p>
</html>
)";
}

}  // namespace

RejectionBody render_rejection(const Rejection& rejection) {
  const bool about_authentication = rejection.reason == RejectionReason::Unauthorized ||
                                    rejection.reason == RejectionReason::TooManyAttempts;
  if (rejection.for_browser && about_authentication) {
    return {.type = "text/html; charset=utf-8", .text = login_page(rejection)};
  }
  return {.type = "application/problem+json",
          .text = text_of(
              Problem{fault_of(rejection.reason), rejection.why, status_of(rejection.reason)})};
}

}  // namespace tt
