// tt-server: runs models, records sessions and serves the API and the web UI on one address.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <print>
#include <string>

#include "api/openapi/openapi.h"
#include "program/installation.h"
#include "server/app/api_key.h"
#include "server/app/door_options.h"
#include "server/app/server_options.h"
#include "server/app/service_manager.h"
#include "server/app/stop_signals.h"
#include "server/door/door.h"
#include "server/http/static_files.h"
#include "server/live/generation_streams.h"
#include "server/live/live_hub.h"
#include "server/live/session_listeners.h"
#include "server/models/model_shelf.h"
#include "server/observability/access_log.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/observability/session_log.h"
#include "server/routes/routes.h"
#include "server/sessions/retention.h"
#include "server/sessions/session_store.h"
#include "server/sessions/work_folder.h"
#include "tracer/engine/backends.h"
#include "tracer/format/file/session_reader.h"

namespace {

using namespace std::chrono_literals;

// Maps library messages one level down: this program logs the important events itself.
tt::LogLevel level_of(tt::LibraryLine kind) {
  switch (kind) {
    case tt::LibraryLine::Debug:
    case tt::LibraryLine::Info:
      return tt::LogLevel::Trace;
    case tt::LibraryLine::Warning:
      return tt::LogLevel::Debug;
    case tt::LibraryLine::Error:
      return tt::LogLevel::Warning;
  }
  return tt::LogLevel::Warning;
}

// Creates the session folder and recovers unfinished sessions. Returns false, after logging
// the error, when the folder cannot be used.
bool prepare_folder(const std::filesystem::path& folder, const tt::Log& log) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    log.error("the session folder cannot be created; choose another with --data-dir",
              {{"folder", folder.string()}, {"reason", failed.message()}});
    return false;
  }
  if (access(folder.c_str(), W_OK) != 0) {
    log.warn(
        "the session folder is not writable: existing sessions can be read, new ones are not "
        "recorded; choose another with --data-dir",
        {{"folder", folder.string()}, {"reason", std::strerror(errno)}});
    return true;
  }
  const auto recovered = tt::recover_sessions(folder);
  if (!recovered) {
    log.warn(recovered.error().message);
    return true;
  }
  tt::WorkFolder::remove_abandoned(folder);
  for (const auto& session : *recovered) {
    log.info("recovered a session that an earlier run did not finish",
             {{"session", session.path.stem().string()}, {"steps", session.steps}});
  }
  return true;
}

tt::RetentionOptions retention_of(const tt::ServerOptions& options) {
  using Days = std::chrono::duration<double, std::chrono::days::period>;
  tt::RetentionOptions retention{.keep_for = std::nullopt,
                                 .keep_bytes = options.keep_bytes,
                                 .disk_reserve = options.disk_reserve};
  if (options.keep_days)
    retention.keep_for =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Days(*options.keep_days));
  return retention;
}

void tell_change(const tt::ModelEntry& model, const tt::Log& log) {
  if (!model.warning.empty()) log.warn(model.warning);
  if (model.state == tt::ModelState::Failed) {
    log.error(model.error);
  } else if (model.facts) {
    log.info("the model is loaded", {{"model", model.id},
                                     {"description", model.facts->description},
                                     {"context", model.facts->context},
                                     {"threads", model.facts->threads}});
  } else {
    log.info("the model is unloaded", {{"model", model.id}});
  }
}

// Prints the URL to stdout, with a login link when a key is required.
void print_address(const std::string& url, tt::Door& door) {
  std::println("{}{}", url, door.make_login_path());
  std::fflush(stdout);
}

// Logs how access to the server is protected.
void tell_about_key(const tt::ServerOptions& options, bool asks, const tt::Log& log) {
  const bool given = !options.api_key.key.empty();
  if (asks && !given) {
    log.info(
        "an API key is required because this address is not loopback; none is set, so only login "
        "links give access. Set a key for programs with --api-key-file or TT_API_KEY");
  }
  if (asks) log.info("the link above works once, within 10 minutes; send SIGUSR1 for another");
  if (!asks && (!options.public_url.empty() || !options.allowed_hosts.empty())) {
    log.warn(
        "anyone who can reach the reverse proxy has full access: on a loopback address no key is "
        "required unless --api-key-file or TT_API_KEY is set");
  }
}

// `url` is the public URL.
void run_until_stopped(tt::StopSignals& signals, const std::string& url, tt::Door& door) {
  for (;;) {
    const tt::Signal signal = signals.wait(24h);
    if (signal == tt::Signal::Stop) return;
    if (signal == tt::Signal::NewLogin) print_address(url, door);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const tt::Installation installation = tt::installation_of_this_program();
  auto options = tt::parse_server_options(argc, argv, installation);
  if (!options) return options.error();
  tt::StopSignals signals;
  const tt::Log log(options->log);
  const auto key = tt::load_api_key(options->api_key);
  if (!key) {
    log.error(key.error());
    return 2;
  }
  if (!key->notice.empty()) log.info(key->notice);
  options->api_key.key = key->key;
  tt::load_backends([library = log.of("llama.cpp")](tt::LibraryLine kind, std::string_view line) {
    library.write(level_of(kind), line);
  });
  if (!prepare_folder(options->data_dir, log)) return 1;

  tt::SessionStore sessions(options->data_dir, options->sessions);
  tt::IndexShelf indexes;
  tt::TotalsShelf totals;
  tt::Retention retention(sessions, retention_of(*options), [&log](const tt::RemovedSession& gone) {
    log.info("removed a session",
             {{"session", gone.id}, {"bytes", gone.bytes}, {"reason", gone.reason}});
  });
  const tt::StaticFiles page(options->page);
  const tt::RouteContract contract(tt::openapi_json());
  tt::LiveHub hub;
  tt::DoorOptions door_options = tt::door_options(*options);
  door_options.log = [library = log.of("libwebsockets")](std::string_view line) {
    library.debug(line);
  };
  tt::Metrics metrics;
  door_options.on_status = [&metrics](const tt::Answered& answered) {
    metrics.count_request(answered.method, tt::route_label(answered), answered.status);
  };
  door_options.on_answer = [&log](const tt::Answered& answered) { tt::log_answer(log, answered); };
  door_options.websocket_message_bytes = tt::kMostCommandBytes;
  tt::Door door(door_options, hub);
  tt::SessionLog session_log(log);
  tt::GenerationStreams streams;
  tt::SessionListeners listeners({&hub, &streams, &metrics, &session_log});
  tt::ModelShelf shelf({.folder = options->models_dir,
                        .model = options->model,
                        .context = options->context,
                        .most_loaded = options->models_max,
                        .data_dir = options->data_dir,
                        .checker = installation.checker,
                        .self_check_model = installation.bundled_model,
                        .on_change = [&log](const tt::ModelEntry& m) { tell_change(m, log); }},
                       listeners);
  hub.start({.send = [&](auto client, auto opcode,
                         auto message) { return door.send(client, opcode, message); },
             .close = [&](auto client, auto code) { door.close(client, code); },
             .pause = [&](auto client, auto time) { door.pause(client, time); },
             .status = [&](const std::string& id) { return shelf.status(id); },
             .in_flight = [&](const std::string& id,
                              std::uint32_t from) { return shelf.in_flight(id, from); },
             .open = [&](const std::string& id) { return sessions.open(id); }});
  tt::add_model_routes(door.http(), shelf);
  tt::add_gguf_routes(door.http(), shelf);
  tt::add_generate_routes(door.http(), shelf, streams, retention);
  tt::add_session_routes(door.http(), sessions);
  tt::add_session_file_routes(door.http(), sessions, retention);
  tt::add_export_routes(door.http(), sessions, retention);
  tt::add_server_routes(door.http(), retention, options->data_dir, [&](tt::ServerFacts& facts) {
    facts.live_clients = static_cast<std::uint32_t>(hub.connected());
    facts.models_dir = options->models_dir.string();
    facts.models_loaded_limit = static_cast<std::uint32_t>(options->models_max);
    facts.queue_limit = tt::GenerationQueue::kMostQueued;
  });
  tt::add_trace_routes(door.http(), sessions, indexes);
  tt::add_heat_routes(door.http(), sessions, indexes);
  tt::add_query_routes(door.http(), sessions, totals);
  tt::add_graph_routes(door.http(), sessions);
  tt::add_expert_routes(door.http(), sessions);
  tt::add_head_routes(door.http(), sessions);
  tt::add_pattern_routes(door.http(), sessions);
  tt::add_report_routes(door.http(), sessions, indexes);
  tt::add_metrics_routes(door.http(), metrics,
                         {.live_clients = [&] { return hub.connected(); },
                          .live_frames_lost = [&] { return hub.figures().lost; },
                          .log_lines_lost = [&] { return log.lines_lost(); },
                          .data_dir = options->data_dir});
  tt::add_docs_routes(door.http(), page);
  tt::add_page_routes(door.http(), page, contract);

  retention.start();
  const auto address = door.start(options->host, options->port);
  if (!address) {
    log.error(address.error().message);
    return 1;
  }
  const std::string url = options->public_url.empty() ? address->url() : options->public_url;
  print_address(url, door);
  tell_about_key(*options, door.asks_for_key(), log);
  log.info("listening", {{"url", url}, {"data_dir", options->data_dir.string()}});
  tt::tell_service_manager("READY=1");

  run_until_stopped(signals, url, door);
  tt::tell_service_manager("STOPPING=1");
  log.info("stopping; a second signal exits immediately");
  signals.insist(5s);
  shelf.stop();   // finishes the running session's file
  hub.stop();     // queues its last messages for the clients
  door.stop(2s);  // shorter than the 5 s above, so that the file can be finished
  return 0;
}
