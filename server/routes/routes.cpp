#include "server/routes/routes.h"

#include <fstream>

namespace tt {

namespace {

std::optional<RecordedProgram> read_program(const std::filesystem::path& file) {
  constexpr std::streamsize kMaxBytes = 65'536;
  std::string text(kMaxBytes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), kMaxBytes);
  return parse_recorded_program(
      std::string_view(text).substr(0, static_cast<std::size_t>(in.gcount())));
}

}  // namespace

void add_all_routes(httplib::Server& http, const RouteServices& services) {
  const auto& [recorded, model_manager, streams, hub, metrics, page, contract, data_dir,
               program_file, log_lines_lost] = services;
  add_model_routes(http, model_manager);
  add_gguf_routes(http, model_manager);
  add_weights_routes(http, model_manager, recorded.sessions, recorded.queue);
  add_generate_routes(http, model_manager, streams, recorded.retention);
  add_debug_routes(http, model_manager);
  add_session_routes(http, recorded);
  add_session_file_routes(http, recorded.sessions, recorded.retention);
  add_server_routes(http, recorded.retention, data_dir,
                    [&hub, &model_manager, program = program_file](ServerInfo& facts) {
                      facts.live_clients = static_cast<std::uint32_t>(hub.connected());
                      facts.models_dir = model_manager.options().folder.string();
                      facts.models_loaded_limit =
                          static_cast<std::uint32_t>(model_manager.options().max_loaded);
                      facts.queue_limit = GenerationQueue::kMaxQueued;
                      if (!program.empty()) facts.recorded_program = read_program(program);
                    });
  add_metrics_routes(http, metrics,
                     {.queries = [&queue = recorded.queue] { return queue.stats(); },
                      .caches = [&caches = recorded.caches] { return caches.stats(); },
                      .live_clients = [&hub] { return hub.connected(); },
                      .live_frames_lost = [&hub] { return hub.stats().lost; },
                      .log_lines_lost = log_lines_lost,
                      .data_dir = data_dir});
  add_docs_routes(http, page);
  add_page_routes(http, page, contract);
}

}  // namespace tt
