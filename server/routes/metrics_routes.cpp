#include <httplib.h>

#include "server/routes/routes.h"

namespace tt {

void add_metrics_routes(httplib::Server& http, const Metrics& metrics, MetricsCallbacks callbacks) {
  http.Get("/metrics", [&metrics, callbacks = std::move(callbacks)](const httplib::Request&,
                                                                    httplib::Response& response) {
    response.set_header("Cache-Control", "no-store");
    response.set_content(metrics.text(callbacks), "text/plain; version=0.0.4; charset=utf-8");
  });
}

}  // namespace tt
