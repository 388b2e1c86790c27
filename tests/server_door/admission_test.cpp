#include "server/door/admission.h"

#include <gtest/gtest.h>

namespace tt {
namespace {

TEST(Admission, HostIsLoopbackOrWhatWeAreBoundTo) {
  const HostRules loopback{.bound_host = "127.0.0.1"};
  const HostRules named{.bound_host = "Lab.Example"};
  const HostRules everywhere{.bound_host = "0.0.0.0", .any_address = true};
  const HostRules proxied{.bound_host = "127.0.0.1", .allowed_hosts = {"trace.example"}};
  const struct {
    const char* what;
    const char* host;
    const HostRules& rules;
    bool ours;
  } cases[] = {
      {"loopback address", "127.0.0.1:8080", loopback, true},
      {"another of 127/8", "127.8.8.8", loopback, true},
      {"v6 loopback", "[::1]:8080", loopback, true},
      {"v6 loopback, long", "[0:0::1]", loopback, true},
      {"name", "localhost:3000", loopback, true},
      {"name in capitals, final dot", "LocalHost.:3000", loopback, true},
      {"a rebound name", "evil.example:8080", loopback, false},
      {"a name that begins like ours", "127.0.0.1.evil.example", loopback, false},
      {"a name that ends like ours", "evil-localhost", loopback, false},
      {"another address", "192.168.1.5:8080", loopback, false},
      {"bound name", "lab.example:80", named, true},
      {"another name", "lab.example.org", named, false},
      {"any address when bound to all", "192.168.1.5:8080", everywhere, true},
      {"any v6 address when bound to all", "[fe80::1]:8080", everywhere, true},
      {"no name when bound to all", "evil.example", everywhere, false},
      {"allowed name", "trace.example", proxied, true},
      {"not allowed name", "trace.example.evil", proxied, false},
      {"empty", "", loopback, false},
      {"only a port", ":8080", loopback, false},
      {"port that is none", "localhost:80x", loopback, false},
      {"user part", "localhost@evil.example", loopback, false},
      {"unclosed bracket", "[::1", loopback, false},
  };
  for (const auto& [what, host, rules, ours] : cases) {
    EXPECT_EQ(host_is_ours(host, rules), ours) << what;
  }
}

TEST(Admission, OriginIsTheHostThatServedThePage) {
  const struct {
    const char* origin;
    const char* host;
    bool same;
  } cases[] = {
      {"http://127.0.0.1:8080", "127.0.0.1:8080", true},
      {"http://LOCALHOST:8080", "localhost:8080", true},
      {"http://[::1]:8080", "[::1]:8080", true},
      {"http://localhost", "localhost", true},
      {"http://localhost", "localhost:80", true},
      {"https://trace.example", "trace.example:443", true},
      {"http://localhost:5173", "localhost:8080", false},
      {"http://localhost:8080", "127.0.0.1:8080", false},
      {"https://evil.example", "127.0.0.1:8080", false},
      {"http://127.0.0.1:8080.evil.example", "127.0.0.1:8080", false},
      {"null", "127.0.0.1:8080", false},
      {"", "127.0.0.1:8080", false},
      {"file://", "127.0.0.1:8080", false},
  };
  for (const auto& [origin, host, same] : cases) {
    EXPECT_EQ(origin_matches_host(origin, host), same) << origin << " to " << host;
  }
}

}  // namespace
}  // namespace tt
