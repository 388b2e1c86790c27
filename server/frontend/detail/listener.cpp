#include "server/frontend/detail/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <format>
#include <memory>
#include <system_error>

namespace tt::frontend {
namespace {

constexpr int kBacklog = 256;

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string reason(int error) { return std::generic_category().message(error); }

HttpFrontendError bind_error(int error, const std::string& host, std::uint16_t port) {
  switch (error) {
    case EADDRINUSE:
      return {HttpFrontendError::Kind::PortTaken,
              std::format("Port {} on {} is in use by another program; choose another port, or 0 "
                          "for any free one.",
                          port, host)};
    case EACCES:
      return {HttpFrontendError::Kind::NotPermitted,
              std::format("Permission denied for port {} on {}; choose another port.", port, host)};
    case EADDRNOTAVAIL:
      return {HttpFrontendError::Kind::BadHost,
              std::format("{} is not an address of this machine.", host)};
    default:
      return {HttpFrontendError::Kind::System,
              std::format("Listening on {} port {} failed: {}.", host, port, reason(error))};
  }
}

bool is_any_address(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_addr.s_addr == INADDR_ANY;
  }
  return IN6_IS_ADDR_UNSPECIFIED(
      &reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
}

}  // namespace

std::expected<Listener, HttpFrontendError> open_listener(const std::string& host,
                                                         std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  if (const int error = getaddrinfo(host.c_str(), service.c_str(), &hints, &found); error != 0) {
    return std::unexpected(
        HttpFrontendError{HttpFrontendError::Kind::BadHost,
                          std::format("Cannot listen on host {}: {}.", host.empty() ? "\"\"" : host,
                                      gai_strerror(error))});
  }
  const AddressList addresses(found, &freeaddrinfo);

  // IPv4 first: "localhost" often resolves to ::1 first, and a client that uses 127.0.0.1
  // could not connect then.
  const addrinfo* chosen = nullptr;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    if (at->ai_family == AF_INET || (at->ai_family == AF_INET6 && chosen == nullptr)) chosen = at;
    if (at->ai_family == AF_INET) break;
  }
  if (chosen == nullptr) return std::unexpected(bind_error(EADDRNOTAVAIL, host, port));

  Listener listener;
  listener.fd = Fd(socket(chosen->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Without SO_REUSEADDR a restart would have to wait for the TIME_WAIT of old connections. A
  // port with an active listener is still in use.
  const int on = 1;
  if (!listener.fd ||
      setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(listener.fd.get(), chosen->ai_addr, chosen->ai_addrlen) != 0 ||
      listen(listener.fd.get(), kBacklog) != 0) {
    return std::unexpected(bind_error(errno, host, port));
  }
  listener.local = local_endpoint(listener.fd.get());
  listener.any_address = is_any_address(*chosen);
  return listener;
}

}  // namespace tt::frontend
