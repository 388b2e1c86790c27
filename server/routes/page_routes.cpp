#include <string>
#include <string_view>

#include "server/http/responses.h"
#include "server/routes/session_routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr std::string_view kLivePath = "/api/v1/live";

bool is_api(const Request& request) { return std::string_view(request.path).starts_with("/api/"); }

// 404 when the path does not exist, 405 when it does not support the method.
void respond_not_found(const RouteContract& contract, const Request& request, Response& response) {
  const std::string methods = contract.methods_of(request.path);
  if (request.path == kLivePath) {
    return respond(response, Problem{ErrorCode::NotFound,
                                     std::string(kLivePath) +
                                         " is a WebSocket: connect to it with ws:// or wss://.",
                                     426});
  }
  if (methods.empty()) {
    const std::string similar = contract.similar_path(request.path);
    const std::string hint = similar.empty() ? "" : " Did you mean " + similar + "?";
    return respond(response, Problem{ErrorCode::NotFound, request.path + " not found." + hint +
                                                              " /api/docs lists the routes."});
  }
  response.set_header("Allow", methods);
  respond(response,
          Problem{ErrorCode::MethodNotAllowed, request.path + " supports only " + methods + "."});
}

// Details for errors that the HTTP library reports without a message.
std::string detail_of(int status) {
  switch (status) {
    case 413:
      return "The body is larger than the maximum of this route.";
    case 414:
      return "The URL is longer than 8 KiB.";
    case 415:
      return "The Content-Encoding is not supported. Send the body without encoding.";
    default:
      return "Malformed HTTP/1.1 request, or the body does not match its announced length.";
  }
}

void get_file(const StaticFiles& files, const RouteContract& contract, const Request& request,
              Response& response) {
  const auto file = is_api(request) ? std::nullopt : files.find(request.path);
  if (!file) return respond_not_found(contract, request, response);
  respond(request, response, *file);
}

}  // namespace

void add_page_routes(httplib::Server& http, const StaticFiles& files,
                     const RouteContract& contract) {
  constexpr const char* kPage = "/.*";
  // Called before the handler of a route.
  http.set_pre_request_handler([&contract](const Request& request, Response& response) {
    if (request.matched_route != kPage && contract.methods_of(request.path).empty()) {
      respond_not_found(contract, request, response);
    } else if (const auto rejected = contract.check_query(request)) {
      respond(response, *rejected);
    } else {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    return httplib::Server::HandlerResponse::Handled;
  });
  // With a key, the front end handles this path; without one there is no need to log in.
  http.Get("/login", [&](const Request& request, Response& response) {
    if (const auto page = files.find("/")) respond(request, response, *page);
  });
  http.Get(kPage, [&](const Request& request, Response& response) {
    get_file(files, contract, request, response);
  });
  // Errors of the HTTP library: unknown route, body too large, ...
  http.set_error_handler([&contract](const Request& request, Response& response) {
    if (!response.body.empty()) return;
    const int status = response.status;
    if (status == 404) return respond_not_found(contract, request, response);
    respond(response, problem_of_status(status, detail_of(status)));
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
        respond(response, Problem{ErrorCode::Internal,
                                  "The server has a defect. Please report this message: " + what});
      });
}

}  // namespace tt
