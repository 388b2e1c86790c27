#include "server/frontend/detail/authenticator.h"

#include <algorithm>
#include <format>
#include <optional>
#include <ranges>

#include "server/frontend/secret.h"

namespace tt::frontend {
namespace {

constexpr std::string_view kLoginHint =
    "Programs send \"Authorization: Bearer KEY\"; a browser opens the login link that the server "
    "printed.";

// The key of "Authorization: Bearer KEY". Other schemes are ignored: a reverse proxy may use
// its own authentication.
std::optional<std::string_view> bearer_of(const RequestHead& head) {
  constexpr std::string_view kScheme = "bearer ";
  for (const auto& field : head.fields) {
    if (!equals_ignore_case(field.name, "Authorization") || field.value.size() < kScheme.size())
      continue;
    if (!equals_ignore_case(field.value.substr(0, kScheme.size()), kScheme)) continue;
    return trim(field.value.substr(kScheme.size()));
  }
  return std::nullopt;
}

std::vector<std::string_view> cookies_of(const RequestHead& head) {
  std::vector<std::string_view> found;
  for (const auto& field : head.fields) {
    if (!equals_ignore_case(field.name, "Cookie")) continue;
    for (const auto part : std::views::split(field.value, ';')) {
      const std::string_view pair = trim(std::string_view(part));
      const auto equals = pair.find('=');
      if (equals != std::string_view::npos && pair.substr(0, equals) == kCookieName) {
        found.push_back(pair.substr(equals + 1));
      }
    }
  }
  return found;
}

Rejection too_many_attempts(std::chrono::seconds wait) {
  return {
      .reason = RejectionReason::TooManyAttempts,
      .why = std::format("Too many wrong keys from this address. Try again in {} s.", wait.count()),
      .retry_after_s = static_cast<int>(wait.count())};
}

}  // namespace

std::expected<Caller, Rejection> Authenticator::identify(const RequestHead& head,
                                                         const std::string& peer,
                                                         Clock::time_point now) {
  if (!requires_key()) return Caller::Authenticated;
  const std::scoped_lock lock(mutex_);
  if (has_valid_cookie(head, now)) return Caller::Authenticated;
  const auto given = bearer_of(head);
  if (!given) return Caller::Unauthenticated;
  if (const auto wait = failures_.retry_after(peer, now); wait.count() > 0) {
    return std::unexpected(too_many_attempts(wait));
  }
  if (constant_time_equal(key_, *given)) return Caller::Authenticated;
  failures_.count_failure(peer, now);
  return std::unexpected(Rejection{.reason = RejectionReason::Unauthorized,
                                   .why = std::format("The key is wrong. {}", kLoginHint)});
}

// Compares every login with every cookie, so that the time reveals nothing.
bool Authenticator::has_valid_cookie(const RequestHead& head, Clock::time_point now) {
  bool found = false;
  for (const std::string_view cookie : cookies_of(head)) {
    for (const Login& login : logins_) {
      if (constant_time_equal(login.token, cookie) && now < login.ends) found = true;
    }
  }
  return found;
}

std::string Authenticator::create_login_code(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  code_ = random_secret(16);
  code_ends_ = now + kLoginCodeLifetime;
  return code_;
}

std::expected<std::string, Rejection> Authenticator::login(std::string_view code,
                                                           Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  if (!constant_time_equal(code_, code) || now >= code_ends_) {
    return std::unexpected(Rejection{
        .reason = RejectionReason::Unauthorized,
        .why =
            std::format("This login link has already been used or is older than {} minutes. Send "
                        "SIGUSR1 to the server, or restart it, to print another one.",
                        kLoginCodeLifetime.count())});
  }
  code_.clear();
  std::erase_if(logins_, [&](const Login& login) { return login.ends <= now; });
  if (logins_.size() == kMaxLogins) logins_.erase(logins_.begin());
  logins_.push_back({.token = random_secret(), .ends = now + kLoginLifetime});
  return logins_.back().token;
}

}  // namespace tt::frontend
