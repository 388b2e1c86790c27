#include "analysis/weights/compression.h"
#include "api/json/gguf_weights.h"
#include "api/json/result_json.h"
#include "server/http/responses.h"
#include "server/routes/routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

void get_structure(ModelManager& model_manager, const Request& request, Response& response) {
  const std::string format =
      request.has_param("format") ? request.get_param_value("format") : "json";
  if (format != "json" && format != "csv")
    return respond(response,
                   Problem{ErrorCode::BadRequest, R"("format" must be "json" or "csv".)"});
  const auto index = model_manager.structure(request.path_params.at("model"));
  if (!index) return respond(response, index.error());
  if (format == "json") return respond(response, to_json(*index));
  response.set_header("Cache-Control", "no-store");
  response.set_content(csv_of(*index), "text/csv; charset=utf-8");
}

void get_compression(ModelManager& model_manager, const Request& request, Response& response) {
  const auto index = model_manager.structure(request.path_params.at("model"));
  if (!index) return respond(response, index.error());
  respond(response, to_json(compression(weights_of(*index))));
}

}  // namespace

void add_gguf_routes(httplib::Server& http, ModelManager& model_manager) {
  http.Get("/api/v1/models/:model/gguf",
           [&model_manager](const Request& request, Response& response) {
             get_structure(model_manager, request, response);
           });
  http.Get("/api/v1/models/:model/compression",
           [&model_manager](const Request& request, Response& response) {
             get_compression(model_manager, request, response);
           });
}

}  // namespace tt
