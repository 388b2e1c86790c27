#include "analysis/common/verdict.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <format>
#include <utility>

#include "analysis/common/format_units.h"

namespace tt {

const char* to_text(Verdict verdict) {
  static constexpr std::array kNames = {"clean", "contended", "throttled", "disk"};
  const auto i = static_cast<std::size_t>(std::to_underlying(verdict));
  return i < kNames.size() ? kNames[i] : "?";
}

bool ThreadTime::add(const StepConditions& conditions, std::uint32_t threads) {
  if (!conditions.interval_ns || !conditions.cpu_ns || !conditions.cpu_wait_ns) return false;
  const auto number = [](const StepConditions::Value& value) {
    return static_cast<double>(value.value_or(0));
  };
  const double total = number(conditions.interval_ns) * std::max(threads, 1U);
  const double cpu = number(conditions.cpu_ns), wait = number(conditions.cpu_wait_ns);
  const double throttled = std::min(number(conditions.throttled_ns), total);
  total_ns += total;
  cpu_ns += cpu;
  wait_ns += wait;
  throttled_ns += throttled;
  if (number(conditions.thermal_throttles) > 0) hot_ns += total;
  faults += number(conditions.major_faults);
  bytes += number(conditions.disk_read_bytes);
  if (number(conditions.major_faults) > 0)
    blocked_ns += std::max(total - cpu - wait - throttled, 0.0);
  return true;
}

ThreadTime& ThreadTime::operator+=(const ThreadTime& other) {
  total_ns += other.total_ns;
  cpu_ns += other.cpu_ns;
  wait_ns += other.wait_ns;
  throttled_ns += other.throttled_ns;
  hot_ns += other.hot_ns;
  blocked_ns += other.blocked_ns;
  faults += other.faults;
  bytes += other.bytes;
  return *this;
}

// A CPU limit makes its group's threads wait for each other, too; a disk does not make them wait
// for a processor. So the order of the first two decides, and the larger loss of the last two.
std::optional<Verdict> ThreadTime::verdict() const {
  if (total_ns <= 0) return std::nullopt;
  const auto is_loss = [&](double ns, double share) {
    return ns >= share * total_ns && ns >= kLeastNs;
  };
  if (is_loss(throttled_ns, kThrottled) || is_loss(hot_ns, kHot)) return Verdict::Throttled;
  const bool contended = is_loss(wait_ns, kContended);
  if (is_loss(blocked_ns, kDisk) && (!contended || blocked_ns > wait_ns)) return Verdict::Disk;
  return contended ? Verdict::Contended : Verdict::Clean;
}

std::optional<Verdict> verdict_of(const StepConditions& conditions, std::uint32_t threads) {
  ThreadTime time;
  return time.add(conditions, threads) ? time.verdict() : std::nullopt;
}

bool is_left_out(LeaveOut leave_out, const StepConditions& conditions, std::uint32_t threads) {
  if (leave_out == LeaveOut::Nothing) return false;
  return verdict_of(conditions, threads).value_or(Verdict::Clean) != Verdict::Clean;
}

ThreadRoom thread_room(const SessionInfo& info) {
  ThreadRoom room{
      .threads = info.fact_number("context.threads").value_or(0),
      .processors = info.fact_number("host.cores").value_or(0),
      .cpu_limit = std::strtod(std::string(info.fact("host.cpu_limit")).c_str(), nullptr)};
  if (room.processors == 0) return room;
  const auto at_most = [&](double processors) {
    if (processors > 0 && processors < static_cast<double>(room.processors))
      room.processors = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(processors));
  };
  at_most(static_cast<double>(info.fact_number("host.allowed_processors").value_or(0)));
  at_most(room.cpu_limit);
  return room;
}

std::string advice_on(Verdict verdict, const ThreadTime& time, const ThreadRoom& room) {
  const auto share = [&](double ns) { return format_percent(ns, time.total_ns); };
  const std::string crowd =
      !room.is_crowded()
          ? ""
          : std::format("{} on {}", counted(room.threads, "thread"),
                        room.is_below_one_thread()
                            ? std::format("{:.2f} of an allowed processor", room.cpu_limit)
                            : counted(room.processors, "allowed processor"));
  const std::string fewer =
      room.has_too_many_threads() ? std::format("Use -t {}, or allow", room.processors) : "Allow";
  switch (verdict) {
    case Verdict::Clean:
      return "clean: nothing else held up the evaluation.";
    case Verdict::Contended:
      if (!crowd.empty()) {
        return std::format(
            "contended: {}: they waited for {} of their time. {} more processors (taskset, docker "
            "--cpuset-cpus or --cpus), and record again.",
            crowd, share(time.wait_ns), fewer);
      }
      return std::format(
          "contended: the threads waited for a processor for {} of their time. The times are not "
          "those of the model alone: stop other programs{}, and record again.",
          share(time.wait_ns),
          room.threads == 1 ? "" : ", or use fewer threads (-t, when the program starts)");
    case Verdict::Throttled:
      if (time.hot_ns > time.throttled_ns) {
        return std::format(
            "throttled: processors were slowed down because of their temperature in steps with {} "
            "of the time. Let the machine cool down, or use fewer threads (-t, when the program "
            "starts), and record again.",
            share(time.hot_ns));
      }
      if (!crowd.empty()) {
        return std::format(
            "throttled: {}: the CPU limit (cgroup) stopped them for {} of their time. {} more "
            "processors (docker --cpus, systemd CPUQuota), and record again.",
            crowd, share(time.throttled_ns), fewer);
      }
      return std::format(
          "throttled: a CPU limit (cgroup) stopped the threads for {} of their time. Raise the "
          "limit (docker --cpus, systemd CPUQuota), or use no more threads (-t, when the program "
          "starts) than it allows.",
          share(time.throttled_ns));
    case Verdict::Disk:
      return std::format(
          "disk: the threads waited for {} of their time in steps with {:.0f} major page faults; "
          "{} were read. If the model fits into memory, the next run will find it there, and "
          "--load-mode mmap+mlock keeps it there. If it does not, `tt memory` says what helps.",
          share(time.blocked_ns), time.faults, format_bytes(time.bytes));
  }
  return "";
}

}  // namespace tt
