#include "server/door/admission.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace tt {
namespace {

struct Authority {
  std::string host;  // lower case, no brackets, no final dot
  std::string port;  // digits; empty when none was given
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "host", "host:port", "[v6]", "[v6]:port"
std::optional<Authority> parse_authority(std::string_view text) {
  Authority out;
  std::string_view host;
  std::string_view rest;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    const auto colon = text.find(':');
    host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? "" : text.substr(colon);
  }
  if (!rest.empty()) {
    if (rest.front() != ':') return std::nullopt;
    rest.remove_prefix(1);
    if (rest.size() > 5 ||
        !std::ranges::all_of(rest, [](unsigned char c) { return std::isdigit(c) != 0; })) {
      return std::nullopt;
    }
    out.port = rest;
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.empty()) return std::nullopt;
  out.host = lower(host);
  return out;
}

struct IpAddress {
  bool is_v6 = false;
  std::array<unsigned char, 16> bytes{};
};

std::optional<IpAddress> parse_ip(const std::string& host) {
  IpAddress ip;
  if (inet_pton(AF_INET, host.c_str(), ip.bytes.data()) == 1) return ip;
  ip.is_v6 = true;
  if (inet_pton(AF_INET6, host.c_str(), ip.bytes.data()) == 1) return ip;
  return std::nullopt;
}

bool is_loopback(const IpAddress& ip) {
  if (!ip.is_v6) return ip.bytes[0] == 127;
  constexpr std::array<unsigned char, 16> kOne{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return ip.bytes == kOne;
}

}  // namespace

bool host_is_ours(std::string_view host, const HostRules& rules) {
  const auto authority = parse_authority(host);
  if (!authority) return false;
  const std::string& name = authority->host;
  if (name == "localhost" || name == lower(rules.bound_host)) return true;
  if (const auto ip = parse_ip(name)) {
    if (is_loopback(*ip) || rules.any_address) return true;
  }
  return std::ranges::any_of(rules.allowed_hosts,
                             [&](const std::string& allowed) { return lower(allowed) == name; });
}

bool origin_matches_host(std::string_view origin, std::string_view host) {
  const auto scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos) return false;
  const std::string scheme = lower(origin.substr(0, scheme_end));
  std::string default_port;
  if (scheme == "http") {
    default_port = "80";
  } else if (scheme == "https") {
    default_port = "443";
  } else {
    return false;
  }
  auto page = parse_authority(origin.substr(scheme_end + 3));
  auto server = parse_authority(host);
  if (!page || !server) return false;
  if (page->port.empty()) page->port = default_port;
  if (server->port.empty()) server->port = default_port;
  return page->host == server->host && page->port == server->port;
}

}  // namespace tt
