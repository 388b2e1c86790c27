// The server itself: versions, host, disk space.
#include <utility>

#include "server/http/responses.h"
#include "server/routes/routes.h"
#include "tracer/engine/host_facts.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

// Host facts, constant while the server runs.
ServerInfo machine_facts() {
  ServerInfo facts;
  facts.start_utc_ns = utc_now_ns();
  for (auto& [name, value] : host_facts({})) {
    if (name == "host.kernel") facts.host = value;
    if (name == "host.cpu") facts.cpu = value;
    if (name == "host.cores") facts.cores = parse_number<std::uint32_t>(value).value_or(0);
    if (name == "host.ram_bytes")
      facts.memory_bytes = parse_number<std::uint64_t>(value).value_or(0);
  }
  return facts;
}

}  // namespace

void add_server_routes(httplib::Server& http, const Retention& retention,
                       const std::filesystem::path& data_dir,
                       std::function<void(ServerInfo&)> rest) {
  http.Get("/api/v1/version", [](const Request&, Response& response) {
    respond(response, version_json(library_versions(), backend_names()));
  });
  ServerInfo constant_info = machine_facts();
  constant_info.data_dir = data_dir.string();
  constant_info.data_quota_bytes = retention.options().keep_bytes;
  http.Get("/api/v1/server", [&retention, constant_info = std::move(constant_info),
                              rest = std::move(rest)](const Request&, Response& response) {
    ServerInfo facts = constant_info;
    const DataUsage room = retention.room();
    facts.data_bytes = room.data_bytes;
    facts.disk_free_bytes = room.disk_free;
    rest(facts);
    respond(response, to_json(facts));
  });
}

}  // namespace tt
