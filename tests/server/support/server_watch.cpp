#include "tests/server/support/server_watch.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <filesystem>
#include <format>
#include <fstream>
#include <print>

#include "tests/server/support/http_client.h"
#include "tests/support/fair_clock.h"
#include "tests/support/process_tree.h"
#include "tests/support/wait.h"

namespace tt::test {

using namespace std::chrono_literals;

namespace {

std::uint64_t anonymous_bytes(pid_t process) {
  std::ifstream file(std::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) << 10;
  return 0;
}

std::chrono::nanoseconds percentile_99(std::vector<std::chrono::nanoseconds> values) {
  if (values.empty()) return 0ns;
  std::ranges::sort(values);
  return values[(values.size() - 1) * 99 / 100];
}

}  // namespace

std::uint64_t process_tree_bytes(pid_t process) {
  std::uint64_t sum = 0;
  for (const pid_t each : process_tree(process)) sum += anonymous_bytes(each);
  return sum;
}

std::size_t process_tree_size(pid_t process) { return process_tree(process).size(); }

ServerWatch::ServerWatch(pid_t server, const std::string& url)
    : server_(server), initial_(process_tree_bytes(server)), peak_(initial_) {
  threads_.emplace_back([this](const std::stop_token& stop) { watch_memory(stop); });
  threads_.emplace_back([this, url](const std::stop_token& stop) { watch_health(stop, url); });
  threads_.emplace_back([this](const std::stop_token& stop) { watch_scheduler(stop); });
}

void ServerWatch::stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void ServerWatch::watch_memory(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::uint64_t now = process_tree_bytes(server_);
    {
      const std::lock_guard lock(mutex_);
      peak_ = std::max(peak_, now);
    }
    std::this_thread::sleep_for(10ms);
  }
}

void ServerWatch::watch_health(const std::stop_token& stop, const std::string& url) {
  httplib::Client client = http_client(url);
  client.set_keep_alive(true);
  constexpr std::size_t kMinRequests = 5;
  while (!stop.stop_requested() || health_requests() < kMinRequests) {
    const auto began = FairClock::now();
    const auto response = client.Get("/api/v1/health");
    const auto took = response && response->status == 200 ? FairClock::now() - began : 10s;
    {
      const std::lock_guard lock(mutex_);
      health_.push_back(took);
    }
    std::this_thread::sleep_for(5ms);
  }
}

void ServerWatch::watch_scheduler(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto began = FairClock::now();
    std::this_thread::sleep_for(5ms);
    const std::lock_guard lock(mutex_);
    wakeups_.push_back(std::max(0ns, FairClock::now() - began - 5ms));
  }
}

std::uint64_t ServerWatch::memory_growth() const {
  const std::lock_guard lock(mutex_);
  return peak_ - initial_;
}

bool ServerWatch::memory_returns(std::uint64_t slack) const {
  return wait_until([&] { return process_tree_bytes(server_) <= initial_ + slack; },
                    10s * kTimeFactor);
}

std::chrono::milliseconds ServerWatch::health_p99() const {
  const std::lock_guard lock(mutex_);
  // A request wakes several threads, one after another.
  constexpr int kWakeups = 4;
  const auto own = percentile_99(health_) - kWakeups * percentile_99(wakeups_);
  return std::max(0ms, std::chrono::duration_cast<std::chrono::milliseconds>(own));
}

std::size_t ServerWatch::health_requests() const {
  const std::lock_guard lock(mutex_);
  return health_.size();
}

void ServerWatch::expect_limits(std::uint64_t kept) {
  EXPECT_TRUE(memory_returns(kCached + kept))
      << (process_tree_bytes(server_) >> 20) << " MiB, initially " << (initial_ >> 20) << " MiB";
  stop();
  EXPECT_LE(memory_growth(), kMaxGrowth);
  EXPECT_LT(health_p99(), kMaxHealthTime);
  std::println("memory +{} MiB, /health p99 {} ms of {} requests", memory_growth() >> 20,
               health_p99().count(), health_requests());
}

}  // namespace tt::test
