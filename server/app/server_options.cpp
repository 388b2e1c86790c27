#include "server/app/server_options.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "api/json/version.h"
#include "program/command_line.h"
#include "program/tracer_options.h"
#include "program/values.h"
#include "server/door/admission.h"

namespace tt {

namespace {

constexpr double kMostDays = 100'000;  // in ns they fit 64 bits

// $XDG_DATA_HOME/tensor-trace/sessions, or what stands for it.
std::filesystem::path usual_data_dir() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && *data == '/')
    return std::filesystem::path(data) / "tensor-trace" / "sessions";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/')
    return std::filesystem::path(home) / ".local" / "share" / "tensor-trace" / "sessions";
  return "sessions";
}

// To an origin as browsers write it; what it is not is a mistake.
std::string to_origin(std::string& text) {
  const auto origin = parse_origin(text);
  if (!origin) return "must be an origin like https://name or http://name:8080, not '" + text + "'";
  text = *origin;
  return "";
}

// Whoever may list processes may read their arguments.
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

std::expected<ServerOptions, int> parse_server_options(int argc, char** argv,
                                                       const Installation& installation) {
  ServerOptions options;
  options.data_dir = usual_data_dir();
  options.page = installation.webui;

  CLI::App app("Runs a model and shows, live and afterwards, what it does to memory.", "tt-server");
  app.set_version_flag("--version", std::string("tt-server ") + kVersion);
  app.add_option("sessions", options.sessions,
                 "Session files (.ttrace) and folders of them to show, too. They are only read; "
                 "with them no model is loaded unless --model names one")
      ->check(existing_path())
      ->type_name("FILE");
  app.option_defaults()->group("Model");
  add_model_options(app, options.model);
  bool no_model = false;
  auto* model = app.get_option("--model");
  model->description(
      "GGUF file to load at the start (default: the small bundled one; none with --models-dir or "
      "with "
      "session files)");
  app.add_option("--models-dir", options.models_dir,
                 "Folder of more models: every .gguf below it can be loaded by request")
      ->check(existing_folder())
      ->type_name("DIR");
  app.add_option("--models-max", options.models_max,
                 "Most models in memory; loading one more unloads the one idle for longest")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.add_flag("--no-model", no_model, "Load no model at the start")->excludes(model);
  app.option_defaults()->group("Context");
  add_context_options(app, options.context);
  app.option_defaults()->group("Server");
  app.add_option("--host", options.host,
                 "Address to listen on; on others than loopback everybody is asked for a key")
      ->capture_default_str();
  app.add_option("--port", options.port, "Port to listen on; 0: any free one")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  app.add_option("--allowed-host", options.allowed_hosts,
                 "Further names that a request may call this server by, as behind a proxy")
      ->delimiter(',')
      ->type_name("NAME");
  app.add_option("--api-key", options.api_key.key,
                 "Key that programs send (Authorization: Bearer KEY), 16 characters or more; give "
                 "it by TT_API_KEY or --api-key-file, for other users can see arguments. Without "
                 "one nobody is asked on loopback, and elsewhere only login links let in")
      ->type_name("KEY");
  auto* key = app.get_option("--api-key");
  app.add_option("--api-key-file", options.api_key.file,
                 "File that holds the key; made, with a random one, if it is not there")
      ->excludes(key)
      ->type_name("FILE");
  app.add_option("--public-url", options.public_url,
                 "Address under which a proxy shows this server, like https://trace.example; see "
                 "docs/behind-a-proxy.md")
      ->transform(CLI::Validator(&to_origin, ""))
      ->type_name("URL");
  app.add_option("--cors-origins", options.cors_origins,
                 "Other sites whose pages may use the interface, like https://notes.example,...; "
                 "may be repeated (default: none)")
      ->transform(CLI::Validator(&to_origin, ""))
      ->delimiter(',')
      ->type_name("ORIGIN");
  app.add_option("--max-connections", options.max_connections,
                 "HTTP connections at a time; one client may have half of them")
      ->check(whole_number(2, 100'000))
      ->capture_default_str();
  app.add_option("--max-live-clients", options.max_live_clients,
                 "WebSockets at a time; one client may have half of them")
      ->check(whole_number(2, 10'000))
      ->capture_default_str();
  app.add_option("--data-dir", options.data_dir, "Folder of the recorded sessions")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--keep-days", options.keep_days,
                 "Remove sessions so many days after they ended (default: never)")
      ->check(number_above_zero(kMostDays))
      ->type_name("DAYS");
  app.add_option("--keep-bytes", options.keep_bytes,
                 "Remove the oldest sessions when all have more than this, as 20G (default: never)")
      ->transform(size_in_bytes(Units::Of1024))
      ->type_name("SIZE");
  app.add_option("--disk-reserve", options.disk_reserve,
                 "Free space on the disk of --data-dir below which nothing is recorded "
                 "(default: 256M)")
      ->transform(size_in_bytes(Units::Of1024))
      ->type_name("SIZE");
  app.add_option("--max-import", options.max_import,
                 "Largest session file that is taken in over HTTP (default: 16G)")
      ->transform(size_in_bytes(Units::Of1024))
      ->type_name("SIZE");
  app.add_option("--path", options.page, "Folder of the built page (default: the installed one)")
      ->check(existing_folder())
      ->type_name("DIR");
  const std::map<std::string, LogLevel> levels = {{"trace", LogLevel::Trace},
                                                  {"debug", LogLevel::Debug},
                                                  {"info", LogLevel::Info},
                                                  {"warning", LogLevel::Warning},
                                                  {"error", LogLevel::Error}};
  app.add_option("--log-level", options.log.level,
                 "Least that is said on stderr: trace, debug, info (default), warning or error")
      ->type_name("LEVEL")
      ->transform(choice(levels));
  app.add_flag("--log-json", options.log.json, "Say it as one JSON object a line");
  name_environment(app);

  const auto exit_code = parse(app, arguments_of(argc, argv));
  hide_key(argc, argv);
  if (exit_code) return std::unexpected(*exit_code);
  const bool others = !options.models_dir.empty() || !options.sessions.empty();
  if (options.model.path.empty() && !others && !no_model)
    options.model.path = installation.bundled_model;
  return options;
}

}  // namespace tt
