// tt-server: runs models, records sessions and serves the API and the web UI on one address.
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <print>
#include <string>

#include "api/openapi/openapi.h"
#include "program/guarded_main.h"
#include "program/installation.h"
#include "server/app/api_key.h"
#include "server/app/cache_limit.h"
#include "server/app/frontend_options.h"
#include "server/app/server_options.h"
#include "server/app/service_manager.h"
#include "server/app/stop_signals.h"
#include "server/frontend/frontend.h"
#include "server/http/static_files.h"
#include "server/live/folder_watch.h"
#include "server/live/generation_streams.h"
#include "server/live/live_hub.h"
#include "server/live/session_listeners.h"
#include "server/models/debug_requests.h"
#include "server/models/model_manager.h"
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
#include "tracer/format/file/shared_memory_guard.h"
#include "tracer/sandbox/confinement.h"
#include "tracer/sandbox/sandbox.h"

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
  tt::RetentionOptions retention{.max_age = std::nullopt,
                                 .keep_bytes = options.keep_bytes,
                                 .disk_reserve = options.disk_reserve};
  if (options.keep_days)
    retention.max_age =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Days(*options.keep_days));
  return retention;
}

void log_model_change(const tt::ModelEntry& model, const tt::ServerOptions& options,
                      const tt::Log& log) {
  if (!model.warning.empty()) log.warn(model.warning);
  if (model.state == tt::ModelState::Failed) {
    log.error(model.error);
    if (model.path == options.model.path)
      log.warn("the server runs without a model: POST /api/v1/models/ID/load loads another one");
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
void print_login_url(const std::string& url, tt::HttpFrontend& frontend) {
  std::println("{}{}", url, frontend.make_login_path());
  std::fflush(stdout);
}

// Logs how access to the server is protected.
void log_key_policy(const tt::ServerOptions& options, bool requires_key, const tt::Log& log) {
  const bool has_key = !options.api_key.key.empty();
  if (requires_key && !has_key) {
    log.info(
        "an API key is required because this address is not loopback; none is set, so only login "
        "links give access. Set a key for programs with --api-key-file or TT_API_KEY.");
  }
  if (requires_key)
    log.info("the link above works once, within 10 minutes; send SIGUSR1 for another");
  if (!requires_key && (!options.public_url.empty() || !options.allowed_hosts.empty())) {
    log.warn(
        "anyone who can reach the reverse proxy has full access: on a loopback address no key is "
        "required unless --api-key-file or TT_API_KEY is set");
  }
}

// `url` is the public URL.
void run_until_stopped(tt::StopSignals& signals, const std::string& url,
                       tt::HttpFrontend& frontend) {
  for (;;) {
    const tt::Signal signal = signals.wait(24h);
    if (signal == tt::Signal::Stop) return;
    if (signal == tt::Signal::NewLogin) print_login_url(url, frontend);
  }
}

// Large blocks go back to the kernel when they are freed, so that one large request does not keep
// the server large: glibc would raise these thresholds, and Arrow's own allocator keeps some 100
// MiB after exports of Parquet files.
void set_up_malloc() {
  constexpr int kLargeBytes = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  mallopt(M_TRIM_THRESHOLD, kLargeBytes);
  // An arena for each thread, also on two processors: of two threads that share one, the thread of
  // normal priority waits while the other holds its lock and has lost the processor.
  constexpr int kArenas = 128;  // what glibc allows on 16 processors
  mallopt(M_ARENA_MAX, kArenas);
  ::setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 0);  // before the first thread
}

int run(int argc, char** argv) {
  set_up_malloc();
  const tt::Installation installation = tt::current_installation();
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
  if (!options->notice.empty()) log.warn(options->notice);
  options->api_key.key = key->key;
  tt::load_backends([library = log.of("llama.cpp")](tt::LibraryLine kind, std::string_view line) {
    library.write(level_of(kind), line);
  });
  tt::CrashMarker crash_marker(options->data_dir / "crashed-models");
  crash_marker.install();
  tt::guard_shared_memory();
  // From here on sessions are opened.
  if (!prepare_folder(options->data_dir, log)) return 1;

  tt::SessionStore sessions(options->data_dir, options->sessions);
  tt::CacheRoom caches;
  tt::IndexCache indexes(caches);
  tt::TotalsCache totals(caches);
  tt::CacheLimitFollower cache_limit(caches,
                                     [reader = tt::MemoryLimitReader()] { return reader.read(); });
  tt::QueryQueue queue(caches);
  tt::Sandbox sandbox(installation.worker);
  sandbox.prepare();
  if (const std::string missing = tt::missing_confinement(); !missing.empty())
    log.info("child processes are less confined (docs/limits.md)", {{"reason", missing}});
  tt::StatementCheck statements(&sandbox);
  tt::Retention retention(
      sessions, retention_of(*options), [&log](const tt::RemovedSession& removed) {
        log.info("removed a session",
                 {{"session", removed.id}, {"bytes", removed.bytes}, {"reason", removed.reason}});
      });
  const tt::StaticFiles page(options->page);
  const tt::RouteContract contract(tt::openapi_json());
  tt::LiveHub hub;
  tt::HttpFrontendOptions frontend_options = tt::frontend_options(*options);
  frontend_options.log = [library = log.of("libwebsockets")](std::string_view line) {
    library.debug(line);
  };
  tt::Metrics metrics;
  frontend_options.on_status = [&metrics](const tt::RequestRecord& record) {
    metrics.count_request(record.method, tt::route_label(record), record.status);
  };
  frontend_options.on_complete = [&log, &cache_limit](const tt::RequestRecord& record) {
    tt::log_access(log, record);
    constexpr auto kExpensive = 10ms;
    if (record.time >= kExpensive && !record.route.empty()) cache_limit.memory_was_freed();
  };
  frontend_options.websocket_message_bytes = tt::kMaxCommandBytes;
  tt::HttpFrontend frontend(frontend_options, hub);
  tt::CheckedModels checked_models(options->data_dir / "checked-models");
  tt::SessionLog session_log(log);
  tt::GenerationStreams streams;
  tt::SessionListeners listeners({&hub, &streams, &metrics, &session_log});
  tt::ModelManager model_manager(
      {.folder = options->models_dir,
       .model = options->model,
       .context = options->context,
       .max_loaded = options->models_max,
       .data_dir = options->data_dir,
       .self_check_model = installation.bundled_model,
       .sandbox = &sandbox,
       .check_models = true,
       .checked_models = &checked_models,
       .crash_marker = &crash_marker,
       .on_change = [&log,
                     &options](const tt::ModelEntry& m) { log_model_change(m, *options, log); }},
      listeners);
  hub.start({.send = [&](auto client, auto opcode,
                         auto message) { return frontend.send(client, opcode, message); },
             .close = [&](auto client, auto code) { frontend.close(client, code); },
             .pause = [&](auto client, auto time) { frontend.pause(client, time); },
             .status = [&](const std::string& id) { return model_manager.status(id); },
             .in_flight = [&](const std::string& id,
                              std::uint32_t from) { return model_manager.in_flight(id, from); },
             .open = [&](const std::string& id) { return sessions.open(id); },
             .debug =
                 [&](const std::string& id, const std::optional<tt::DebugCommand>& command) {
                   return tt::debug_request(model_manager, id, command);
                 }});
  std::optional<tt::FolderWatch> folder_watch(
      std::in_place, sessions, hub,
      [&](const std::string& id) { return model_manager.status(id).has_value(); });
  tt::add_all_routes(frontend.http(), {.recorded = {.sessions = sessions,
                                                    .retention = retention,
                                                    .caches = caches,
                                                    .indexes = indexes,
                                                    .totals = totals,
                                                    .queue = queue,
                                                    .statements = statements,
                                                    .page = page},
                                       .model_manager = model_manager,
                                       .streams = streams,
                                       .hub = hub,
                                       .metrics = metrics,
                                       .page = page,
                                       .contract = contract,
                                       .data_dir = options->data_dir,
                                       .program_file = options->program_file,
                                       .log_lines_lost = [&log] { return log.lines_lost(); }});

  retention.start();
  const auto address = frontend.start(options->host, options->port);
  if (!address) {
    log.error(address.error().message);
    return 1;
  }
  const std::string url = options->public_url.empty() ? address->url() : options->public_url;
  print_login_url(url, frontend);
  log_key_policy(*options, frontend.requires_key(), log);
  log.info("listening", {{"url", url}, {"data_dir", options->data_dir.string()}});
  tt::notify_service_manager("READY=1");

  run_until_stopped(signals, url, frontend);
  tt::notify_service_manager("STOPPING=1");
  log.info("stopping; a second signal exits immediately");
  signals.begin_stop(8s);
  signals.stage("finishing the running session");
  queue.stop();
  model_manager.stop();  // finishes the running session's file
  folder_watch.reset();
  signals.stage("ending requests");
  hub.stop();         // queues its last messages for the clients
  frontend.stop(2s);  // shorter than the 8 s above: requests are ended, not the process
  signals.stage("ending removals");
  retention.stop();
  signals.stage("ending the queue of requests");
  queue.join();
  signals.stage("finishing files");
  sessions.finish_files(tt::SessionStore::FinishFiles::All);  // no reader is left
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tt::guarded_main("tt-server", [&] { return run(argc, argv); });
}
