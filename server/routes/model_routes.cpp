#include "server/door/door.h"
#include "server/http/answers.h"
#include "server/routes/routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

const std::string& model_of(const Request& request) { return request.path_params.at("model"); }

void answer_model(Response& response, const std::expected<ModelEntry, Problem>& model, int status) {
  if (!model) return answer(response, model.error());
  if (status == 202) response.set_header("Location", "/api/v1/models/" + model->id);
  answer(response, to_json(*model), status);
}

}  // namespace

void add_model_routes(httplib::Server& http, ModelShelf& shelf) {
  http.Get("/api/v1/health", [&shelf](const Request& request, Response& response) {
    Json health = health_json(shelf.current());
    // Unauthenticated clients get only the status.
    if (is_stranger(request)) health = Json{{"status", health["status"]}};
    answer(response, health);
  });
  http.Get("/api/v1/models", [&shelf](const Request&, Response& response) {
    const std::string folder = shelf.options().folder.string();
    Json rows = Json::array();
    for (const ModelEntry& model : shelf.models()) rows.push_back(to_json(model));
    answer(response,
           Json{{"folder", folder.empty() ? Json() : Json(folder)}, {"models", std::move(rows)}});
  });
  http.Get("/api/v1/models/:model", [&shelf](const Request& request, Response& response) {
    answer_model(response, shelf.model(model_of(request)), 200);
  });
  http.Post("/api/v1/models/:model/load", [&shelf](const Request& request, Response& response) {
    answer_model(response, shelf.load(model_of(request)), 202);
  });
  http.Post("/api/v1/models/:model/unload", [&shelf](const Request& request, Response& response) {
    answer_model(response, shelf.unload(model_of(request)), 202);
  });
}

}  // namespace tt
