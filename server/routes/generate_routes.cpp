#include <chrono>
#include <memory>
#include <string>

#include "api/json/generation_body.h"
#include "server/http/answers.h"
#include "server/routes/routes.h"

namespace tt {

namespace {

using namespace std::chrono_literals;
using Request = httplib::Request;
using Response = httplib::Response;

constexpr auto kLookEvery = 250ms;  // interval of the disconnect check

void answer_status(Response& response, const ModelShelf& shelf, const std::string& id, int status) {
  if (const auto job = shelf.status(id)) return answer(response, to_json(*job), status);
  answer(response, Problem{Fault::NotFound, "Request \"" + id +
                                                "\" not found since the server started. Recorded "
                                                "sessions are at /api/v1/sessions."});
}

std::string location_of(const std::string& id) { return "/api/v1/generate/" + id; }

// Sends the pending events. Returns false when sending fails.
bool write_events(GenerationStream& stream, httplib::DataSink& sink) {
  const std::string text = stream.read(kLookEvery);
  if (text.empty()) return sink.is_writable();
  if (!sink.write(text.data(), text.size())) return false;
  if (stream.ended()) sink.done();
  return true;
}

void generate_as_stream(ModelShelf& shelf, GenerationStreams& streams, GenerationBody wanted,
                        Response& response) {
  const std::string id = wanted.request.id = new_session_id();
  const auto stream = streams.open(id);
  if (!stream) {
    return answer(response, Problem{Fault::QueueFull,
                                    "Too many responses are being streamed. Wait for one to end, "
                                    "or omit \"stream\" and use the live WebSocket."});
  }
  const auto job = shelf.submit(wanted.model, std::move(wanted.request));
  if (!job) {
    streams.close(id);
    return answer(response, job.error());
  }
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Accel-Buffering", "no");  // disables buffering in nginx
  response.set_header("Location", location_of(id));
  response.set_chunked_content_provider(
      "text/event-stream",
      [stream](std::size_t, httplib::DataSink& sink) { return write_events(*stream, sink); },
      [&shelf, &streams, stream](bool) {
        if (!stream->ended()) shelf.cancel(stream->session());  // the client has disconnected
        streams.close(stream->session());
      });
}

void generate(ModelShelf& shelf, GenerationBody wanted, Response& response) {
  const auto job = shelf.submit(wanted.model, std::move(wanted.request));
  if (!job) return answer(response, job.error());
  response.set_header("Location", location_of(job->id));
  answer(response, to_json(*job), 202);
}

}  // namespace

void add_generate_routes(httplib::Server& http, ModelShelf& shelf, GenerationStreams& streams,
                         Retention& retention) {
  http.Get("/api/v1/generate", [&shelf](const Request&, Response& response) {
    Json rows = Json::array();
    for (const JobStatus& status : shelf.statuses()) rows.push_back(to_json(status));
    answer(response, Json{{"generations", std::move(rows)}});
  });
  http.Post("/api/v1/generate",
            [&shelf, &streams, &retention](const Request& request, Response& response) {
              auto wanted = parse_generation_body(request.body);
              if (!wanted) return answer(response, wanted.error());
              if (wanted->request.level != Level::Off) {
                if (const auto full = retention.refuse_session()) return answer(response, *full);
              }
              if (wanted->stream) {
                generate_as_stream(shelf, streams, *std::move(wanted), response);
              } else {
                generate(shelf, *std::move(wanted), response);
              }
            });
  http.Get("/api/v1/generate/:id", [&shelf](const Request& request, Response& response) {
    answer_status(response, shelf, request.path_params.at("id"), 200);
  });
  http.Delete("/api/v1/generate/:id", [&shelf](const Request& request, Response& response) {
    const std::string& id = request.path_params.at("id");
    shelf.cancel(id);
    answer_status(response, shelf, id, 202);
  });
}

}  // namespace tt
