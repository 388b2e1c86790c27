// What requests the door lets in. What it says of paths is compared with the
// path as sent, so another spelling of one gets the stricter treatment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tt {

// A path whose requests have another body than JSON; of several types a rule each.
struct BodyRule {
  std::string path;
  std::string type;  // media type; empty: any
  std::uint64_t max_bytes = 0;
};

struct DoorRules {
  std::string websocket_path = "/api/v1/live";  // upgrades of other paths: 404

  // Who is not known may GET these, and its handler can tell (is_stranger).
  std::vector<std::string> open_paths = {"/api/v1/health"};
  std::string login_path = "/login";  // GET with ?code=

  // Pages of other sites that may use the interface, as parse_origin() gives
  // them. None: only our own page, and programs.
  std::vector<std::string> cors_origins;

  // A proxy in front shows this server over https: cookies say so.
  bool https = false;

  // A body is application/json, which no HTML form can send, up to so large;
  // larger: 413, of another type: 415.
  std::uint64_t max_body_bytes = 16u << 20;
  std::vector<BodyRule> other_bodies;
};

}  // namespace tt
