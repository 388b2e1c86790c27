// Loads and evaluates a model in a child process first, because a damaged file can make the
// library crash, loop or allocate without limit.
#pragma once

#include <chrono>
#include <expected>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "tracer/request/model_options.h"
#include "tracer/sandbox/sandbox.h"
#include "tracer/sandbox/worker.h"

namespace tt {

// The handlers "check_model" and "check_metadata" of tt-worker.
JobKind model_check_job();
JobKind metadata_check_job();

// Why llama.cpp refuses the model, as Engine::load() says it; empty: it does not, or this could not
// be tried. Only the metadata is loaded (load_metadata.h), in a child process of the lowest
// priority. Any thread.
std::string metadata_error(Sandbox& sandbox, const std::filesystem::path& model,
                           const KeepGoing& keep_going = {});

// Timeout of a model check: a fixed time plus the time to read all files of the model from a
// slow disk.
std::chrono::milliseconds model_check_timeout(const std::filesystem::path& model);

// A child process that tries a model: it loads it, creates the context, converts texts to tokens
// and evaluates a short prompt and two more tokens, with the options that will be used, except:
// - The weights are mapped and on the CPU. With `repack`, only samples are repacked
//   (repack_samples.h).
// - Chat templates are rendered elsewhere (Engine::load()).
// The child may allocate three quarters of the RAM, but no more than a memory limit of this process
// (RLIMIT_DATA, RLIMIT_AS) leaves, less 64 MiB for everything else that this process does. It is
// killed when it exceeds a limit or when `stop` is requested. Errors say why the model cannot be
// used and what to do; then the messages of llama.cpp in the child go to the log of this process
// (log_library_line()). One thread.
class ModelCheck {
 public:
  // Starts the child. `sandbox` must outlive this object.
  ModelCheck(Sandbox& sandbox, const ModelOptions& model, const ContextOptions& context,
             std::chrono::milliseconds timeout, std::stop_token stop = {});

  // Wait for the first part (loading, context, tokens), then for the second (evaluation), so that
  // the caller can load the weights meanwhile. Each has the whole timeout; the conversion of texts
  // to tokens at most 5 s and 256 MiB of it.
  std::expected<void, std::string> loaded();
  std::expected<void, std::string> evaluated();
  // Whether the error is about the file. Otherwise the check was cancelled, could not be run now,
  // lacked memory or took too long: another try may succeed.
  bool is_refused() const { return is_refused_; }

 private:
  std::expected<void, std::string> wait_for(char expected_reply, std::chrono::milliseconds time);
  std::expected<std::string, JobError> receive(std::chrono::milliseconds time);
  std::string reason(const JobError& error);
  std::string first_error() const;  // of llama.cpp in the child; empty: none
  const char* crash_advice() const;

  const std::string path_;
  const std::chrono::milliseconds timeout_;
  const std::stop_token stop_;
  const bool is_limited_;  // this process has a memory limit
  std::optional<SandboxJob> job_;
  std::optional<std::string> error_;
  bool is_refused_ = false;
  std::vector<std::string> log_;  // the kind (LibraryLine), then the text
};

}  // namespace tt
