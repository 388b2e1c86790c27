#include "tracer/engine/self_check.h"

#include <array>
#include <chrono>
#include <format>
#include <vector>

#include "tracer/engine/backends.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/probe/probe.h"
#include "tracer/recorder/recorder.h"
#include "tracer/recorder/step_pool.h"

namespace tt {

namespace {

// What was recorded of a step.
struct RecordedStep {
  KnownGraphPtr graph;
  Step step;
  bool mismatch = false;
  bool known = false;  // its graph was that of an earlier step
};

std::expected<std::vector<RecordedStep>, std::string> run(const llama_model* model, Probe& probe,
                                                          bool exact) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 64;
  params.n_batch = params.n_ubatch = 32;
  params.n_threads = params.n_threads_batch = 1;
  probe.attach(params);
  const LlamaContext context(llama_init_from_model(const_cast<llama_model*>(model), params));
  if (!context) return std::unexpected("cannot create a context for the bundled model");

  StepPool pool(1, 4096, 1U << 16);
  std::vector<RecordedStep> steps;
  // The first prompt is learned, and the first decode has its structure; the others are known.
  constexpr std::array<int, 6> kTokens = {5, 1, 5, 1, 1, 1};
  for (const int count : kTokens) {
    std::vector<llama_token> tokens(static_cast<std::size_t>(count), 5);
    StepBuffer* buffer = pool.try_acquire();
    const std::size_t graphs = probe.known_graphs();
    probe.begin_step(buffer, {.exact = exact,
                              .stats_filter = nullptr,
                              .capture = nullptr,
                              .epoch = std::chrono::steady_clock::now()});
    const int status = llama_decode(context.get(), llama_batch_get_one(tokens.data(), count));
    probe.end_step(status != 0);
    RecordedStep recorded{.graph = buffer->graph,
                          .step = step_from(*buffer),
                          .mismatch = buffer->count_mismatch,
                          .known = probe.known_graphs() == graphs};
    buffer->graph.reset();
    pool.release(buffer);
    if (status != 0 || recorded.graph == nullptr)
      return std::unexpected("a decode was not recorded");
    steps.push_back(std::move(recorded));
  }
  return steps;
}

}  // namespace

std::expected<SelfCheck, std::string> self_check(const std::filesystem::path& model_path) {
  SelfCheck result;
  const LibraryVersions versions = library_versions();
  if (!versions.tested) {
    result.warning = std::format(
        "llama {} with ggml {} is not a version that tensor-trace was tested with ({}).",
        versions.llama, versions.ggml, versions.tested_with);
  }
  const auto index = GgufIndex::open(model_path);
  if (!index) return std::unexpected(index.error());
  llama_model_params params = llama_model_default_params();
  std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
  params.devices = no_devices.data();
  const LlamaModel model(llama_model_load_from_file(model_path.c_str(), params));
  if (!model) return std::unexpected("the bundled model cannot be loaded");
  const ModelLayout layout{*index, MappedFiles::of_this_process(index->files())};

  Probe fast_probe(layout);
  Probe exact_probe(layout);
  const auto fast = run(model.get(), fast_probe, false);
  if (!fast) return std::unexpected(fast.error());
  const auto exact = run(model.get(), exact_probe, true);
  if (!exact) return std::unexpected(exact.error());

  bool any_known = false;
  for (std::size_t i = 0; i < fast->size(); ++i) {
    const RecordedStep& a = (*fast)[i];
    const RecordedStep& b = (*exact)[i];
    any_known = any_known || a.known;
    if (a.mismatch || b.mismatch || a.step.op_ends.size() != b.step.op_ends.size() ||
        a.graph->graph != b.graph->graph || a.step.slots != b.step.slots) {
      return std::unexpected(
          std::format("llama {} does not call back as tensor-trace expects: step {} has {} ops "
                      "with fast timing and {} with exact timing",
                      versions.llama, i, a.step.op_ends.size(), b.step.op_ends.size()));
    }
    result.ops = a.step.op_ends.size();
  }
  if (!any_known) {
    return std::unexpected(
        std::format("llama {} rebuilds graphs that it could reuse", versions.llama));
  }
  return result;
}

}  // namespace tt
