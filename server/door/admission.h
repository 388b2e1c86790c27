// Who may speak to the server. A page of another site can make a browser send
// requests to 127.0.0.1; two headers that a page cannot forge tell them apart:
// Host names the address that the browser believes it talks to (a foreign name
// that was rebound to our address stays foreign), Origin names the page.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tt {

struct HostRules {
  std::string bound_host{};                  // as given to Door::start
  bool any_address = false;                  // bound to 0.0.0.0 or ::
  std::vector<std::string> allowed_hosts{};  // further names, without port
};

// True when `host`, the value of a Host header, is a loopback name or address,
// the bound host, or one of allowed_hosts; when bound to every address, any IP
// address too (a rebinding attack needs a name). The port is not looked at: a
// forwarded port is still this server.
bool host_is_ours(std::string_view host, const HostRules& rules);

// True when the page named by an Origin header was served by what the Host
// header names: same host and port, http's and https's default ports filled
// in. "null" (a sandboxed page, a file) is nobody's.
bool origin_matches_host(std::string_view origin, std::string_view host);

// An origin as browsers write it, "https://notes.example", from what a person
// wrote: capitals, a default port or a final slash. None when it is no origin of
// a page on http or https ("null" is everybody's: any site can make such pages).
std::optional<std::string> parse_origin(std::string_view text);

// "https://trace.example:8443" -> "trace.example", to be an allowed host.
std::string host_of_origin(std::string_view origin);

// Whether a numeric address is loopback: only this machine reaches it.
bool is_loopback_address(const std::string& ip);

}  // namespace tt
