// A model that is loaded, run and recorded as tt-server does it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/models/backends.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tracer/engine/engine.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/modelgen/model_spec.h"
#include "tracer/recorder/recorder.h"
#include "tracer/sandbox/sandbox.h"

namespace tt::test {

// Path of a generated model in a temporary folder. Each spec is written once per test program.
std::filesystem::path generated_model(const modelgen::ModelSpec& spec);
// A model of a named shape with two layers: enough where only the kinds of layers matter.
std::filesystem::path two_layer_model(const std::string& shape);

// Stores what a listener receives.
struct CapturedOutput final : GenerationListener {
  void on_token(const Token& token, std::string_view piece) override;
  void on_progress(std::uint32_t prompt_done, std::uint32_t prompt_tokens,
                   std::uint32_t generated) override;
  void on_text(std::string_view held) override;
  std::vector<Token> tokens;
  std::vector<std::string> pieces;                    // per token
  std::string text, rest;                             // rest: what was held back until the end
  std::function<void(std::uint32_t generated)> then;  // called after each progress
};

class TracedModel {
 public:
  explicit TracedModel(const std::filesystem::path& model,
                       const ContextOptions& context = small_context(), ModelOptions options = {});

  // Runs and records one request; the file is closed when it returns.
  struct Run {
    GenerationResult result;
    RecordingResult recording;
    SessionInfo info;
    std::filesystem::path file;
    CapturedOutput captured;
    SessionReader reader() const;
    std::vector<Step> steps() const;
  };
  Run run(const GenerationRequest& request,
          const std::function<void(std::uint32_t)>& after_progress = {});

  const PageFaults& faults() const { return *faults_; }
  Engine& engine() { return *engine_; }
  static ContextOptions small_context();  // 512 tokens, ubatch 64, one thread

 private:
  TempFolder folder_;
  // Before any worker thread starts.
  std::unique_ptr<PageFaults> faults_ = PageFaults::watch();
  MachineState machine_;
  Sandbox sandbox_{kTestPaths.worker};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Recorder> recorder_;
};

// A prompt of `prompt_tokens` token ids, then greedy sampling; end-of-text is ignored.
GenerationRequest greedy_tokens(std::size_t prompt_tokens, std::uint32_t generate);
// The same for a text prompt.
GenerationRequest text_request(std::string prompt, std::uint32_t generate);

// The graph of a step. Throws if it has none.
std::shared_ptr<const GraphTemplate> graph_of(const SessionReader& reader, const Step& step);

}  // namespace tt::test
