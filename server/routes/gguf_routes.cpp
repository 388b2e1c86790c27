#include "analysis/weights/compression.h"
#include "api/json/compression_json.h"
#include "server/http/answers.h"
#include "server/routes/routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

void get_structure(ModelShelf& shelf, const Request& request, Response& response) {
  const std::string format =
      request.has_param("format") ? request.get_param_value("format") : "json";
  if (format != "json" && format != "csv")
    return answer(response, Problem{Fault::BadRequest, R"("format" must be "json" or "csv".)"});
  const auto index = shelf.structure(request.path_params.at("model"));
  if (!index) return answer(response, index.error());
  if (format == "json") return answer(response, to_json(*index));
  response.set_header("Cache-Control", "no-store");
  response.set_content(csv_of(*index), "text/csv; charset=utf-8");
}

void get_compression(ModelShelf& shelf, const Request& request, Response& response) {
  const auto index = shelf.structure(request.path_params.at("model"));
  if (!index) return answer(response, index.error());
  answer(response, to_json(compression(weights_of(*index))));
}

}  // namespace

void add_gguf_routes(httplib::Server& http, ModelShelf& shelf) {
  http.Get("/api/v1/models/:model/gguf", [&shelf](const Request& request, Response& response) {
    get_structure(shelf, request, response);
  });
  http.Get("/api/v1/models/:model/compression",
           [&shelf](const Request& request, Response& response) {
             get_compression(shelf, request, response);
           });
}

}  // namespace tt
