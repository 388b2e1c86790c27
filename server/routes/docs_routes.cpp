#include <string>

#include "api/openapi/openapi.h"
#include "server/http/responses.h"
#include "server/routes/routes.h"

namespace tt {

namespace {

// The style sheet of Swagger UI contains icons as data: images. Scripts and styles are loaded
// only from this server.
constexpr const char* kPolicy =
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'";

constexpr const char* kNotBuilt = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>tensor-trace: API reference</title>
<h1>The API reference page is not built</h1>
<p>Build it with <code>./tt build</code> in the source tree, or set the folder of a built web UI
with <code>--path</code>. Then reload.</p>
<p>The OpenAPI document is at <a href="openapi.json">/api/openapi.json</a>.</p>
</html>
)";

StaticFile docs_page(const StaticFiles& page) {
  if (auto file = page.find("/docs/index.html")) return *std::move(file);
  return {.body = kNotBuilt,
          .type = "text/html; charset=utf-8",
          .cache = "no-store",
          .etag = etag_of(kNotBuilt)};
}

}  // namespace

void add_docs_routes(httplib::Server& http, const StaticFiles& page) {
  http.Get("/api/openapi.json", [file = StaticFile{.body = std::string(openapi_json()),
                                                   .type = "application/json",
                                                   .cache = "no-cache",
                                                   .etag = etag_of(openapi_json())}](
                                    const httplib::Request& request, httplib::Response& response) {
    respond(request, response, file);
  });
  http.Get("/api/docs", [&page](const httplib::Request& request, httplib::Response& response) {
    response.set_header("Content-Security-Policy", kPolicy);
    respond(request, response, docs_page(page));
  });
}

}  // namespace tt
