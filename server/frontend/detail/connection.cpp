#include "server/frontend/detail/connection.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

namespace tt::frontend {

std::string peer_group(const std::string& host) {
  std::array<unsigned char, 16> ip{};
  if (!host.contains(':') || inet_pton(AF_INET6, host.c_str(), ip.data()) != 1) return host;
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 address on a dual-stack socket
  if (host.starts_with(kMapped) && host.contains('.')) return host.substr(kMapped.size());
  std::fill(ip.begin() + 8, ip.end(), static_cast<unsigned char>(0));
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, ip.data(), text.data(), text.size());
  return std::string(text.data()) + "/64";
}

Endpoint to_endpoint(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* ip = nullptr;
  in_port_t port = 0;
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    ip = &in.sin_addr;
    port = in.sin_port;
  } else if (address.ss_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    ip = &in6.sin6_addr;
    port = in6.sin6_port;
  } else {
    return {};
  }
  if (inet_ntop(address.ss_family, ip, text.data(), text.size()) == nullptr) return {};
  return {text.data(), ntohs(port)};
}

Endpoint local_endpoint(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return to_endpoint(address);
}

}  // namespace tt::frontend
