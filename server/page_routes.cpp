#include <string_view>

#include "server/answers.h"
#include "server/routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

bool is_api(const Request& request) { return std::string_view(request.path).starts_with("/api/"); }

void get_file(const StaticFiles& files, const Request& request, Response& response) {
  const auto file = is_api(request) ? std::nullopt : files.find(request.path);
  if (!file) {
    return answer(response, Problem{Fault::NotFound, "There is nothing at " + request.path + "."});
  }
  response.set_header("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'");
  answer(request, response, *file);
}

}  // namespace

void add_page_routes(httplib::Server& http, const StaticFiles& files) {
  http.Get("/.*", [&files](const Request& request, Response& response) {
    get_file(files, request, response);
  });
  // What the library refuses by itself: no such route, a body too large...
  http.set_error_handler([](const Request& request, Response& response) {
    if (!response.body.empty()) return;
    const int status = response.status;
    answer(response, problem_of_status(status, status == 404 ? request.method + " " + request.path +
                                                                   " does not exist."
                                                             : ""));
    response.status = status;
  });
  http.set_exception_handler(
      [](const Request&, Response& response, const std::exception_ptr& thrown) {
        std::string what = "unknown";
        try {
          std::rethrow_exception(thrown);
        } catch (const std::exception& error) {
          what = error.what();
        } catch (...) {
        }
        answer(response, Problem{Fault::Internal, "Please report this: " + what});
      });
}

}  // namespace tt
