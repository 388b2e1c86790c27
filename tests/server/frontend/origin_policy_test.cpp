#include "server/frontend/origin_policy.h"

#include <gtest/gtest.h>

namespace tt {
namespace {

TEST(OriginPolicy, HostMustBeLoopbackBoundOrAllowed) {
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
      {"DNS rebinding", "evil.example:8080", loopback, false},
      {"a name with our address as prefix", "127.0.0.1.evil.example", loopback, false},
      {"a name with our name as suffix", "evil-localhost", loopback, false},
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
      {"invalid port", "localhost:80x", loopback, false},
      {"user part", "localhost@evil.example", loopback, false},
      {"unclosed bracket", "[::1", loopback, false},
      {"two final dots", "localhost..", loopback, false},
      {"an address as one number", "2130706433", loopback, false},
      {"an address with leading zeros", "0177.0.0.1", loopback, false},
      {"an address in hexadecimal", "0x7f.0.0.1", loopback, false},
      {"v6 loopback in capitals", "[0:0:0:0:0:FFFF:7F00:1]", loopback, false},
      {"two hosts", "localhost,evil.example", loopback, false},
      {"space in the name", "localhost evil.example", loopback, false},
      {"port of six digits", "localhost:080808", loopback, false},
  };
  for (const auto& [what, host, rules, ours] : cases) {
    EXPECT_EQ(is_allowed_host(host, rules), ours) << what;
  }
}

TEST(OriginPolicy, OriginMustMatchHost) {
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
      {"NULL", "127.0.0.1:8080", false},
      {"http://null", "127.0.0.1:8080", false},
      {"HTTP://Trace.Example", "trace.example:80", true},
      {"http://trace.example.", "trace.example", true},
      {"http://trace.example@evil.example", "trace.example", false},
      {"http://trace.example/", "trace.example", false},
      {"http://trace.example http://evil.example", "trace.example", false},
      {"http://trace.example:443", "trace.example", false},
      {"https://trace.example:80", "trace.example:443", false},
      {"ws://trace.example", "trace.example", false},
      {"chrome-extension://trace.example", "trace.example", false},
      {"http://[::1]", "[0:0::1]", false},
  };
  for (const auto& [origin, host, same] : cases) {
    EXPECT_EQ(origin_matches_host(origin, host), same) << origin << " to " << host;
  }
}

TEST(OriginPolicy, ParsesSerializedOrigins) {
  const struct {
    const char* text;
    const char* origin;  // empty: invalid
  } cases[] = {
      {"https://notes.example", "https://notes.example"},
      {"HTTPS://Notes.Example/", "https://notes.example"},
      {"https://notes.example:443", "https://notes.example"},
      {"http://notes.example:443", "http://notes.example:443"},
      {"http://localhost:5173", "http://localhost:5173"},
      {"http://[::1]:5173", "http://[::1]:5173"},
      {"null", ""},
      {"*", ""},
      {"https://*", ""},
      {"https://*.example", ""},
      {"notes.example", ""},
      {"ftp://notes.example", ""},
      {"https://notes.example/path", ""},
      {"https://user@notes.example", ""},
      {"https://", ""},
      {"https://notes.example\r\nX-Bad: 1", ""},
  };
  for (const auto& [text, origin] : cases) {
    EXPECT_EQ(parse_origin(text).value_or(""), origin) << text;
  }
  EXPECT_EQ(host_of_origin("https://trace.example:8443"), "trace.example");
}

TEST(OriginPolicy, OriginsOfFramesHaveNoOtherCharacters) {
  EXPECT_EQ(parse_embed_origin("HTTPS://Wiki.Example:443/"), "https://wiki.example");
  EXPECT_EQ(parse_embed_origin("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
  for (const char* text :
       {"http://[::1]:8080", "https://a.example;script-src", "https://a.example,b",
        "https://'self'", "https://*.example", "*", "null", ""})
    EXPECT_FALSE(parse_embed_origin(text)) << text;
}

TEST(OriginPolicy, IdentifiesLoopbackAddresses) {
  for (const char* ip : {"127.0.0.1", "127.1.2.3", "::1"})
    EXPECT_TRUE(is_loopback_address(ip)) << ip;
  for (const char* ip : {"0.0.0.0", "::", "192.168.0.1", "::ffff:127.0.0.1", "fe80::1", ""}) {
    EXPECT_FALSE(is_loopback_address(ip)) << ip;
  }
}

}  // namespace
}  // namespace tt
