#include "tracer/engine/model_check.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <format>
#include <fstream>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tracer/engine/backends.h"
#include "tracer/engine/engine.h"
#include "tracer/engine/load_metadata.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/sandbox/confinement.h"
#include "tracer/sandbox/fields.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

// The first byte of a message of the child, then an error. Loaded, Tokenized, Usable; or an error:
// of the file, of the machine (too little memory), or of an assertion of the library.
constexpr char kLoaded = 'l', kTokenized = 't', kUsable = 'u';
constexpr char kUnusable = 'n', kNoRoom = 'm', kAborted = 'a';
// Before these: a line of llama.cpp's log, as kLogLine, '0' + LibraryLine, text.
constexpr char kLogLine = 'g';
constexpr std::size_t kMaxLogLines = 2000, kMaxLineBytes = 2000;

constexpr int kLowestPriority = 19;

// For texts of a few hundred bytes. A tokenizer without a token that it needs may never end.
constexpr std::chrono::seconds kTokenizeTime{5};
constexpr std::uint64_t kTokenizeMemory = 256U << 20;

std::uint64_t ram_bytes() {
  return static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L)) *
         static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
}

// What the memory limits of this process leave (RLIMIT_DATA, RLIMIT_AS); the maximum: no limit.
std::uint64_t left_by_limits() {
  std::ifstream statm("/proc/self/statm");
  std::array<std::uint64_t, 6> pages{};  // total, resident, shared, text, lib, data
  for (std::uint64_t& count : pages) statm >> count;
  const auto page = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 1L));
  std::uint64_t left = UINT64_MAX;
  for (const auto& [resource, used] :
       {std::pair{RLIMIT_DATA, pages[5] * page}, std::pair{RLIMIT_AS, pages[0] * page}}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    left = std::min<std::uint64_t>(left,
                                   limit.rlim_cur - std::min<std::uint64_t>(used, limit.rlim_cur));
  }
  return left;
}

// What this process needs beside the model: threads, requests, the recorder. Without it, the code
// of the library that does not check its allocations could meet the limit in this process.
constexpr std::uint64_t kRoomOfProcess = 64U << 20;

// The memory that a child may use.
std::uint64_t room_for_model() {
  const std::uint64_t left = left_by_limits();
  return std::min(ram_bytes() / 4 * 3, left - std::min(left, kRoomOfProcess));
}

// Whether this process may use less than the RAM. A crash then says little about the file: code of
// the library does not check all of its allocations.
bool has_memory_limit() { return left_by_limits() < ram_bytes(); }

// ---------------------------------------------------------------- options as a message

std::string pack_options(const ModelOptions& model, const ContextOptions& context) {
  return pack_fields({model.path.native(), model.repacks() ? "1" : "0",
                      std::to_string(context.context), std::to_string(context.batch),
                      std::to_string(context.ubatch), std::to_string(context.threads),
                      std::to_string(context.threads_batch),
                      std::to_string(static_cast<int>(context.flash_attention)),
                      context.cache_type_k, context.cache_type_v, context.swa_full ? "1" : "0"});
}

std::pair<ModelOptions, ContextOptions> unpack_options(std::string_view message) {
  const auto fields = unpack_fields(message);
  const auto number = [&]<class Number>(std::size_t at, Number& out) {
    out = parse_number<Number>(fields.at(at)).value_or(out);
  };
  ModelOptions model;
  model.path = fields.at(0);
  model.repack = fields.at(1) == "1";
  model.repack_samples = true;
  ContextOptions context;
  int flash = 0;
  number(2, context.context);
  number(3, context.batch);
  number(4, context.ubatch);
  number(5, context.threads);
  number(6, context.threads_batch);
  number(7, flash);
  context.flash_attention = static_cast<FlashAttention>(flash);
  context.cache_type_k = fields.at(8);
  context.cache_type_v = fields.at(9);
  context.swa_full = fields.at(10) == "1";
  return {model, context};
}

// ---------------------------------------------------------------- child

struct IgnoreOutput final : GenerationListener {
  void on_token(const Token&, std::string_view) override {}
  void on_progress(std::uint32_t, std::uint32_t, std::uint32_t) override {}
  void on_text(std::string_view) override {}
};

// Tokens of a short text. Throws std::bad_alloc beyond kTokenizeMemory.
std::vector<std::int32_t> try_tokenizer(const Engine& engine) {
  if (!engine.facts().has_vocabulary) return {};
  const StricterMemoryLimit limit(kTokenizeMemory);
  // A tokenizer may have a fallback for each byte.
  std::string any;
  for (int byte = 1; byte < 256; ++byte) any += static_cast<char>(byte);
  any += "  \u00E9\u4E00\U0001F600 \t<s></s><|im_start|> 12345 don't";
  for (const std::size_t bytes : {any.size(), any.size() - 255, std::size_t{1}})
    (void)engine.tokens_of(Prompt{any.substr(any.size() - bytes)});
  return engine.tokens_of(Prompt{"A short text, 2 lines.\n"}).value_or(std::vector<std::int32_t>{});
}

void send_log_line(JobChannel& channel, LibraryLine kind, std::string_view line) {
  try {
    std::string message = {kLogLine, static_cast<char>('0' + static_cast<int>(kind))};
    channel.send(message += line.substr(0, kMaxLineBytes));
  } catch (const std::bad_alloc&) {  // called from C code; the line is lost
  }
}

// The last message.
std::string try_model(const ModelOptions& model, const ContextOptions& context,
                      JobChannel& channel) {
  const auto loaded = Engine::load(model, context, {});
  if (!loaded) {
    const bool no_room = loaded.error().kind == EngineError::Kind::OutOfMemory;
    return (no_room ? kNoRoom : kUnusable) + loaded.error().message;
  }
  Engine& engine = **loaded;
  // Four tokens: the kernels of matrix products differ from those of a single token.
  constexpr std::size_t kPromptTokens = 4;
  channel.send({&kLoaded, 1});
  std::vector<std::int32_t> prompt;
  try {
    prompt = try_tokenizer(engine);
  } catch (const std::bad_alloc&) {
    return kUnusable + std::format(
                           "{}: its tokenizer needs more than {} MiB of memory for a short text. "
                           "The file is damaged: download or convert it again.",
                           model.path.string(), kTokenizeMemory >> 20);
  }
  channel.send({&kTokenized, 1});
  for (std::int32_t id = 0; prompt.size() < kPromptTokens; ++id)
    prompt.push_back(id % static_cast<std::int32_t>(std::max(1U, engine.facts().n_vocab)));
  prompt.resize(kPromptTokens);

  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = 3;  // the last one is not evaluated
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  request.level = Level::Off;
  IgnoreOutput ignore;
  const GenerationResult result = engine.generate(request, nullptr, ignore);
  // A model that computes NaN can be run, to see where it comes from: each run says so.
  if (result.reason != StopReason::Error || result.invalid_logits) return {kUsable};
  return kUnusable +
         std::format("{}: the model cannot be evaluated. {}", model.path.string(), result.error);
}

// The parts of the model, what describes this machine, and the graphics cards of loaded backends.
FileAccess files_of_check(const std::filesystem::path& model) {
  FileAccess access{.read = {model, "/proc", "/sys"}, .read_and_write = {"/dev/dri", "/dev/kfd"}};
  if (const auto index = GgufIndex::open(model)) {
    for (const ModelFile& file : index->files()) access.read.emplace_back(file.path);
  } else {  // its other parts, to say which of them is wrong
    access.read.push_back(std::filesystem::absolute(model).parent_path());
  }
  std::error_code failed;
  for (std::filesystem::directory_iterator entry("/dev", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().filename().string().starts_with("nvidia"))
      access.read_and_write.push_back(entry->path());
  }
  return access;
}

JobChannel* abort_channel = nullptr;  // of this child, for the library's callback

void begin_check(JobChannel& channel, const std::filesystem::path& model) {
  abort_channel = &channel;
  ggml_set_abort_callback(
      [](const char* message) { abort_channel->send(kAborted + std::string(message)); });
  load_backends(
      [&channel, lines = std::size_t{0}](LibraryLine kind, std::string_view line) mutable {
        if (++lines <= kMaxLogLines) send_log_line(channel, kind, line);
      });
  confine_to_files(files_of_check(model));
}

}  // namespace

JobKind metadata_check_job() {
  return {.name = "check_metadata",
          .run =
              [](JobChannel& channel) {
                const std::filesystem::path model = channel.receive();
                ::setpriority(PRIO_PROCESS, 0, kLowestPriority);
                begin_check(channel, model);
                const auto loaded = load_metadata(model);
                channel.send(loaded ? std::string{kUsable} : kUnusable + loaded.error().message);
              },
          .opens_files = true};
}

JobKind model_check_job() {
  return {.name = "check_model",
          .run =
              [](JobChannel& channel) {
                const auto [model, context] = unpack_options(channel.receive());
                begin_check(channel, model.path);
                std::string verdict;
                try {
                  verdict = try_model(model, context, channel);
                } catch (const std::bad_alloc&) {
                  throw;
                } catch (const std::exception& thrown) {
                  verdict = kUnusable + std::format("{}: llama.cpp cannot load it: {}",
                                                    model.path.string(), thrown.what());
                }
                channel.send(verdict);
              },
          .opens_files = true};
}

// ---------------------------------------------------------------- caller

static constexpr const char* kCrashAdvice =
    "The file does not fit this version of llama.cpp, or is damaged: compare its checksum with "
    "that "
    "of the source, or convert it again.";
static constexpr const char* kLimitAdvice =
    "It needs more memory than the limits of this process leave (raise them: ulimit -d, ulimit "
    "-v), "
    "or the file is damaged.";

std::chrono::milliseconds model_check_timeout(const std::filesystem::path& model) {
  constexpr std::uint64_t kBytesPerMs = 10'000;
  std::uint64_t bytes = 0;
  if (const auto index = GgufIndex::open(model)) {
    for (const ModelFile& file : index->files()) bytes += file.size;
  }
  return std::chrono::minutes(2) + std::chrono::milliseconds(bytes / kBytesPerMs);
}

std::string metadata_error(Sandbox& sandbox, const std::filesystem::path& model,
                           const KeepGoing& keep_going) {
  // What a memory limit makes impossible, the check of the model says.
  if (room_for_model() == 0) return "";
  const JobLimits limits{.time = std::chrono::minutes(2),
                         .cpu_time = std::chrono::seconds(30),
                         .memory_bytes = room_for_model(),
                         .stack_bytes = 8U << 20,
                         .counts = false};
  auto job = sandbox.start("check_metadata", limits, keep_going);
  if (!job || !job->send(model.native(), keep_going)) return "";
  for (;;) {
    const auto message = job->receive(keep_going);
    if (!message) {
      if (message.error().kind != JobError::Kind::Crash || has_memory_limit()) return "";
      return std::format("{}: loading its metadata in llama.cpp {}. {}", model.string(),
                         message.error().reason, kCrashAdvice);
    }
    if (message->starts_with(kLogLine)) continue;
    if (message->starts_with(kUsable)) return "";
    if (message->starts_with(kUnusable)) return message->substr(1);
    if (has_memory_limit()) return "";
    return std::format("{}: llama.cpp crashed while loading its metadata ({}). {}", model.string(),
                       message->empty() ? "" : message->substr(1), kCrashAdvice);
  }
}

ModelCheck::ModelCheck(Sandbox& sandbox, const ModelOptions& model, const ContextOptions& context,
                       std::chrono::milliseconds timeout, std::stop_token stop)
    : path_(model.path.string()),
      timeout_(timeout),
      stop_(std::move(stop)),
      is_limited_(has_memory_limit()) {
  if (room_for_model() == 0) {
    error_ = std::format(
        "{}: the memory limits of this process leave less than {} MiB for a model: raise them "
        "(ulimit -d, ulimit -v).",
        path_, kRoomOfProcess >> 20);
    return;
  }
  // Reading from a slow disk takes time, but little CPU time.
  constexpr std::chrono::seconds kCpuTime{15};
  const auto per_byte = timeout - std::chrono::minutes(2);
  const JobLimits limits{.time = timeout,
                         .cpu_time = kCpuTime + std::max(per_byte, std::chrono::milliseconds(0)),
                         .memory_bytes = room_for_model(),
                         .stack_bytes = 8U << 20,
                         .counts = false};
  const KeepGoing keep_going = [this] { return !stop_.stop_requested(); };
  auto job = sandbox.start("check_model", limits, keep_going);
  if (!job) {
    error_ = reason(job.error());
    return;
  }
  job_.emplace(*std::move(job));
  if (auto sent = job_->send(pack_options(model, context), keep_going); !sent)
    error_ = reason(sent.error());
}

std::expected<void, std::string> ModelCheck::loaded() {
  if (auto loaded = wait_for(kLoaded, timeout_); !loaded) return loaded;
  return wait_for(kTokenized, std::min<std::chrono::milliseconds>(timeout_, kTokenizeTime));
}
std::expected<void, std::string> ModelCheck::evaluated() { return wait_for(kUsable, timeout_); }

std::expected<void, std::string> ModelCheck::wait_for(char expected_reply,
                                                      std::chrono::milliseconds time) {
  if (error_) return std::unexpected(*error_);
  const auto reply = receive(time);
  if (!reply) {
    error_ = reason(reply.error());
  } else if (reply->starts_with(kUnusable) || reply->starts_with(kNoRoom)) {
    error_ = reply->substr(1);
    is_refused_ = reply->starts_with(kUnusable);
  } else if (!reply->starts_with(expected_reply)) {
    is_refused_ = !is_limited_;
    error_ = std::format("{}: llama.cpp crashed while loading or evaluating it ({}). {}", path_,
                         reply->empty() ? "" : reply->substr(1), crash_advice());
  }
  if (!error_) return {};
  for (const std::string& line : std::exchange(log_, {}))
    log_library_line(static_cast<LibraryLine>(line[0] - '0'), std::string_view(line).substr(1));
  return std::unexpected(*error_);
}

// The next message that is not a line of the log.
std::expected<std::string, JobError> ModelCheck::receive(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    job_->set_time_limit(std::max(left, std::chrono::milliseconds(0)));
    auto message = job_->receive([this] { return !stop_.stop_requested(); });
    if (!message && message.error().kind == JobError::Kind::Time) {
      const auto seconds = std::chrono::duration<double>(time).count();
      message.error().reason = std::format("took more than {:.1f} s", seconds);
    }
    if (!message || !message->starts_with(kLogLine)) return message;
    const bool is_line = message->size() >= 2 && (*message)[1] >= '0' &&
                         (*message)[1] <= '0' + static_cast<int>(LibraryLine::Error);
    if (is_line && log_.size() < kMaxLogLines) log_.push_back(message->substr(1));
  }
}

std::string ModelCheck::first_error() const {
  for (const std::string& line : log_)
    if (line[0] == '0' + static_cast<int>(LibraryLine::Error)) return cause_of(line.substr(1));
  return "";
}

std::string ModelCheck::reason(const JobError& error) {
  switch (error.kind) {
    case JobError::Kind::Cancelled:
      return "The model check was cancelled.";
    case JobError::Kind::Busy:
    case JobError::Kind::Unavailable:
      return std::format("{}: the model check {}.", path_, error.reason);
    case JobError::Kind::Memory:
      return std::format(
          "{}: loading and evaluating it in llama.cpp {}. A smaller context (-c) or batch (-b, "
          "-ub) needs less memory. A damaged file can need any amount.",
          path_, error.reason);
    case JobError::Kind::Time:
    case JobError::Kind::CpuTime:
    case JobError::Kind::Crash:
    case JobError::Kind::ResultSize:
      break;
  }
  // A slow disk or a busy machine needs time, too.
  is_refused_ = error.kind != JobError::Kind::Time && !is_limited_;
  const std::string cause = first_error();
  return std::format("{}: loading and evaluating it in llama.cpp {}{}. {}", path_, error.reason,
                     cause.empty() ? "" : std::format(" ({})", cause), crash_advice());
}

const char* ModelCheck::crash_advice() const { return is_limited_ ? kLimitAdvice : kCrashAdvice; }

}  // namespace tt
