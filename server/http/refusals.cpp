#include "server/http/refusals.h"

#include <string>

#include "api/json/problem.h"

namespace tt {

namespace {

Fault fault_of(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::Malformed:
    case RefusalReason::UpgradeRequired:
    case RefusalReason::HeadTooLarge:
      return Fault::BadRequest;
    case RefusalReason::NoKey:
      return Fault::NoKey;
    case RefusalReason::Foreign:
      return Fault::NotAcceptable;
    case RefusalReason::NotFound:
      return Fault::NotFound;
    case RefusalReason::MethodNotAllowed:
      return Fault::MethodNotAllowed;
    case RefusalReason::Timeout:
      return Fault::Timeout;
    case RefusalReason::BodyTooLarge:
      return Fault::BodyTooLarge;
    case RefusalReason::BodyType:
      return Fault::BodyType;
    case RefusalReason::TooManyAttempts:
      return Fault::TooManyAttempts;
    case RefusalReason::TooManyConnections:
      return Fault::TooManyConnections;
  }
  return Fault::Internal;
}

// The page contains no client input: `why` of these two reasons is fixed text of the server.
std::string login_page(const Refusal& refusal) {
  return R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>tensor-trace: log in</title>
<h1>Log in to tensor-trace</h1>
<p>)" + refusal.why +
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

RefusalBody render_refusal(const Refusal& refusal) {
  const bool about_keys =
      refusal.reason == RefusalReason::NoKey || refusal.reason == RefusalReason::TooManyAttempts;
  if (refusal.for_person && about_keys) {
    return {.type = "text/html; charset=utf-8", .text = login_page(refusal)};
  }
  return {
      .type = "application/problem+json",
      .text = text_of(Problem{fault_of(refusal.reason), refusal.why, status_of(refusal.reason)})};
}

}  // namespace tt
