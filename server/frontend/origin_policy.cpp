#include "server/frontend/origin_policy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace tt {
namespace {

struct Authority {
  std::string host;  // lower case, without brackets and final dot
  std::string port;  // digits; empty: not specified
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

struct Origin {
  std::string scheme;
  Authority authority;  // port always set
};

std::string_view default_port(std::string_view scheme) {
  if (scheme == "http") return "80";
  if (scheme == "https") return "443";
  return {};
}

std::optional<Origin> split_origin(std::string_view text) {
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return std::nullopt;
  Origin origin{.scheme = lower(text.substr(0, scheme_end)), .authority = {}};
  if (default_port(origin.scheme).empty()) return std::nullopt;
  auto authority = parse_authority(text.substr(scheme_end + 3));
  if (!authority) return std::nullopt;
  origin.authority = *std::move(authority);
  if (origin.authority.port.empty()) origin.authority.port = default_port(origin.scheme);
  return origin;
}

}  // namespace

bool is_allowed_host(std::string_view host, const HostRules& rules) {
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
  const auto page = split_origin(origin);
  auto server = parse_authority(host);
  if (!page || !server) return false;
  if (server->port.empty()) server->port = default_port(page->scheme);
  return page->authority.host == server->host && page->authority.port == server->port;
}

std::optional<std::string> parse_origin(std::string_view text) {
  if (text.ends_with('/')) text.remove_suffix(1);
  const auto origin = split_origin(text);
  if (!origin) return std::nullopt;
  const Authority& at = origin->authority;
  const bool valid = std::ranges::none_of(at.host, [](unsigned char c) {
    return c <= ' ' || c >= 0x7f || c == '/' || c == '@' || c == '*';
  });
  if (!valid) return std::nullopt;
  std::string out = origin->scheme + "://";
  out += at.host.contains(':') ? "[" + at.host + "]" : at.host;
  if (at.port != default_port(origin->scheme)) out += ":" + at.port;
  return out;
}

std::optional<std::string> parse_embed_origin(std::string_view text) {
  auto origin = parse_origin(text);
  // Other characters could end the directive or begin another one.
  const bool valid = origin && std::ranges::all_of(host_of_origin(*origin), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '.' || c == '-';
                     });
  return valid ? origin : std::nullopt;
}

std::string host_of_origin(std::string_view origin) {
  const auto parsed = split_origin(origin);
  return parsed ? parsed->authority.host : std::string();
}

bool is_loopback_address(const std::string& ip) {
  const auto parsed = parse_ip(ip);
  return parsed && is_loopback(*parsed);
}

}  // namespace tt
