// Keys, login codes, cookies and failed attempts, with a simulated clock.
#include "server/door/detail/access.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "server/door/detail/connection.h"
#include "server/door/secret.h"

namespace tt::door {
namespace {

using namespace std::chrono_literals;
using Clock = Access::Clock;

constexpr const char* kKey = "a-key-of-some-length";

// "authenticated", "unauthenticated", or the status of the rejection.
std::string who(Access& access, const std::string& headers, Clock::time_point now,
                const std::string& peer = "192.0.2.1") {
  const std::string text = "GET / HTTP/1.1\r\n" + headers + "\r\n";
  const auto caller = access.identify(parse_request_head(text).value(), peer, now);
  if (!caller) return std::to_string(status_of(caller.error().reason));
  return *caller == Caller::Known ? "authenticated" : "unauthenticated";
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
    ASSERT_EQ(is_secret(a, b), !a.empty() && a == b) << a << " and " << b;
    equal += is_secret(a, b) ? 1 : 0;
  }
  EXPECT_GT(equal, 100);
  EXPECT_FALSE(is_secret("ab", "abab"));  // a repetition does not match
  EXPECT_FALSE(is_secret(std::string("a\0", 2), "a"));
  EXPECT_FALSE(is_secret("a", std::string("a\0", 2)));
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

TEST(Access, WithoutKeyEveryCallerIsAuthenticated) {
  Access access("");
  EXPECT_EQ(who(access, "", Clock::now()), "authenticated");
  EXPECT_EQ(who(access, bearer("anything"), Clock::now()), "authenticated");
}

TEST(Access, LoginCodeIsSingleUseAndExpires) {
  Access access(kKey);
  const Clock::time_point start = Clock::now();
  EXPECT_FALSE(access.login("", "p", start).has_value());  // no code exists yet
  const std::string first = access.new_code(start);
  const std::string second = access.new_code(start);
  EXPECT_FALSE(access.login(first, "p", start).has_value());
  EXPECT_TRUE(access.login(second, "p", start + Access::kCodeLife - 1s).has_value());
  EXPECT_FALSE(access.login(second, "p", start + Access::kCodeLife - 1s).has_value());
  EXPECT_FALSE(access.login("", "p", start).has_value());
  const std::string third = access.new_code(start);
  EXPECT_FALSE(access.login(third, "p", start + Access::kCodeLife).has_value());
}

TEST(Access, LoginExpiresAfterAWeek) {
  Access access(kKey);
  const Clock::time_point start = Clock::now();
  const std::string token = access.login(access.new_code(start), "p", start).value();
  EXPECT_EQ(who(access, cookie(token), start), "authenticated");
  EXPECT_EQ(who(access, cookie(token.substr(1)), start), "unauthenticated");
  EXPECT_EQ(who(access, cookie(token + "0"), start), "unauthenticated");
  EXPECT_EQ(who(access, cookie(kKey), start), "unauthenticated");
  EXPECT_EQ(who(access, bearer(token), start), "401");
  EXPECT_EQ(who(access, cookie(token), start + Access::kLoginLife - 1s), "authenticated");
  EXPECT_EQ(who(access, cookie(token), start + Access::kLoginLife), "unauthenticated");
}

TEST(Access, NumberOfLoginsIsLimited) {
  Access access(kKey);
  const Clock::time_point start = Clock::now();
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < Access::kMostLogins + 3; ++i) {
    tokens.push_back(access.login(access.new_code(start), "p", start).value());
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(who(access, cookie(tokens[i]), start), i < 3 ? "unauthenticated" : "authenticated")
        << i;
  }
}

TEST(Access, WrongKeysAreRateLimitedPerPeer) {
  Access access(kKey);
  Clock::time_point now = Clock::now();
  const std::string token = access.login(access.new_code(now), "p", now).value();
  for (int i = 0; i < AttemptLimiter::kAtOnce; ++i) {
    EXPECT_EQ(who(access, bearer("wrong"), now), "401") << i;
  }
  EXPECT_EQ(who(access, bearer("wrong"), now), "429");
  // The right key gets the same response; otherwise it could be recognized.
  EXPECT_EQ(who(access, bearer(kKey), now), "429");
  const auto refused = access.login(access.new_code(now), "192.0.2.1", now);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, RefusalReason::TooManyAttempts);
  EXPECT_EQ(refused.error().retry_after_s, 6);
  // Not limited: another address, a logged-in browser, a caller without a key.
  EXPECT_EQ(who(access, bearer(kKey), now, "192.0.2.2"), "authenticated");
  EXPECT_EQ(who(access, cookie(token), now), "authenticated");
  EXPECT_EQ(who(access, "", now), "unauthenticated");
  // Rejected attempts were not counted: attempts are regained one by one.
  now += AttemptLimiter::kRegain;
  EXPECT_EQ(who(access, bearer("wrong"), now), "401");
  EXPECT_EQ(who(access, bearer("wrong"), now), "429");
  now += AttemptLimiter::kRegain;
  EXPECT_EQ(who(access, bearer(kKey), now), "authenticated");
  now += AttemptLimiter::kRegain * AttemptLimiter::kAtOnce;
  for (int i = 0; i < AttemptLimiter::kAtOnce; ++i) {
    EXPECT_EQ(who(access, bearer("wrong"), now), "401") << i;
  }
  EXPECT_EQ(who(access, bearer("wrong"), now), "429");
}

TEST(Access, UnknownCookieIsNotAFailedAttempt) {
  Access access(kKey);
  const Clock::time_point now = Clock::now();
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(who(access, cookie("of the previous run"), now), "unauthenticated");
  EXPECT_EQ(who(access, bearer(kKey), now), "authenticated");
}

TEST(AttemptLimiter, NumberOfPeersIsLimited) {
  AttemptLimiter limiter;
  Clock::time_point now = Clock::now();
  const auto exhaust = [&](const std::string& peer) {
    for (int i = 0; i < AttemptLimiter::kAtOnce; ++i) limiter.count_failure(peer, now);
  };
  exhaust("first");
  for (std::size_t i = 0; i < 3 * AttemptLimiter::kMostPeers; ++i) {
    limiter.count_failure("peer " + std::to_string(i), now);
    ASSERT_LE(limiter.peers(), AttemptLimiter::kMostPeers);
  }
  // No existing entry was evicted; peers without an entry share one counter.
  EXPECT_GT(limiter.wait_of("first", now).count(), 0);
  EXPECT_EQ(limiter.wait_of("peer 0", now).count(), 0);
  EXPECT_GT(limiter.wait_of("someone new", now).count(), 0);
  // After enough time all counters expire, and new peers get their own entry again.
  now += AttemptLimiter::kRegain * static_cast<int>(3 * AttemptLimiter::kMostPeers);
  EXPECT_EQ(limiter.wait_of("first", now).count(), 0);
  EXPECT_EQ(limiter.wait_of("someone new", now).count(), 0);
  exhaust("again");
  EXPECT_GT(limiter.wait_of("again", now).count(), 0);
  EXPECT_EQ(limiter.wait_of("someone new", now).count(), 0);
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
}  // namespace tt::door
