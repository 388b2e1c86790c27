#include "tests/support/models/traced_model.h"

#include <cstdio>
#include <map>
#include <string>

#include "tests/support/models/kept_model.h"
#include "tracer/engine/backends.h"

namespace tt::test {

std::filesystem::path generated_model(const modelgen::ModelSpec& spec) {
  static TempFolder folder;
  static std::map<std::string, std::filesystem::path> written;
  const std::string key = kept_name(spec);
  if (const auto known = written.find(key); known != written.end()) return known->second;
  const auto files = write_kept_model(spec, folder.path() / (key + ".gguf"));
  if (!files) {
    ADD_FAILURE() << files.error().message;
    return {};
  }
  return written.emplace(key, files->front()).first->second;
}

std::filesystem::path two_layer_model(const std::string& shape) {
  return generated_model({.shape = shape, .dims = {.layers = 2}});
}

void CapturedOutput::on_token(const Token& token, std::string_view piece) {
  tokens.push_back(token);
  pieces.emplace_back(piece);
  text += piece;
}

void CapturedOutput::on_progress(std::uint32_t, std::uint32_t, std::uint32_t generated) {
  if (then) then(generated);
}

void CapturedOutput::on_text(std::string_view held) {
  text += held;
  rest += held;
}

ContextOptions TracedModel::small_context() {
  ContextOptions context;
  context.context = 512;
  context.batch = context.ubatch = 64;
  context.threads = 1;
  return context;
}

TracedModel::TracedModel(const std::filesystem::path& model, const ContextOptions& context,
                         ModelOptions options) {
  ensure_backends_loaded();
  options.path = model;
  auto loaded = Engine::load(options, context, {}, &sandbox_);
  if (!loaded) throw std::runtime_error(loaded.error().message);
  engine_ = *std::move(loaded);
  const RecorderSize size = engine_->recorder_size();
  recorder_ = std::make_unique<Recorder>(
      size.max_ops, size.slot_bytes, [](const std::string&, const Step&, const KnownGraphPtr&) {},
      faults_.get(), &machine_);
}

TracedModel::Run TracedModel::run(const GenerationRequest& request,
                                  const std::function<void(std::uint32_t)>& after_progress) {
  Run run;
  run.captured.then = after_progress;
  run.info = engine_->describe(request);
  const bool recorded = request.level != Level::Off;
  if (recorded) {
    run.file = folder_.path() / (run.info.id + ".ttrace");
    recorder_->begin(run.info, run.file, engine_->recording_options(request));
  }
  engine_->reset_cancel();
  run.result = engine_->generate(request, recorded ? recorder_.get() : nullptr, run.captured);
  if (recorded) {
    engine_->complete(run.info, run.result);
    run.info.facts.emplace_back("trace.conditions", machine_.source());
    run.recording = recorder_->finish(run.info);
  }
  return run;
}

SessionReader TracedModel::Run::reader() const {
  auto opened = SessionReader::open(file);
  if (!opened) throw std::runtime_error(opened.error().message);
  return *std::move(opened);
}

std::vector<Step> TracedModel::Run::steps() const {
  std::vector<Step> steps;
  const SessionReader opened = reader();
  const auto read = opened.for_each_step(StepId{0}, 1'000'000, [&](const Step& step) {
    steps.push_back(step);
    return true;
  });
  if (!read) throw std::runtime_error(read.error().message);
  return steps;
}

GenerationRequest greedy_tokens(std::size_t prompt_tokens, std::uint32_t generate) {
  GenerationRequest request;
  std::vector<std::int32_t> ids;
  ids.reserve(prompt_tokens);
  for (std::size_t i = 0; i < prompt_tokens; ++i) {
    ids.push_back(static_cast<std::int32_t>(1 + i * 7 % 60));
  }
  request.prompt = std::move(ids);
  request.max_tokens = generate;
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  request.reuse_prefix = false;
  return request;
}

GenerationRequest text_request(std::string prompt, std::uint32_t generate) {
  GenerationRequest request = greedy_tokens(1, generate);
  request.prompt = std::move(prompt);
  return request;
}

std::shared_ptr<const GraphTemplate> graph_of(const SessionReader& reader, const Step& step) {
  auto graph = reader.graph(step.graph);
  if (!graph) throw std::runtime_error(graph.error().message);
  return *graph;
}

}  // namespace tt::test
