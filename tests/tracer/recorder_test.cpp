// The recorder under a disk that is full: generation goes on, what was committed
// stays, and everybody is told.
#include "tracer/recorder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tests/format/small_disk.h"
#include "tests/tracer/traced_model.h"

namespace tt::testing {
namespace {

TEST(Recorder, AFullDiskEndsTheRecordingNotTheGeneration) {
  need_backends();
  const TempFolder folder;
  ASSERT_TRUE(mount_small_disk(folder.path())) << std::strerror(errno);
  modelgen::ModelSpec spec;
  ModelOptions options;
  options.path = generated_model(spec);
  ContextOptions context = TracedModel::small_context();
  context.threads = 1;
  auto engine = Engine::load(options, context, {});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;

  std::size_t seen = 0;
  const RecorderSize size = (*engine)->recorder_size();
  Recorder recorder(size.max_ops, size.slot_bytes,
                    [&](const std::string&, const Step&, const KnownGraphPtr&) { ++seen; });
  const GenerationRequest request = greedy_tokens(8, 500);
  SessionInfo info = (*engine)->describe(request);
  const auto file = folder.path() / "s.ttrace";
  recorder.begin(info, file);
  Heard heard;
  const GenerationResult result = (*engine)->generate(request, &recorder, heard);
  (*engine)->complete(info, result);
  const RecordingResult recording = recorder.finish(info);

  EXPECT_EQ(result.reason, StopReason::Length) << result.error;
  EXPECT_EQ(result.generated, 500U);
  EXPECT_EQ(seen, 500U) << "live listeners are told of every step, written or not";
  EXPECT_NE(recording.error.find("full"), std::string::npos) << recording.error;
  EXPECT_GT(recording.losses.steps_not_written, 0U);

  const auto reader = SessionReader::open(file);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  const auto steps = reader->step_count();
  ASSERT_TRUE(steps.has_value());
  EXPECT_EQ(*steps + recording.losses.steps_not_written, 500U) << "nothing committed is lost";
  const auto ended = reader->info();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->state, SessionState::Failed);
  EXPECT_NE(ended->error.find("full"), std::string::npos) << ended->error;
  std::printf("%u of 500 steps fit 1 MiB; \"%s\"\n", *steps, recording.error.c_str());

  // The same recorder goes on with the next session.
  const TempFolder roomy;
  recorder.begin(info, roomy.path() / "next.ttrace");
  const GenerationResult next = (*engine)->generate(greedy_tokens(8, 4), &recorder, heard);
  EXPECT_EQ(next.reason, StopReason::Length);
  EXPECT_TRUE(recorder.finish(info).error.empty());
}

}  // namespace
}  // namespace tt::testing
