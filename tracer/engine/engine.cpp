#include "tracer/engine/engine.h"

#include <utility>

#include "tracer/engine/engine_state.h"
#include "tracer/engine/generation_run.h"
#include "tracer/engine/memory_map.h"

namespace tt {

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

GenerationResult Engine::generate(const GenerationRequest& request, Recorder* recorder,
                                  GenerationListener& listener, Debugger* debugger) {
  auto tokens = tokens_of(request.prompt);
  if (!tokens) {
    GenerationResult result;
    result.reason = StopReason::Error;
    result.error = tokens.error().message;
    return result;
  }
  return GenerationRun(*impl_, request, recorder, listener, debugger).run(*std::move(tokens));
}

void Engine::cancel() { impl_->probe->request_cancel(); }
void Engine::reset_cancel() { impl_->probe->reset_cancel(); }

const ModelFacts& Engine::facts() const { return impl_->facts; }
const GgufIndex& Engine::gguf() const { return impl_->index; }
const Probe& Engine::probe() const { return *impl_->probe; }
std::string Engine::piece(std::int32_t token) const { return impl_->piece(token); }
RecorderSize Engine::recorder_size() const { return impl_->recorder_size(); }
void Engine::set_memory(const MemoryOptions& options) { impl_->memory->set(options); }
void Engine::use_pattern(StoredPattern pattern) { impl_->memory->use_pattern(std::move(pattern)); }
MemoryState Engine::memory_state() const { return impl_->memory->state(); }
MemoryMap Engine::memory_map() const { return memory_map_of(impl_->index, *impl_->memory); }

RecordingOptions Engine::recording_options(const GenerationRequest& request) const {
  RecordingOptions options;
  options.minor_faults = request.minor_faults;
  if (request.residency_interval_ms) {
    options.residency.emplace(impl_->index);
    options.residency_interval = std::chrono::milliseconds(*request.residency_interval_ms);
  }
  return options;
}

StepBuffer* Engine::Impl::unrecorded_buffer() {
  if (unrecorded == nullptr) {
    const RecorderSize size = recorder_size();
    unrecorded = std::make_unique<StepPool>(1, size.max_ops, size.slot_bytes);
  }
  return unrecorded->try_acquire();
}

}  // namespace tt
