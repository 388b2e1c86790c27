#include <system_error>

#include "server/answers.h"
#include "server/door/door.h"
#include "server/routes.h"

namespace tt {

namespace {

ModelEntry entry_of(const GenerationQueue& queue) {
  const std::filesystem::path& path = queue.model_options().path;
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(path, none);
  return {.path = path.string(),
          .size = none ? 0 : size,
          .load = queue.load_state(),
          .facts = queue.facts()};
}

}  // namespace

void add_model_routes(httplib::Server& http, const GenerationQueue& queue) {
  http.Get("/api/v1/health",
           [&queue](const httplib::Request& request, httplib::Response& response) {
             Json health = health_json(entry_of(queue));
             // Whoever is not known learns whether it runs, and no more.
             if (is_stranger(request)) health = Json{{"status", health["status"]}};
             answer(response, health);
           });
  http.Get("/api/v1/models", [&queue](const httplib::Request&, httplib::Response& response) {
    answer(response, Json{{"models", Json::array({to_json(entry_of(queue))})}});
  });
}

}  // namespace tt
