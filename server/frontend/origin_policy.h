// Comparisons of the Host and Origin headers; detail/request_decision.h decides. A page of another
// site can make a browser send requests to 127.0.0.1. Two headers that a page cannot forge
// distinguish such requests: Host contains the name in the URL (after DNS rebinding it is still the
// foreign name), and Origin identifies the page.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

struct HostRules {
  std::string bound_host{};                  // argument of HttpFrontend::start
  bool any_address = false;                  // bound to 0.0.0.0 or ::
  std::vector<std::string> allowed_hosts{};  // additional names, without port
};

// Returns true when `host`, the value of a Host header, is a loopback name or address, the
// bound host, or one of allowed_hosts. When bound to all addresses, any IP address is
// accepted, too (DNS rebinding requires a name). The port is ignored, because it may be
// forwarded.
bool is_allowed_host(std::string_view host, const HostRules& rules);

// Returns true when the origin has the same host and port as the Host header; default ports of
// http and https are filled in. "null" (a sandboxed page, a file) never matches.
bool origin_matches_host(std::string_view origin, std::string_view host);

// Normalizes an origin to the form that browsers send ("https://notes.example"): lower case,
// without default port and trailing slash. nullopt when `text` is not an http or https origin.
// "null" is not accepted, because any site can create pages with that origin.
std::optional<std::string> parse_origin(std::string_view text);

// The same for an origin of frame-ancestors in a Content-Security-Policy, whose grammar has no IPv6
// addresses.
std::optional<std::string> parse_embed_origin(std::string_view text);

// "https://trace.example:8443" -> "trace.example", for allowed_hosts.
std::string host_of_origin(std::string_view origin);

// Returns true when the numeric address is loopback, i.e. reachable only from this machine.
bool is_loopback_address(const std::string& ip);

}  // namespace tt
