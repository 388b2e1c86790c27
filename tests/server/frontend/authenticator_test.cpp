// Keys, login codes, cookies and failed attempts, with a simulated clock.
#include "server/frontend/detail/authenticator.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "server/frontend/detail/connection.h"
#include "server/frontend/secret.h"

namespace tt::frontend {
namespace {

using namespace std::chrono_literals;
using Clock = Authenticator::Clock;

constexpr const char* kKey = "a-key-of-some-length";

// "authenticated", "unauthenticated", or the status of the rejection.
std::string caller_of(Authenticator& authenticator, const std::string& headers,
                      Clock::time_point now, const std::string& peer = "192.0.2.1") {
  const std::string text = "GET / HTTP/1.1\r\n" + headers + "\r\n";
  const auto caller = authenticator.identify(parse_request_head(text).value(), peer, now);
  if (!caller) return std::to_string(status_of(caller.error().reason));
  return *caller == Caller::Authenticated ? "authenticated" : "unauthenticated";
}
std::string bearer(const std::string& key) { return "Authorization: Bearer " + key + "\r\n"; }
std::string cookie(const std::string& token) { return "Cookie: tt_session=" + token + "\r\n"; }

TEST(Secret, MatchesOnlyExactValue) {
  std::mt19937 random(7);
  const auto text = [&](std::size_t size) {
    std::string out;
    for (std::size_t i = 0; i < size; ++i) out += static_cast<char>('a' + random() % 2);
    return out;
  };
  int equal = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string a = text(random() % 6);
    const std::string b = text(random() % 6);
    ASSERT_EQ(constant_time_equal(a, b), !a.empty() && a == b) << a << " and " << b;
    equal += constant_time_equal(a, b) ? 1 : 0;
  }
  EXPECT_GT(equal, 100);
  EXPECT_FALSE(constant_time_equal("ab", "abab"));  // a repetition does not match
  EXPECT_FALSE(constant_time_equal(std::string("a\0", 2), "a"));
  EXPECT_FALSE(constant_time_equal("a", std::string("a\0", 2)));
}

TEST(Secret, RandomSecretsAreUnique) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string secret = random_secret();
    EXPECT_EQ(secret.size(), 64u);
    EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(seen.insert(secret).second);
  }
}

TEST(Authenticator, WithoutKeyEveryCallerIsAuthenticated) {
  Authenticator authenticator("");
  EXPECT_EQ(caller_of(authenticator, "", Clock::now()), "authenticated");
  EXPECT_EQ(caller_of(authenticator, bearer("anything"), Clock::now()), "authenticated");
}

TEST(Authenticator, LoginCodeIsSingleUseAndExpires) {
  Authenticator authenticator(kKey);
  const Clock::time_point start = Clock::now();
  EXPECT_FALSE(authenticator.login("", start).has_value());  // no code exists yet
  const std::string first = authenticator.create_login_code(start);
  const std::string second = authenticator.create_login_code(start);
  EXPECT_FALSE(authenticator.login(first, start).has_value());
  EXPECT_TRUE(
      authenticator.login(second, start + Authenticator::kLoginCodeLifetime - 1s).has_value());
  EXPECT_FALSE(
      authenticator.login(second, start + Authenticator::kLoginCodeLifetime - 1s).has_value());
  EXPECT_FALSE(authenticator.login("", start).has_value());
  const std::string third = authenticator.create_login_code(start);
  EXPECT_FALSE(authenticator.login(third, start + Authenticator::kLoginCodeLifetime).has_value());
}

TEST(Authenticator, LoginExpiresAfterAWeek) {
  Authenticator authenticator(kKey);
  const Clock::time_point start = Clock::now();
  const std::string token =
      authenticator.login(authenticator.create_login_code(start), start).value();
  EXPECT_EQ(caller_of(authenticator, cookie(token), start), "authenticated");
  EXPECT_EQ(caller_of(authenticator, cookie(token.substr(1)), start), "unauthenticated");
  EXPECT_EQ(caller_of(authenticator, cookie(token + "0"), start), "unauthenticated");
  EXPECT_EQ(caller_of(authenticator, cookie(kKey), start), "unauthenticated");
  EXPECT_EQ(caller_of(authenticator, bearer(token), start), "401");
  EXPECT_EQ(caller_of(authenticator, cookie(token), start + Authenticator::kLoginLifetime - 1s),
            "authenticated");
  EXPECT_EQ(caller_of(authenticator, cookie(token), start + Authenticator::kLoginLifetime),
            "unauthenticated");
}

TEST(Authenticator, NumberOfLoginsIsLimited) {
  Authenticator authenticator(kKey);
  const Clock::time_point start = Clock::now();
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < Authenticator::kMaxLogins + 3; ++i) {
    tokens.push_back(authenticator.login(authenticator.create_login_code(start), start).value());
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(caller_of(authenticator, cookie(tokens[i]), start),
              i < 3 ? "unauthenticated" : "authenticated")
        << i;
  }
}

TEST(Authenticator, WrongKeysAreRateLimitedPerPeer) {
  Authenticator authenticator(kKey);
  Clock::time_point now = Clock::now();
  const std::string token = authenticator.login(authenticator.create_login_code(now), now).value();
  for (int i = 0; i < AttemptLimiter::kBurst; ++i) {
    EXPECT_EQ(caller_of(authenticator, bearer("wrong"), now), "401") << i;
  }
  EXPECT_EQ(caller_of(authenticator, bearer("wrong"), now), "429");
  // The right key gets the same response; otherwise it could be recognized.
  EXPECT_EQ(caller_of(authenticator, bearer(kKey), now), "429");
  // Not limited: a login link, another address, a logged-in browser, a caller without a key.
  EXPECT_TRUE(authenticator.login(authenticator.create_login_code(now), now).has_value());
  EXPECT_EQ(caller_of(authenticator, bearer(kKey), now, "192.0.2.2"), "authenticated");
  EXPECT_EQ(caller_of(authenticator, cookie(token), now), "authenticated");
  EXPECT_EQ(caller_of(authenticator, "", now), "unauthenticated");
  // Rejected attempts were not counted: attempts are regained one by one.
  now += AttemptLimiter::kRefillInterval;
  EXPECT_EQ(caller_of(authenticator, bearer("wrong"), now), "401");
  EXPECT_EQ(caller_of(authenticator, bearer("wrong"), now), "429");
  now += AttemptLimiter::kRefillInterval;
  EXPECT_EQ(caller_of(authenticator, bearer(kKey), now), "authenticated");
  now += AttemptLimiter::kRefillInterval * AttemptLimiter::kBurst;
  for (int i = 0; i < AttemptLimiter::kBurst; ++i) {
    EXPECT_EQ(caller_of(authenticator, bearer("wrong"), now), "401") << i;
  }
  EXPECT_EQ(caller_of(authenticator, bearer("wrong"), now), "429");
}

// A page of another site can make a browser open login links.
TEST(Authenticator, WrongLoginCodesDoNotLockOutTheKey) {
  Authenticator authenticator(kKey);
  const Clock::time_point now = Clock::now();
  for (int i = 0; i < 100; ++i) {
    const auto rejected = authenticator.login("code of a foreign page", now);
    ASSERT_FALSE(rejected.has_value());
    EXPECT_EQ(rejected.error().reason, RejectionReason::Unauthorized);
  }
  EXPECT_EQ(caller_of(authenticator, bearer(kKey), now), "authenticated");
}

TEST(Authenticator, UnknownCookieIsNotAFailedAttempt) {
  Authenticator authenticator(kKey);
  const Clock::time_point now = Clock::now();
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(caller_of(authenticator, cookie("of the previous run"), now), "unauthenticated");
  EXPECT_EQ(caller_of(authenticator, bearer(kKey), now), "authenticated");
}

TEST(AttemptLimiter, NumberOfPeersIsLimited) {
  AttemptLimiter limiter;
  Clock::time_point now = Clock::now();
  const auto exhaust = [&](const std::string& peer) {
    for (int i = 0; i < AttemptLimiter::kBurst; ++i) limiter.count_failure(peer, now);
  };
  exhaust("first");
  for (std::size_t i = 0; i < 3 * AttemptLimiter::kMaxPeers; ++i) {
    limiter.count_failure("peer " + std::to_string(i), now);
    ASSERT_LE(limiter.peers(), AttemptLimiter::kMaxPeers);
  }
  // No existing entry was evicted; peers without an entry share one counter.
  EXPECT_GT(limiter.retry_after("first", now).count(), 0);
  EXPECT_EQ(limiter.retry_after("peer 0", now).count(), 0);
  EXPECT_GT(limiter.retry_after("someone new", now).count(), 0);
  // After enough time all counters expire, and new peers get their own entry again.
  now += AttemptLimiter::kRefillInterval * static_cast<int>(3 * AttemptLimiter::kMaxPeers);
  EXPECT_EQ(limiter.retry_after("first", now).count(), 0);
  EXPECT_EQ(limiter.retry_after("someone new", now).count(), 0);
  exhaust("again");
  EXPECT_GT(limiter.retry_after("again", now).count(), 0);
  EXPECT_EQ(limiter.retry_after("someone new", now).count(), 0);
}

TEST(PeerGroup, IsIpv4AddressOrIpv6Prefix) {
  EXPECT_EQ(peer_group("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(peer_group("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(peer_group("2001:db8:1:2:3:4:5:6"), peer_group("2001:db8:1:2::9"));
  EXPECT_NE(peer_group("2001:db8:1:2::9"), peer_group("2001:db8:1:3::9"));
  EXPECT_NE(peer_group("192.0.2.1"), peer_group("192.0.2.2"));
  EXPECT_EQ(peer_group(""), "");
}

}  // namespace
}  // namespace tt::frontend
