// What is said about sessions as a whole: whether a recording is sound.
#include "analysis/validation.h"
#include "api/validation_json.h"
#include "server/routes.h"
#include "server/session_question.h"

namespace tt {

void add_report_routes(httplib::Server& http, SessionStore& sessions) {
  http.Get("/api/v1/sessions/:id/validation",
           [&sessions](const httplib::Request& request, httplib::Response& response) {
             const std::string& id = request.path_params.at("id");
             if (unchanged(request, response, sessions.tag(id))) return;
             const auto file = sessions.file(id);
             if (!file) return answer(response, problem_of(file.error()));
             const auto validation = validate(file->path, while_connected(request));
             if (!validation) return answer(response, problem_of(validation.error()));
             answer(response, to_json(*validation));
           });
}

}  // namespace tt
