#include "tracer/format/file/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <mutex>

namespace tt {

// What the signal handler reads. It may use only async-signal-safe functions.
struct MappingGuardHandler {
  struct Slot {
    std::atomic<MappingGuard*> guard = nullptr;  // null: free
    std::atomic<std::uint64_t> begin = 0, end = 0;
  };
  std::array<Slot, MappingGuard::kMaxRanges> slots{};
  struct sigaction earlier{};

  static void on_sigbus(int number, siginfo_t* info, void* context);
};

namespace {

MappingGuardHandler handler;  // NOLINT: a signal handler has no other parameters

}  // namespace

void MappingGuardHandler::on_sigbus(int number, siginfo_t* info, void*) {
  constexpr std::uint64_t kPage = 4096;
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  for (Slot& slot : handler.slots) {
    MappingGuard* guard = slot.guard.load();
    const std::uint64_t end = slot.end.load();
    if (guard == nullptr || address < slot.begin.load() || address >= end) continue;
    const std::uint64_t page = address / kPage * kPage;
    void* mapped =
        ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ | PROT_WRITE,  // NOLINT
               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) break;
    guard->lost_.store(true);
    guard->stop_.store(true);
    return;
  }
  // The instruction runs again and gets the earlier action; a signal that was sent is sent again.
  ::sigaction(number, &handler.earlier, nullptr);
  if (info->si_code <= 0) ::raise(number);
}

MappingGuard::MappingGuard(std::span<const MappedRange> ranges, std::atomic<bool>& stop)
    : stop_(stop) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action{};
    action.sa_sigaction = &MappingGuardHandler::on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &handler.earlier);
  });
  for (const MappedRange& range : ranges) {
    for (MappingGuardHandler::Slot& slot : handler.slots) {
      MappingGuard* free = nullptr;
      // Not yet found by the handler: begin and end of a free slot are 0.
      if (!slot.guard.compare_exchange_strong(free, this)) continue;
      slot.begin.store(range.begin);
      slot.end.store(range.end);
      break;
    }
  }
}

MappingGuard::~MappingGuard() {
  for (MappingGuardHandler::Slot& slot : handler.slots) {
    if (slot.guard.load() != this) continue;
    slot.end.store(0);
    slot.begin.store(0);
    slot.guard.store(nullptr);
  }
}

}  // namespace tt
