#include "api/json/memory_json.h"
#include "server/frontend/frontend.h"
#include "server/http/responses.h"
#include "server/routes/routes.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

const std::string& model_of(const Request& request) { return request.path_params.at("model"); }

void respond_model(Response& response, const std::expected<ModelEntry, Problem>& model,
                   int status) {
  if (!model) return respond(response, model.error());
  if (status == 202) response.set_header("Location", "/api/v1/models/" + model->id);
  respond(response, to_json(*model), status);
}

template <class Value>
void respond_json(Response& response, const std::expected<Value, Problem>& value) {
  if (value) {
    respond(response, to_json(*value));
  } else {
    respond(response, value.error());
  }
}

}  // namespace

void add_model_routes(httplib::Server& http, ModelManager& model_manager) {
  http.Get("/api/v1/health", [&model_manager](const Request& request, Response& response) {
    Json health = health_json(model_manager.current());
    // Unauthenticated clients get only the status.
    if (is_unauthenticated(request)) health = Json{{"status", health["status"]}};
    respond(response, health);
  });
  http.Get("/api/v1/models", [&model_manager](const Request&, Response& response) {
    const std::string folder = model_manager.options().folder.string();
    Json rows = Json::array();
    for (const ModelEntry& model : model_manager.models()) rows.push_back(to_json(model));
    respond(response,
            Json{{"folder", folder.empty() ? Json() : Json(folder)}, {"models", std::move(rows)}});
  });
  http.Get("/api/v1/models/:model", [&model_manager](const Request& request, Response& response) {
    respond_model(response, model_manager.model(model_of(request)), 200);
  });
  http.Get("/api/v1/models/:model/memory",
           [&model_manager](const Request& request, Response& response) {
             respond_json(response, model_manager.memory(model_of(request)));
           });
  http.Patch("/api/v1/models/:model/memory",
             [&model_manager](const Request& request, Response& response) {
               const std::string& id = model_of(request);
               respond_json(response, model_manager.memory(id)
                                          .and_then([&](const MemoryState& state) {
                                            return parse_memory_body(request.body, state.options);
                                          })
                                          .and_then([&](const MemoryOptions& options) {
                                            return model_manager.set_memory(id, options);
                                          }));
             });
  http.Get("/api/v1/models/:model/memory/plan",
           [&model_manager](const Request& request, Response& response) {
             respond_json(response, model_manager.memory_map(model_of(request)));
           });
  http.Post("/api/v1/models/:model/memory/access-pattern", [&model_manager](const Request& request,
                                                                            Response& response) {
    respond_json(response, model_manager.set_access_pattern(model_of(request), request.body));
  });
  http.Post("/api/v1/models/:model/load",
            [&model_manager](const Request& request, Response& response) {
              respond_model(response, model_manager.load(model_of(request)), 202);
            });
  http.Post("/api/v1/models/:model/unload",
            [&model_manager](const Request& request, Response& response) {
              respond_model(response, model_manager.unload(model_of(request)), 202);
            });
}

}  // namespace tt
