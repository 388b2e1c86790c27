#include <chrono>
#include <memory>
#include <string>

#include "api/json/generation_body.h"
#include "server/http/responses.h"
#include "server/routes/routes.h"

namespace tt {

namespace {

using namespace std::chrono_literals;
using Request = httplib::Request;
using Response = httplib::Response;

constexpr auto kDisconnectCheckInterval = 250ms;  // interval of the disconnect check

void respond_status(Response& response, const ModelManager& model_manager, const std::string& id,
                    int status) {
  if (const auto job = model_manager.status(id)) return respond(response, to_json(*job), status);
  respond(response,
          Problem{ErrorCode::NotFound, "No request \"" + id +
                                           "\" was made since the server started. GET "
                                           "/api/v1/sessions lists the recorded sessions."});
}

std::string location_of(const std::string& id) { return "/api/v1/generate/" + id; }

// Sends the pending events. Returns false when sending fails.
bool write_events(GenerationStream& stream, httplib::DataSink& sink) {
  const std::string text = stream.read(kDisconnectCheckInterval);
  if (text.empty()) return sink.is_writable();
  if (!sink.write(text.data(), text.size())) return false;
  if (stream.ended()) sink.done();
  return true;
}

void generate_as_stream(ModelManager& model_manager, GenerationStreams& streams,
                        GenerationBody body, Response& response) {
  const std::string id = body.request.id = new_session_id();
  const auto stream = streams.open(id);
  if (!stream) {
    return respond(response, Problem{ErrorCode::QueueFull,
                                     "Too many responses are being streamed. Wait for one to end, "
                                     "or omit \"stream\" and use the live WebSocket."});
  }
  const auto job = model_manager.submit(body.model, std::move(body.request));
  if (!job) {
    streams.close(id);
    return respond(response, job.error());
  }
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Accel-Buffering", "no");  // disables buffering in nginx
  response.set_header("Location", location_of(id));
  response.set_chunked_content_provider(
      "text/event-stream",
      [stream](std::size_t, httplib::DataSink& sink) { return write_events(*stream, sink); },
      [&model_manager, &streams, stream](bool) {
        if (!stream->ended())
          model_manager.cancel(stream->session());  // the client has disconnected
        streams.close(stream->session());
      });
}

void generate(ModelManager& model_manager, GenerationBody body, Response& response) {
  const auto job = model_manager.submit(body.model, std::move(body.request));
  if (!job) return respond(response, job.error());
  response.set_header("Location", location_of(job->id));
  respond(response, to_json(*job), 202);
}

}  // namespace

void add_generate_routes(httplib::Server& http, ModelManager& model_manager,
                         GenerationStreams& streams, Retention& retention) {
  http.Get("/api/v1/generate", [&model_manager](const Request&, Response& response) {
    Json rows = Json::array();
    for (const JobStatus& status : model_manager.statuses()) rows.push_back(to_json(status));
    respond(response, Json{{"generations", std::move(rows)}});
  });
  http.Post("/api/v1/generate",
            [&model_manager, &streams, &retention](const Request& request, Response& response) {
              auto body = parse_generation_body(request.body);
              if (!body) return respond(response, body.error());
              if (body->request.level != Level::Off) {
                if (const auto full = retention.check_session_space())
                  return respond(response, *full);
              }
              if (body->stream) {
                generate_as_stream(model_manager, streams, *std::move(body), response);
              } else {
                generate(model_manager, *std::move(body), response);
              }
            });
  http.Get("/api/v1/generate/:id", [&model_manager](const Request& request, Response& response) {
    respond_status(response, model_manager, request.path_params.at("id"), 200);
  });
  http.Delete("/api/v1/generate/:id", [&model_manager](const Request& request, Response& response) {
    const std::string& id = request.path_params.at("id");
    model_manager.cancel(id);
    respond_status(response, model_manager, id, 202);
  });
}

}  // namespace tt
