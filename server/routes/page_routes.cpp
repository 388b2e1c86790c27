#include <string_view>

#include "server/http/answers.h"
#include "server/routes/routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

bool is_api(const Request& request) { return std::string_view(request.path).starts_with("/api/"); }

// Nothing is at the path, or nothing that takes the method.
void answer_not_there(const RouteContract& contract, const Request& request, Response& response) {
  const std::string methods = contract.methods_of(request.path);
  if (methods.empty()) {
    return answer(response, Problem{Fault::NotFound, "There is nothing at " + request.path +
                                                         ". /api/docs lists what there is."});
  }
  response.set_header("Allow", methods);
  answer(response, Problem{Fault::MethodNotAllowed, request.path + " takes " + methods + "."});
}

// What the library refuses without a word about it.
std::string detail_of(int status) {
  switch (status) {
    case 413:
      return "The body is larger than this route takes.";
    case 414:
      return "The address is longer than 8 KiB.";
    case 415:
      return "The body's encoding is not taken here; send it as it is.";
    default:
      return "This is not a well-formed HTTP/1.1 request, or its body does not end as announced.";
  }
}

void get_file(const StaticFiles& files, const RouteContract& contract, const Request& request,
              Response& response) {
  const auto file = is_api(request) ? std::nullopt : files.find(request.path);
  if (!file) return answer_not_there(contract, request, response);
  answer(request, response, *file);
}

}  // namespace

void add_page_routes(httplib::Server& http, const StaticFiles& files,
                     const RouteContract& contract) {
  refuse_unknown_parameters(http, contract);
  http.Get("/.*", [&](const Request& request, Response& response) {
    get_file(files, contract, request, response);
  });
  // What the library refuses by itself: no such route, a body too large...
  http.set_error_handler([&contract](const Request& request, Response& response) {
    if (!response.body.empty()) return;
    const int status = response.status;
    if (status == 404) return answer_not_there(contract, request, response);
    answer(response, problem_of_status(status, detail_of(status)));
  });
  http.set_exception_handler(
      [](const Request&, Response& response, const std::exception_ptr& thrown) {
        std::string what;
        try {
          std::rethrow_exception(thrown);
        } catch (const std::exception& error) {
          what = error.what();
        } catch (...) {
          what = "unknown";
        }
        answer(response, Problem{Fault::Internal, "Please report this: " + what});
      });
}

}  // namespace tt
