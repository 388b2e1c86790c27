#include "tracer/engine/crash_marker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <sstream>
#include <system_error>
#include <utility>

#include "tracer/format/file/input_file.h"
#include "tracer/format/file/replace_file.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

struct CrashSignal {
  int number;
  const char* name;
};
constexpr std::array kCrashSignals = {
    CrashSignal{SIGSEGV, "SIGSEGV"}, CrashSignal{SIGBUS, "SIGBUS"}, CrashSignal{SIGFPE, "SIGFPE"},
    CrashSignal{SIGILL, "SIGILL"}, CrashSignal{SIGABRT, "SIGABRT"}};

// What the signal handler reads. It may use only async-signal-safe functions.
struct HandlerState {
  std::atomic<const char*> file = nullptr;
  std::array<std::atomic<const char*>, 64> models{};  // being evaluated; null: a free slot
  std::array<struct sigaction, kCrashSignals.size()> earlier{};
};
HandlerState handler_state;  // NOLINT: a signal handler has no other parameters

void write_all(int fd, const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;  // with the 0
  (void)!::write(fd, text, bytes);
}

void on_crash(int number) {
  std::size_t which = 0;
  while (which + 1 < kCrashSignals.size() && kCrashSignals[which].number != number) ++which;
  ::sigaction(number, &handler_state.earlier[which], nullptr);
  int fd = -1;
  for (const auto& slot : handler_state.models) {
    const char* model = slot.load();
    const char* file = handler_state.file.load();
    if (model == nullptr || file == nullptr) continue;
    if (fd < 0) fd = ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat facts{};
    if (fd < 0 || ::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) break;
    write_all(fd, kCrashSignals[which].name);
    write_all(fd, model);
  }
  if (fd >= 0) ::close(fd);
  ::raise(number);  // delivered to the earlier handler when this one returns
}

// A signal stack for the calling thread, for crashes by stack overflow.
void use_signal_stack() {
  constexpr std::size_t kBytes = 64U << 10;
  stack_t current{};
  if (::sigaltstack(nullptr, &current) == 0 && (current.ss_flags & SS_DISABLE) == 0) return;
  thread_local const auto memory = std::make_unique<char[]>(kBytes);
  const stack_t own{.ss_sp = memory.get(), .ss_flags = 0, .ss_size = kBytes};
  ::sigaltstack(&own, nullptr);
}

}  // namespace

CrashMarker::CrashMarker(fs::path file) : file_(std::move(file)) {}

CrashMarker::~CrashMarker() {
  if (handler_state.file.load() == file_.c_str()) handler_state.file = nullptr;
}

void CrashMarker::install() {
  handler_state.file = file_.c_str();
  struct sigaction action{};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kCrashSignals.size(); ++i)
    ::sigaction(kCrashSignals[i].number, &action, &handler_state.earlier[i]);
}

CrashMarker::Evaluation::Evaluation(CrashMarker* marker, const fs::path& model)
    : model_(fs::absolute(model).string()) {
  if (marker == nullptr) return;
  use_signal_stack();
  for (auto& slot : handler_state.models) {
    const char* free = nullptr;
    if (!slot.compare_exchange_strong(free, model_.c_str())) continue;
    slot_ = &slot;
    return;
  }
}

CrashMarker::Evaluation::~Evaluation() {
  if (slot_ != nullptr) static_cast<std::atomic<const char*>*>(slot_)->store(nullptr);
}

std::vector<CrashMarker::Entry> CrashMarker::entries() const {
  constexpr std::uint64_t kMaxBytes = 1U << 20;
  std::istringstream file(read_input(file_, kMaxBytes).value_or(""));
  std::vector<Entry> entries;
  for (Entry entry;
       std::getline(file, entry.signal, '\0') && std::getline(file, entry.model, '\0');)
    entries.push_back(entry);
  return entries;
}

std::optional<std::string> CrashMarker::crash_of(const fs::path& model) const {
  std::error_code failed;
  const auto crashed = fs::last_write_time(file_, failed);
  if (failed) return std::nullopt;
  const auto changed = fs::last_write_time(model, failed);
  if (failed || changed > crashed) return std::nullopt;
  const std::vector<Entry> all = entries();
  const auto found = std::ranges::find(all, fs::absolute(model).string(), &Entry::model);
  if (found == all.end()) return std::nullopt;
  return found->signal;
}

void CrashMarker::forget(const fs::path& model) {
  std::vector<Entry> all = entries();
  const std::string path = fs::absolute(model).string();
  if (std::erase_if(all, [&](const Entry& entry) { return entry.model == path; }) == 0) return;
  std::error_code ignored;
  if (all.empty()) {
    fs::remove(file_, ignored);
    return;
  }
  std::string text;
  for (const Entry& entry : all) text += entry.signal + '\0' + entry.model + '\0';
  (void)replace_file(file_, text);
}

}  // namespace tt
