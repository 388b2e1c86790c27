#include "tracer/engine/model_check.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <format>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/engine/backends.h"
#include "tracer/engine/engine.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/sandbox/fields.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

// The first byte of a message of the child, then an error. Loaded, Tokenized, Usable; or an error.
constexpr char kLoaded = 'l', kTokenized = 't', kUsable = 'u', kUnusable = 'n', kAborted = 'a';

// For texts of a few hundred bytes. A tokenizer without a token that it needs may never end.
constexpr std::chrono::seconds kTokenizeTime{5};
constexpr std::uint64_t kTokenizeMemory = 256U << 20;

std::uint64_t ram_bytes() {
  return static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L)) *
         static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
}

// ---------------------------------------------------------------- options as a message

std::string pack_options(const ModelOptions& model, const ContextOptions& context) {
  return pack_fields({model.path.native(), model.repacks() ? "1" : "0",
                      std::to_string(context.context), std::to_string(context.batch),
                      std::to_string(context.ubatch), std::to_string(context.threads),
                      std::to_string(context.threads_batch),
                      std::to_string(static_cast<int>(context.flash_attention)),
                      context.cache_type_k, context.cache_type_v});
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

// The error; empty: the model is usable.
std::string try_model(const ModelOptions& model, const ContextOptions& context,
                      const std::string& last_log_line, JobChannel& channel) {
  const auto loaded = Engine::load(model, context, {});
  if (!loaded) {
    const std::string_view line =
        std::string_view(last_log_line).substr(0, last_log_line.find_last_not_of("\r\n ") + 1);
    return loaded.error().message +
           (line.empty() ? "" : std::format(" The library's last message: {}", line));
  }
  Engine& engine = **loaded;
  // Four tokens: the kernels of matrix products differ from those of a single token.
  constexpr std::size_t kPromptTokens = 4;
  channel.send({&kLoaded, 1});
  std::vector<std::int32_t> prompt;
  try {
    prompt = try_tokenizer(engine);
  } catch (const std::bad_alloc&) {
    return std::format(
        "{}: its tokenizer needs more than {} MiB of memory for a short text. The file is damaged: "
        "download or convert it again.",
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
  if (result.reason != StopReason::Error) return "";
  return std::format("{}: the model cannot be evaluated. {}", model.path.string(), result.error);
}

JobChannel* abort_channel = nullptr;  // of this child, for the library's callback

}  // namespace

JobKind model_check_job() {
  return {.name = "check_model", .run = [](JobChannel& channel) {
            const auto [model, context] = unpack_options(channel.receive());
            abort_channel = &channel;
            ggml_set_abort_callback(
                [](const char* message) { abort_channel->send(kAborted + std::string(message)); });
            std::string last_error;
            load_backends([&last_error](LibraryLine kind, std::string_view line) {
              if (kind == LibraryLine::Error) last_error = line;
            });
            std::string error;
            try {
              error = try_model(model, context, last_error, channel);
            } catch (const std::bad_alloc&) {
              throw;
            } catch (const std::exception& thrown) {
              error = std::format("{}: llama.cpp cannot load it: {}", model.path.string(),
                                  thrown.what());
            }
            channel.send((error.empty() ? kUsable : kUnusable) + error);
          }};
}

// ---------------------------------------------------------------- caller

std::chrono::milliseconds model_check_timeout(const std::filesystem::path& model) {
  constexpr std::uint64_t kBytesPerMs = 10'000;
  std::uint64_t bytes = 0;
  if (const auto index = GgufIndex::open(model)) {
    for (const ModelFile& file : index->files()) bytes += file.size;
  }
  return std::chrono::minutes(2) + std::chrono::milliseconds(bytes / kBytesPerMs);
}

ModelCheck::ModelCheck(Sandbox& sandbox, const ModelOptions& model, const ContextOptions& context,
                       std::chrono::milliseconds timeout, std::stop_token stop)
    : path_(model.path.string()), timeout_(timeout), stop_(std::move(stop)) {
  // Reading from a slow disk takes time, but little CPU time.
  constexpr std::chrono::seconds kCpuTime{15};
  const auto per_byte = timeout - std::chrono::minutes(2);
  const JobLimits limits{.time = timeout,
                         .cpu_time = kCpuTime + std::max(per_byte, std::chrono::milliseconds(0)),
                         .memory_bytes = ram_bytes() / 4 * 3,
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
  job_->set_time_limit(time);
  const auto reply = job_->receive([this] { return !stop_.stop_requested(); });
  if (!reply) {
    error_ = reason(reply.error());
  } else if (reply->starts_with(kUnusable)) {
    error_ = reply->substr(1);
  } else if (!reply->starts_with(expected_reply)) {
    error_ = std::format(
        "{}: llama.cpp crashed while loading or evaluating it ({}). The file is damaged, or newer "
        "than the library. Download or convert it again.",
        path_, reply->empty() ? "" : reply->substr(1));
  }
  if (error_) return std::unexpected(*error_);
  return {};
}

std::string ModelCheck::reason(const JobError& error) const {
  switch (error.kind) {
    case JobError::Kind::Cancelled:
      return "The model check was cancelled.";
    case JobError::Kind::Busy:
    case JobError::Kind::Unavailable:
      return std::format("{}: the model check {}.", path_, error.reason);
    case JobError::Kind::Time:
    case JobError::Kind::Memory:
    case JobError::Kind::Crash:
    case JobError::Kind::ResultSize:
      break;
  }
  return std::format(
      "{}: loading and evaluating it in llama.cpp {}. The file is damaged, or newer than the "
      "library. Download or convert it again.",
      path_, error.reason);
}

}  // namespace tt
