#include "server/app/server_options.h"

#include <algorithm>
#include <cstdlib>
#include <format>
#include <map>
#include <string>
#include <string_view>

#include "api/json/version.h"
#include "program/command_line.h"
#include "program/tracer_options.h"
#include "program/validators.h"
#include "server/frontend/origin_policy.h"

namespace tt {

namespace {

constexpr double kMaxDays = 100'000;  // converted to ns, it fits in 64 bits

// $XDG_DATA_HOME/tensor-trace/sessions, or its fallback from the XDG specification; relative if
// neither variable is set.
std::filesystem::path default_data_dir() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && *data == '/')
    return std::filesystem::path(data) / "tensor-trace" / "sessions";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/')
    return std::filesystem::path(home) / ".local" / "share" / "tensor-trace" / "sessions";
  return "sessions";
}

// Validator: normalizes `text` to an origin as browsers send it, or returns an error.
std::string normalize_origin(std::string& text) {
  const auto origin = parse_origin(text);
  if (!origin)
    return "must be an origin such as https://name or http://name:8080, not '" + text + "'";
  text = *origin;
  return "";
}

// Validator, as above, for an origin of frame-ancestors.
std::string normalize_embed_origin(std::string& text) {
  const auto origin = parse_embed_origin(text);
  if (!origin)
    return "must be an origin with a host name or an IPv4 address, such as https://name or "
           "http://name:8080, not '" +
           text + "'";
  text = *origin;
  return "";
}

// Other users can see the arguments of a process.
void hide_key(int argc, char** argv) {
  constexpr std::string_view kName = "--api-key";
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (!argument.starts_with(kName)) continue;
    argument.remove_prefix(kName.size());
    if (argument.starts_with('=')) {
      std::fill_n(argv[i] + kName.size() + 1, argument.size() - 1, '*');
    } else if (argument.empty() && i + 1 < argc) {
      std::fill_n(argv[i + 1], std::string_view(argv[i + 1]).size(), '*');
    }
  }
  unsetenv("TT_API_KEY");
}

}  // namespace

std::unique_ptr<CLI::App> make_server_app(ServerOptions& options) {
  auto app = std::make_unique<CLI::App>(
      "Runs a model and shows its memory accesses, live and from recordings.", "tt-server");
  app->set_version_flag("--version", std::string("tt-server ") + kVersion);
  app->add_option("sessions", options.sessions,
                  "Additional session files (.ttrace), or folders with session files, opened "
                  "read-only. If any is given, no model is loaded unless --model is set")
      ->check([](const std::string& path) {
        return path.ends_with(".gguf") ? std::format("'{0}' is a model. Give it with -m {0}", path)
                                       : std::string();
      })
      ->check(existing_path())
      ->type_name("FILE");
  app->option_defaults()->group("Model");
  add_model_options(*app, options.model);
  auto* model = app->get_option("--model");
  model->description(
      "GGUF file to load at startup (default: the bundled model; none if --models-dir or session "
      "files are given)");
  app->add_option("--models-dir", options.models_dir,
                  "Folder with further models: every .gguf file below it can be loaded on request")
      ->check(existing_folder())
      ->type_name("DIR");
  app->add_option(
         "--models-max", options.models_max,
         "Maximum number of loaded models; to load another, the one idle longest is unloaded")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app->add_flag("--no-model", options.no_model, "Do not load a model at startup")->excludes(model);
  app->option_defaults()->group("Context");
  add_context_options(*app, options.context);
  app->option_defaults()->group("Server");
  app->add_option("--host", options.host,
                  "Address to listen on; other than on loopback, clients need the API key "
                  "or the login link")
      ->transform(CLI::Validator(
          [](std::string& host) {  // as in an address: [::1]
            if (host.starts_with('[') && host.ends_with(']'))
              host = host.substr(1, host.size() - 2);
            return std::string();
          },
          ""))
      ->capture_default_str();
  app->add_option("--port", options.port, "Port to listen on; 0 selects a free port")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  app->add_option("--allowed-host", options.allowed_hosts,
                  "Additional accepted values of the Host header, for example behind a proxy")
      ->delimiter(',')
      ->type_name("NAME");
  app->add_option("--api-key", options.api_key.key,
                  "API key that programs send (Authorization: Bearer KEY), at least 16 characters. "
                  "Prefer TT_API_KEY or --api-key-file: other users can see arguments. Without a "
                  "key, a loopback address needs no login; any other address needs the login link")
      ->type_name("KEY");
  auto* key = app->get_option("--api-key");
  app->add_option("--api-key-file", options.api_key.file,
                  "File with the API key; created with a random key if it does not exist")
      ->excludes(key)
      ->type_name("FILE");
  app->add_option("--public-url", options.public_url,
                  "URL of this server behind a reverse proxy, such as https://trace.example; see "
                  "docs/behind-a-proxy.md")
      ->transform(CLI::Validator(&normalize_origin, ""))
      ->type_name("URL");
  app->add_option("--cors-origins", options.cors_origins,
                  "Origins whose pages may use the API, such as https://notes.example,...; may be "
                  "repeated (default: none)")
      ->transform(CLI::Validator(&normalize_origin, ""))
      ->delimiter(',')
      ->type_name("ORIGIN");
  app->add_option(
         "--embed-origins", options.embed_origins,
         "Origins whose pages may show the page in a frame, such as https://wiki.example,...; "
         "may be repeated (default: none); see docs/operation.md")
      ->transform(CLI::Validator(&normalize_embed_origin, ""))
      ->delimiter(',')
      ->type_name("ORIGIN");
  app->add_option("--max-connections", options.max_connections,
                  "Maximum number of HTTP connections; one client can use at most half of them")
      ->check(whole_number(2, 100'000))
      ->capture_default_str();
  app->add_option("--max-live-clients", options.max_live_clients,
                  "Maximum number of WebSockets; one client can use at most half of them")
      ->check(whole_number(2, 10'000))
      ->capture_default_str();
  app->add_option("--data-dir", options.data_dir, "Folder for recorded sessions")
      ->type_name("DIR")
      ->capture_default_str();
  app->add_option("--program-file", options.program_file,
                  "What tt attach --live writes about the program that it records")
      ->group("");
  app->add_option("--keep-days", options.keep_days,
                  "Remove a session this many days after it ended, was renamed or was imported "
                  "(default: never)")
      ->check(number_above_zero(kMaxDays))
      ->type_name("DAYS");
  app->add_option(
         "--keep-bytes", options.keep_bytes,
         "Remove the oldest sessions when the size of all sessions exceeds this, such as 20GiB "
         "(default: never)")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  app->add_option("--disk-reserve", options.disk_reserve,
                  "Minimum free space on the disk of --data-dir; below it nothing is recorded "
                  "(default: 256 MiB)")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  app->add_option("--max-import", options.max_import,
                  "Maximum size of an imported session file (default: 16 GiB)")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  app->add_option("--path", options.page, "Folder of the built web UI (default: the installed one)")
      ->check(existing_folder())
      ->type_name("DIR");
  const std::map<std::string, LogLevel> levels = {{"trace", LogLevel::Trace},
                                                  {"debug", LogLevel::Debug},
                                                  {"info", LogLevel::Info},
                                                  {"warning", LogLevel::Warning},
                                                  {"error", LogLevel::Error}};
  app->add_option("--log-level", options.log.level,
                  "Minimum level of log messages: trace, debug, info (default), warning or error")
      ->type_name("LEVEL")
      ->transform(choice(levels));
  app->add_flag("--log-json", options.log.json,
                "Write each log message as a JSON object on one line");
  name_environment(*app);
  return app;
}

std::expected<ServerOptions, int> parse_server_options(int argc, char** argv,
                                                       const Installation& installation) {
  ServerOptions options;
  options.data_dir = default_data_dir();
  options.page = installation.webui;
  const auto app = make_server_app(options);
  const auto exit_code = parse(*app, arguments_of(argc, argv));
  hide_key(argc, argv);
  if (exit_code) return std::unexpected(*exit_code);
  if (app->get_option("--data-dir")->count() == 0 && options.data_dir.is_relative()) {
    options.data_dir = std::filesystem::absolute(options.data_dir);
    options.notice = std::format(
        "HOME is not set, so that sessions are recorded in {}. Set HOME, or choose a folder with "
        "--data-dir.",
        options.data_dir.string());
  }
  const bool others = !options.models_dir.empty() || !options.sessions.empty();
  if (options.model.path.empty() && !others && !options.no_model)
    options.model.path = installation.bundled_model;
  return options;
}

}  // namespace tt
