// Rules for accepting requests. Paths are compared as sent, without normalization, so another
// spelling of a path gets the stricter rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tt {

// A path that accepts bodies other than JSON; one rule per media type.
struct BodyRule {
  std::string path;
  std::string type;  // media type; empty: any
  std::uint64_t max_bytes = 0;
};

struct FrontendRules {
  std::string websocket_path = "/api/v1/live";  // upgrades of other paths: 404

  // Paths that unauthenticated clients may GET; the handler can check is_unauthenticated().
  std::vector<std::string> public_paths = {"/api/v1/health"};
  std::string login_path = "/login";  // GET with ?code=

  // Origins whose pages may use the API, in the form of parse_origin(). Empty: only pages of
  // this server, and programs.
  std::vector<std::string> cors_origins;

  // Origins whose pages may show the page of this server in a frame, in the form of
  // parse_embed_origin(). Empty: none.
  std::vector<std::string> embed_origins;

  // A reverse proxy serves this server over https: cookies get the Secure attribute.
  bool https = false;

  // By default a body must be application/json, which no HTML form can send, of at most this
  // size. Larger: 413; another type: 415.
  std::uint64_t max_body_bytes = 16u << 20;
  std::vector<BodyRule> body_rules;
};

}  // namespace tt
