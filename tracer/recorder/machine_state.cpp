#include "tracer/recorder/machine_state.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <format>
#include <fstream>
#include <iterator>
#include <ranges>
#include <sstream>
#include <system_error>

namespace tt {

namespace fs = std::filesystem;

namespace {

using Number = std::optional<std::uint64_t>;

// The number at the start of `text`, which is then behind it and one more character.
Number next_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc{}) return std::nullopt;
  text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
  return number;
}

// The number after the first `key`.
Number number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  return next_number(text);
}

// Of /proc/pressure/*: "some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS".
Number pressure_ns(std::string_view text) {
  const Number us = number_after(text, "total=");
  return us ? Number(*us * 1000) : std::nullopt;
}

// Of cpu.stat: nanoseconds in cgroup v1, microseconds in v2.
Number throttled_ns(std::string_view text) {
  if (const Number ns = number_after(text, "throttled_time ")) return ns;
  const Number us = number_after(text, "throttled_usec ");
  return us ? Number(*us * 1000) : std::nullopt;
}

// Of core_throttle_count and scaling_cur_freq: the number is all that they contain.
Number only_number(std::string_view text) { return next_number(text); }

// Folders of the processors.
std::vector<fs::path> processors(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(root / "sys/devices/system/cpu", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with("cpu") && name.size() > 3 &&
        name.find_first_not_of("0123456789", 3) == name.npos)
      folders.push_back(entry->path());
  }
  std::ranges::sort(folders);
  return folders;
}

// Linux encodes the clock of a thread's CPU time like this (clock_getcpuclockid(3) for threads).
clockid_t cpu_clock_of(std::string_view thread) {
  const auto id = static_cast<clockid_t>(next_number(thread).value_or(0));
  constexpr clockid_t kOfThread = 4, kScheduler = 2;
  return (~id << 3) | kOfThread | kScheduler;
}

// nullopt: the thread has ended.
std::optional<std::uint64_t> time_of(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

bool has_word(std::string_view list, std::string_view word) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

std::uint64_t ns_between(std::chrono::steady_clock::time_point from,
                         std::chrono::steady_clock::time_point to) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

}  // namespace

// A file of the kernel, which is generated anew each time that it is read from its start.
class MachineState::KernelFile {
 public:
  explicit KernelFile(const fs::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), error_(fd_ < 0 ? errno : 0) {}
  KernelFile(KernelFile&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), error_(other.error_), text_(other.text_) {}
  KernelFile& operator=(KernelFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    error_ = other.error_;
    return *this;
  }
  ~KernelFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  // Empty: error() says why. Valid until the next call.
  std::string_view read() {
    if (fd_ < 0) return {};
    const ssize_t size = ::pread(fd_, text_.data(), text_.size(), 0);
    error_ = size < 0 ? errno : 0;
    return {text_.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }
  std::string error() const { return std::system_category().message(error_); }

 private:
  int fd_;
  int error_;
  std::array<char, 512> text_{};
};

struct MachineState::Thread {
  std::string id;
  clockid_t clock;  // of its CPU time
  KernelFile schedstat;
  std::uint64_t cpu_ns = 0, wait_ns = 0;  // at the last reading

  struct Times {
    std::uint64_t cpu_ns, wait_ns;
  };
  // nullopt: it has ended.
  std::optional<Times> read() {
    std::string_view text = schedstat.read();
    const Number cpu = next_number(text), wait = next_number(text);
    if (!cpu || !wait) return std::nullopt;
    // schedstat has the CPU time of a running thread as of the last tick.
    return Times{time_of(clock).value_or(*cpu), *wait};
  }
};

// A number that only grows, of which the difference between two readings is taken.
struct MachineState::Counter {
  StepConditions::Value StepConditions::* value;
  KernelFile file;
  Number (*number)(std::string_view text);
  std::uint64_t last;
};

MachineState::MachineState(fs::path root)
    : root_(std::move(root)), name_(std::format("eval-{}", gettid())) {
  pthread_setname_np(pthread_self(), name_.c_str());
}
MachineState::~MachineState() = default;

std::string MachineState::proc(std::string_view name) const {
  return (root_ / "proc" / name).string();
}

void MachineState::lack(std::string values, std::string reason) {
  const auto known =
      std::ranges::find(lacking_, values, &std::pair<std::string, std::string>::first);
  if (known == lacking_.end()) lacking_.emplace_back(std::move(values), std::move(reason));
}

std::string MachineState::source() const {
  if (lacking_.empty()) return "all";
  std::string text;
  for (const auto& [values, reason] : lacking_)
    text += std::format("{}no {}: {}", text.empty() ? "" : "; ", values, reason);
  return text;
}

void MachineState::begin() {
  lacking_.clear();
  threads_.clear();
  open_counters();
  open_frequencies();
  memory_limit_.emplace(root_);
  levels_ = {};
  find_threads(/*since_begin=*/false);
  KernelFile schedstat(proc("thread-self/schedstat"));
  // All zero if the kernel does not count them.
  const std::string_view text = schedstat.read();
  counts_threads_ = !text.empty() && !text.starts_with("0 0 ");
  if (!counts_threads_)
    lack("cpu_ns, cpu_wait_ns", text.empty() ? "/proc/thread-self/schedstat: " + schedstat.error()
                                             : "the kernel does not count them (schedstat)");
  // Without this file, the kernel does not count what a process reads.
  KernelFile io(proc("self/io"));
  counts_disk_ = !io.read().empty();
  if (!counts_disk_) lack("disk_read_bytes", "/proc/self/io: " + io.error());
  recorder_time();
  usage_ = usage();
  last_ = std::chrono::steady_clock::now();
  last_slow_ = last_rare_ = {};  // the first step is followed by a reading of everything
}

void MachineState::open_counters() {
  counters_.clear();
  const auto add = [&](StepConditions::Value StepConditions::* value, const fs::path& path,
                       Number (*number)(std::string_view)) -> std::string {
    KernelFile file(path);
    const std::string_view text = file.read();
    if (text.empty()) return file.error();
    const Number now = number(text);
    if (!now) return "it has no such number";
    counters_.push_back({.value = value, .file = std::move(file), .number = number, .last = *now});
    return "";
  };
  for (const auto& [name, resource, value] :
       {std::tuple{"pressure_cpu_ns", "cpu", &StepConditions::pressure_cpu_ns},
        std::tuple{"pressure_io_ns", "io", &StepConditions::pressure_io_ns},
        std::tuple{"pressure_memory_ns", "memory", &StepConditions::pressure_memory_ns}}) {
    const std::string file = std::string("pressure/") + resource;
    if (const std::string error = add(value, proc(file), pressure_ns); !error.empty())
      lack(name, "/proc/" + file + ": " + error);
  }
  std::size_t groups = 0;
  for (const fs::path& file : cpu_group_files(root_))
    groups += add(&StepConditions::throttled_ns, file, throttled_ns).empty();  // not in the root
  if (groups == 0) lack("throttled_ns", "no cgroup with a CPU controller");
  std::size_t thermal = 0;
  for (const fs::path& processor : processors(root_)) {
    thermal += add(&StepConditions::thermal_throttles,
                   processor / "thermal_throttle/core_throttle_count", only_number)
                   .empty();
  }
  if (thermal == 0) lack("thermal_throttles", "the processors do not count them");
}

void MachineState::open_frequencies() {
  frequencies_.clear();
  for (const fs::path& processor : processors(root_))
    frequencies_.emplace_back(processor / "cpufreq/scaling_cur_freq");
  // The fastest of a few: another program may have had the processor in the others.
  bool known = true;
  auto took = std::chrono::microseconds::max();
  for (int tries = 5; known && took > kMaxFrequencyTime && tries > 0; --tries) {
    const auto before = std::chrono::steady_clock::now();
    known = frequency().has_value();
    took = std::min(took, std::chrono::duration_cast<std::chrono::microseconds>(
                              std::chrono::steady_clock::now() - before));
  }
  if (known && took <= kMaxFrequencyTime) return;
  frequencies_.clear();
  lack("frequency_khz",
       known ? std::format("reading it takes {} µs", took.count())
             : std::string("the system does not tell (no cpufreq/scaling_cur_freq)"));
}

// The mean over the processors; nullopt: not known.
StepConditions::Value MachineState::frequency() {
  std::uint64_t sum = 0, count = 0;
  for (KernelFile& file : frequencies_) {
    const Number khz = only_number(file.read());
    if (!khz) continue;
    sum += *khz;
    ++count;
  }
  return count == 0 ? std::nullopt : StepConditions::Value(sum / count);
}

void MachineState::read_memory() {
  levels_.memory_limit_bytes = memory_limit_->read().limit;
  if (*levels_.memory_limit_bytes == 0) {
    levels_.memory_limit_bytes = std::nullopt;
    lack("memory_limit_bytes", "no /proc/meminfo");
  }
  levels_.locked_bytes = std::nullopt;
  std::ifstream status(proc("self/status"));
  for (std::string line; !levels_.locked_bytes && std::getline(status, line);) {
    constexpr std::string_view kLocked = "VmLck:";
    if (!line.starts_with(kLocked)) continue;
    std::string_view text = line;
    text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
    if (const Number kib = next_number(text)) levels_.locked_bytes = *kib * 1024;
  }
  if (!levels_.locked_bytes) lack("locked_bytes", "no VmLck in /proc/self/status");
}

// Threads that are new since begin() have counted from zero during the session.
void MachineState::find_threads(bool since_begin) {
  threads_of_process_ = thread_count();
  std::error_code error;
  for (fs::directory_iterator task(proc("self/task"), error), end; !error && task != end;
       task.increment(error)) {
    const std::string id = task->path().filename();
    if (std::ranges::contains(threads_, id, &Thread::id)) continue;
    KernelFile comm(task->path() / "comm");
    if (!comm.read().starts_with(name_ + "\n")) continue;
    Thread thread{
        .id = id, .clock = cpu_clock_of(id), .schedstat = KernelFile(task->path() / "schedstat")};
    if (!since_begin) {
      const auto now = thread.read().value_or(Thread::Times{});
      thread.cpu_ns = now.cpu_ns;
      thread.wait_ns = now.wait_ns;
    }
    threads_.push_back(std::move(thread));
  }
}

// The kernel counts a process's threads as links of this folder.
std::uint64_t MachineState::thread_count() const {
  struct stat facts{};
  return ::stat(proc("self/task").c_str(), &facts) == 0 ? facts.st_nlink : 0;
}

MachineState::Usage MachineState::usage() {
  rusage of{};
  getrusage(RUSAGE_SELF, &of);
  const auto number = [](long value) { return static_cast<std::uint64_t>(value); };
  constexpr std::uint64_t kBlock = 512;  // bytes, for every file system
  return {.voluntary = number(of.ru_nvcsw),
          .involuntary = number(of.ru_nivcsw),
          .minor = number(of.ru_minflt),
          .major = number(of.ru_majflt),
          .disk_bytes = number(of.ru_inblock) * kBlock};
}

StepConditions MachineState::take(std::uint32_t threads, const StepConditions& known) {
  StepConditions out = known;
  const auto now = std::chrono::steady_clock::now();
  out.interval_ns = ns_between(last_, now);
  last_ = now;
  if (counts_threads_) read_threads(threads, out);
  read_usage(out);
  for (Counter& counter : counters_) (out.*counter.value).emplace(0);
  if (now - last_slow_ >= kSlowInterval) {
    last_slow_ = now;
    read_counters(out);
    levels_.frequency_khz = frequency();
  }
  if (now - last_rare_ >= kRareInterval) {
    last_rare_ = now;
    read_memory();
  }
  for (const StepCondition& of : kStepConditions)
    if (of.is_level) out.*of.value = levels_.*of.value;
  return out;
}

void MachineState::read_threads(std::uint32_t threads, StepConditions& out) {
  std::uint64_t cpu = 0, wait = 0;
  const auto read = [&](Thread& thread) {
    const auto now = thread.read();
    if (!now) return false;  // it has ended
    cpu += now->cpu_ns - thread.cpu_ns;
    wait += now->wait_ns - thread.wait_ns;
    thread.cpu_ns = now->cpu_ns;
    thread.wait_ns = now->wait_ns;
    return true;
  };
  std::erase_if(threads_, [&](Thread& thread) { return !read(thread); });
  if (threads_.size() < threads && thread_count() != threads_of_process_) {
    const std::size_t known = threads_.size();
    find_threads(/*since_begin=*/true);
    for (Thread& thread : threads_ | std::views::drop(known)) read(thread);
  }
  const std::uint64_t own = recorder_time();
  if (threads_.size() < threads)
    return lack("cpu_ns, cpu_wait_ns", std::format("of {} threads that evaluated, {} were found",
                                                   threads, threads_.size()));
  out.cpu_ns = cpu;
  out.cpu_wait_ns = wait > own ? wait - own : 0;
}

// The CPU time of the recorder's thread since the last call.
std::uint64_t MachineState::recorder_time() {
  if (!recorder_clock_) return 0;
  const std::uint64_t now = time_of(*recorder_clock_).value_or(recorder_ns_);
  return now - std::exchange(recorder_ns_, now);
}

void MachineState::set_recorder(pthread_t thread) {
  clockid_t clock{};
  if (pthread_getcpuclockid(thread, &clock) == 0) recorder_clock_ = clock;
}

void MachineState::read_usage(StepConditions& out) {
  const Usage now = usage();
  out.voluntary_switches = now.voluntary - usage_.voluntary;
  out.involuntary_switches = now.involuntary - usage_.involuntary;
  out.minor_faults = now.minor - usage_.minor;
  out.major_faults = now.major - usage_.major;
  if (counts_disk_) out.disk_read_bytes = now.disk_bytes - usage_.disk_bytes;
  usage_ = now;
}

void MachineState::read_counters(StepConditions& out) {
  for (Counter& counter : counters_) {
    const Number now = counter.number(counter.file.read());
    if (!now || *now < counter.last) continue;  // the group was removed
    *(out.*counter.value) += *now - counter.last;
    counter.last = *now;
  }
}

std::vector<fs::path> cpu_group_files(const fs::path& root) {
  // The process's group: "ID:cpu,cpuacct:/path" in v1, "0::/path" in v2.
  std::string group;
  bool v1 = false;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; !v1 && std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    v1 = has_word(controllers, "cpu");
    if (v1 || controllers.empty()) group = line.substr(second + 1);
  }
  // Its folder is below the mount of this controller:
  // "36 35 98:0 /root /mount/point options - cgroup source cpu,cpuacct".
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; !group.empty() && std::getline(mounts, line);) {
    std::istringstream words(line);
    const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    const auto type = std::ranges::find(fields, "-");
    if (fields.size() < 5 || fields.end() - type < 4) continue;
    if (v1 ? type[1] != "cgroup" || !has_word(type[3], "cpu") : type[1] != "cgroup2") continue;
    const std::string& top = fields[3];  // the group that is mounted
    if (top != "/" && !group.starts_with(top)) continue;
    const fs::path mount = root / fs::path(fields[4]).relative_path();
    fs::path folder = fs::path(group.substr(top == "/" ? 0 : top.size())).relative_path();
    if (std::ranges::contains(folder, fs::path(".."))) continue;  // outside of what is mounted
    std::vector<fs::path> files;
    for (; !folder.empty(); folder = folder.parent_path())
      files.push_back(mount / folder / "cpu.stat");
    files.push_back(mount / "cpu.stat");
    return files;
  }
  return {};
}

}  // namespace tt
