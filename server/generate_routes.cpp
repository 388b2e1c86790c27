#include "api/generation_body.h"
#include "server/answers.h"
#include "server/routes.h"

namespace tt {

namespace {

void answer_status(httplib::Response& response, const GenerationQueue& queue, const std::string& id,
                   int status) {
  if (const auto job = queue.status(id)) return answer(response, to_json(*job), status);
  answer(response, Problem{Fault::NotFound, "There is no request \"" + id +
                                                "\" in this server's run. Recorded sessions are at "
                                                "/api/v1/sessions."});
}

}  // namespace

void add_generate_routes(httplib::Server& http, GenerationQueue& queue, Retention& retention) {
  http.Post("/api/v1/generate",
            [&queue, &retention](const httplib::Request& request, httplib::Response& response) {
              auto wanted = parse_generation_body(request.body);
              if (!wanted) return answer(response, wanted.error());
              if (const auto full = retention.refuse_session()) return answer(response, *full);
              const auto job = queue.submit(*std::move(wanted));
              if (!job) return answer(response, problem_of(job.error()));
              response.set_header("Location", "/api/v1/generate/" + job->id);
              answer(response, to_json(*job), 202);
            });
  http.Get("/api/v1/generate/:id",
           [&queue](const httplib::Request& request, httplib::Response& response) {
             answer_status(response, queue, request.path_params.at("id"), 200);
           });
  http.Delete("/api/v1/generate/:id",
              [&queue](const httplib::Request& request, httplib::Response& response) {
                const std::string& id = request.path_params.at("id");
                queue.cancel(id);
                answer_status(response, queue, id, 202);
              });
}

}  // namespace tt
