// Calls the routes of a server in this process, without a socket:
//
//   RouteCaller routes;
//   add_trace_routes(routes, sessions, indexes, queue);
//   const RouteAnswer answer = routes.ask("GET", "/api/v1/sessions/a/steps?from=0");
//
// An answer has the bytes that a client would receive. One thread.
#pragma once

#include <httplib.h>

#include <string>
#include <string_view>

namespace tt {

struct RouteAnswer {
  int status = 0;    // of HTTP; 0: the route sent nothing
  std::string type;  // Content-Type
  std::string body;
};

class RouteCaller final : public httplib::Server {
 public:
  // `target`: path and query, percent-encoded. `json`: the body of a POST; empty: none.
  RouteAnswer ask(std::string_view method, std::string_view target, std::string_view json = {});
};

}  // namespace tt
