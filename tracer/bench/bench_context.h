// A context of a loaded model that evaluates tokens for measurements: without any callback, as
// llama-bench does, or with everything that a recording of level detailed does.
//
// One thread per context. A measurement that ends with finish() has paid for the recorder's thread
// as well: it writes while the inference thread computes, and what it has not written yet is
// waited for.
#pragma once

#include <llama.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tracer/engine/engine.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/probe/probe.h"
#include "tracer/probe/value_capture.h"
#include "tracer/recorder/machine_state.h"
#include "tracer/recorder/page_faults.h"
#include "tracer/recorder/recorder.h"

namespace tt {

// What is read of the threads that evaluate. Create it once, on the thread that measures, before
// llama.cpp starts threads; they stay for all models that are loaded later.
struct BenchWatch {
  std::unique_ptr<PageFaults> faults = PageFaults::watch();
  MachineState machine;
};

// Changes the parameters of a context before it is created. Tests plant a slow op with it.
using ContextHook = std::function<void(llama_context_params&)>;

class BenchContext {
 public:
  // `params` may have callbacks of the caller. Null context: llama.cpp could not create it.
  BenchContext(llama_model* model, const llama_context_params& params);
  virtual ~BenchContext() = default;
  BenchContext(const BenchContext&) = delete;
  BenchContext& operator=(const BenchContext&) = delete;

  bool usable() const { return context_ != nullptr; }
  // Evaluates the tokens after those before, in steps of at most n_ubatch tokens. False: failed.
  bool evaluate(std::span<const llama_token> tokens);
  void clear();             // the next token is the first one
  virtual void finish() {}  // waits until everything so far has been written

 protected:
  virtual bool step(std::span<llama_token> tokens);
  bool decode(std::span<llama_token> tokens);

  LlamaContext context_;
  std::uint32_t position_ = 0;  // of the next token
  bool generating_ = false;     // the step has one token, after others
};

class RecordedBenchContext final : public BenchContext {
 public:
  // `probe` and `watch` must outlive the context. `info`: of the recording. `hook` is called after
  // the probe has set its callbacks. `capture`: which op outputs are recorded, too; null: none.
  RecordedBenchContext(llama_model* model, llama_context_params params, Probe& probe,
                       BenchWatch& watch, const RecorderSize& size, SessionInfo info,
                       const std::filesystem::path& file, const ContextHook& hook = {},
                       std::shared_ptr<ValueCapture> capture = {});
  void finish() override;
  StepId next_step() const { return recorder_.next_step(); }
  RecordingResult end();  // completes the file; call once, at the end

 private:
  bool step(std::span<llama_token> tokens) override;

  Probe& probe_;
  BenchWatch& watch_;
  Recorder recorder_;
  SessionInfo info_;
  std::uint32_t token_count_ = 0;
  std::shared_ptr<ValueCapture> capture_;
  std::uint64_t values_left_ = 0;  // of its budget, when the file had all values
};

}  // namespace tt
