// Request order, queue positions and session files, in success, cancellation and failure.
#include "tracer/engine/generation_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "tests/support/fair_clock.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

using namespace std::chrono_literals;

// Records every event; wait_for() blocks until a condition on them holds.
class Sink final : public SessionListener {
 public:
  void on_state(const JobStatus& status) override {
    note([&] { states[status.id].push_back(status); });
  }
  void on_progress(const JobStatus& status) override {
    note([&] { progress[status.id].push_back(status); });
  }
  void on_token(const std::string& session, const Token& token, std::string_view piece) override {
    note([&] {
      tokens[session].push_back(token);
      text[session] += piece;
    });
  }
  void on_text(const std::string& session, std::string_view rest) override {
    note([&] { text[session] += rest; });
  }
  void on_step(const std::string& session, const Step& step, const KnownGraphPtr& graph) override {
    note([&] {
      steps[session].push_back(step);
      with_graph[session] += graph != nullptr;
    });
  }
  bool wait_for(const std::function<bool()>& enough) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 60s, enough);
  }
  JobState last_state(const std::string& id) {
    const auto found = states.find(id);
    return found == states.end() ? JobState::Queued : found->second.back().state;
  }

  std::mutex mutex;
  std::map<std::string, std::vector<JobStatus>> states, progress;
  std::map<std::string, std::vector<Token>> tokens;
  std::map<std::string, std::string> text;
  std::map<std::string, std::vector<Step>> steps;
  std::map<std::string, int> with_graph;

 private:
  void note(const std::function<void()>& what) {
    {
      const std::lock_guard lock(mutex);
      what();
    }
    changed.notify_all();
  }
  std::condition_variable changed;
};

class Queue : public ::testing::Test {
 protected:
  GenerationQueue& start(std::filesystem::path model = {}, std::size_t max_queued = 64,
                         std::filesystem::path self_check_model = {}) {
    ensure_backends_loaded();
    if (model.empty()) {
      model = generated_model({.shape = "small"});
    }
    queue = std::make_unique<GenerationQueue>(
        GenerationQueue::Options{.model = {.path = model},
                                 .context = TracedModel::small_context(),
                                 .data_dir = folder.path() / "sessions",
                                 .self_check_model = std::move(self_check_model),
                                 .max_queued = max_queued},
        sink);
    EXPECT_TRUE(wait_until([&] { return queue->load_state().phase != LoadState::Phase::Loading; }));
    return *queue;
  }
  JobStatus submit(std::uint32_t prompt, std::uint32_t generate) {
    auto status = queue->submit(greedy_tokens(prompt, generate));
    if (!status) {
      ADD_FAILURE() << status.error().message;
      return {};
    }
    return *status;
  }
  bool finished(const std::string& id) {
    const JobState state = sink.last_state(id);
    return state != JobState::Queued && state != JobState::Running;
  }
  std::filesystem::path file(const std::string& id) {
    return folder.path() / "sessions" / (id + ".ttrace");
  }

  TempFolder folder;
  Sink sink;
  std::unique_ptr<GenerationQueue> queue;
};

TEST(SessionIds, AreUniqueWithinProcess) {
  std::set<std::string> ids;
  for (int i = 0; i < 20'000; ++i) ids.insert(new_session_id());
  EXPECT_EQ(ids.size(), 20'000U);
}

TEST_F(Queue, UsesExactTimingIfSelfCheckFails) {
  const auto& of = start({}, 64, folder.path() / "no-such-model.gguf");
  EXPECT_NE(of.load_state().warning.find("exact timing"), std::string::npos);
  const JobStatus job = submit(5, 4);
  ASSERT_TRUE(sink.wait_for([&] { return finished(job.id); }));
  const auto reader = SessionReader::open(file(job.id));
  ASSERT_TRUE(reader.has_value());
  const auto facts = reader->info()->facts;
  const auto self_check =
      std::ranges::find(facts, "trace.self_check", [](const auto& fact) { return fact.first; });
  ASSERT_NE(self_check, facts.end());
  EXPECT_NE(self_check->second.find("no-such-model"), std::string::npos);
  std::size_t exact = 0;
  ASSERT_TRUE(reader->for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    EXPECT_NE(step.timing, Timing::Fast);
    exact += step.timing == Timing::Exact;
    return true;
  }));
  EXPECT_GE(exact, 1U) << "steps that are not learned";
}

TEST_F(Queue, KeepsOrderAndReportsPositions) {
  start();
  const JobStatus first = submit(20, 200);
  const JobStatus second = submit(5, 4);
  const JobStatus third = submit(5, 4);
  EXPECT_LE(second.position, 1U);
  EXPECT_EQ(third.position, second.position + 1);
  ASSERT_TRUE(sink.wait_for([&] { return finished(third.id); }));
  const std::lock_guard lock(sink.mutex);
  for (const JobStatus& job : {first, second, third}) {
    SCOPED_TRACE(job.id);
    const auto& states = sink.states[job.id];
    // Queued (its position only decreases), running, done.
    ASSERT_GE(states.size(), 3U);
    EXPECT_EQ(states.front().state, JobState::Queued);
    EXPECT_EQ(states[states.size() - 2].state, JobState::Running);
    EXPECT_EQ(states.back().state, JobState::Done);
    EXPECT_EQ(states.back().stop_reason, StopReason::Length);
    for (std::size_t i = 1; i < states.size(); ++i) {
      EXPECT_LE(states[i].position, states[i - 1].position);
    }
    EXPECT_EQ(states.back().generated, job.max_tokens);
    EXPECT_EQ(states.back().text, sink.text[job.id]);
    EXPECT_TRUE(check_session(file(job.id)).value().empty());
    EXPECT_EQ(sink.steps[job.id].size(), job.max_tokens);
    // A slow disk may cost a step's times; the step is then marked as dropped.
    const auto dropped = std::ranges::count_if(sink.steps[job.id], &Step::dropped);
    EXPECT_EQ(sink.with_graph[job.id] + dropped, std::ptrdiff_t{job.max_tokens});
    EXPECT_EQ(sink.progress[job.id].back().generated, job.max_tokens);
    for (const JobStatus& progress : sink.progress[job.id]) EXPECT_EQ(progress.text, "");
    const auto info = SessionReader::open(file(job.id))->info();
    EXPECT_EQ(info->state, SessionState::Done);
    EXPECT_EQ(info->id, job.id);
  }
  // The third waited for both, which the first step says.
  std::uint64_t evaluated = 0;
  for (const Step& step : sink.steps[first.id]) evaluated += *step.conditions.evaluate_ns;
  const std::vector<Step>& waited = sink.steps[third.id];
  EXPECT_GE(*waited[0].conditions.queue_ns, evaluated / 2) << "it was submitted a little later";
  EXPECT_EQ(*waited[1].conditions.queue_ns, 0U);
  EXPECT_EQ(SessionReader::open(file(third.id))->info()->fact("result.queue_ns"),
            std::to_string(*waited[0].conditions.queue_ns));
  EXPECT_EQ(queue->status(third.id)->state, JobState::Done);
  EXPECT_FALSE(queue->status("nobody").has_value());
}

TEST_F(Queue, CancelsQueuedAndRunningRequests) {
  start();
  const JobStatus first = submit(20, 450);
  const JobStatus second = submit(5, 4);
  const JobStatus third = submit(5, 4);
  EXPECT_TRUE(queue->cancel(second.id));
  EXPECT_EQ(queue->status(second.id)->state, JobState::Cancelled);
  ASSERT_TRUE(sink.wait_for([&] { return !sink.progress[first.id].empty(); }));
  EXPECT_EQ(queue->status(third.id)->position, 1U) << "moved up at once";
  EXPECT_TRUE(queue->cancel(first.id));
  ASSERT_TRUE(sink.wait_for([&] { return finished(third.id); }));
  EXPECT_EQ(queue->status(first.id)->state, JobState::Cancelled);
  EXPECT_LT(queue->status(first.id)->generated, 450U);
  EXPECT_EQ(queue->status(third.id)->state, JobState::Done);
  EXPECT_TRUE(check_session(file(first.id)).value().empty());
  EXPECT_EQ(SessionReader::open(file(first.id))->info()->state, SessionState::Cancelled);
  EXPECT_FALSE(std::filesystem::exists(file(second.id))) << "it never ran";
  EXPECT_TRUE(queue->cancel(first.id)) << "cancelling a finished request succeeds";
  EXPECT_FALSE(queue->cancel("nobody"));
  const std::lock_guard lock(sink.mutex);
  EXPECT_EQ(sink.states[second.id].back().state, JobState::Cancelled);
  // The request queued after it gets its new position.
  bool notified = false;
  for (const JobStatus& status : sink.states[third.id]) {
    notified = notified || (status.state == JobState::Queued && status.position == 1);
  }
  EXPECT_TRUE(notified);
}

TEST_F(Queue, StopFinishesFileAndNotifiesQueuedRequests) {
  start();
  const JobStatus first = submit(20, 450);
  const JobStatus second = submit(5, 4);
  ASSERT_TRUE(sink.wait_for([&] {
    return !sink.progress[first.id].empty() && sink.progress[first.id].back().generated > 5;
  }));
  queue->stop();
  EXPECT_EQ(queue->status(first.id)->state, JobState::Cancelled);
  EXPECT_EQ(queue->status(second.id)->state, JobState::Cancelled);
  {
    const std::lock_guard lock(sink.mutex);
    EXPECT_EQ(sink.last_state(first.id), JobState::Cancelled);
    EXPECT_EQ(sink.last_state(second.id), JobState::Cancelled);
  }
  EXPECT_TRUE(check_session(file(first.id)).value().empty());
  EXPECT_EQ(SessionReader::open(file(first.id))->info()->state, SessionState::Cancelled);
  EXPECT_GT(*SessionReader::open(file(first.id))->step_count(), 5U);
  const auto late = queue->submit(greedy_tokens(5, 4));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().kind, SubmitError::Kind::Stopping);
  queue->stop();  // a second call does nothing
}

TEST_F(Queue, RejectsInvalidAndExcessRequests) {
  start({}, 2);
  const JobStatus running = submit(20, 450);
  ASSERT_TRUE(sink.wait_for([&] { return !sink.progress[running.id].empty(); }));
  submit(5, 4);
  submit(5, 4);
  const auto full = queue->submit(greedy_tokens(5, 4));
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().kind, SubmitError::Kind::Full);
  EXPECT_TRUE(full.error().message.contains("2 requests are waiting")) << full.error().message;
  const auto too_long = queue->submit(greedy_tokens(513, 4));
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().kind, SubmitError::Kind::TooLong);
  GenerationRequest empty = greedy_tokens(1, 4);
  empty.prompt = "";
  EXPECT_EQ(queue->submit(empty).error().kind, SubmitError::Kind::BadRequest);
  queue->cancel(running.id);
}

TEST_F(Queue, LevelOffCreatesNoFile) {
  start();
  GenerationRequest request = greedy_tokens(5, 4);
  request.level = Level::Off;
  const auto status = queue->submit(request);
  ASSERT_TRUE(status.has_value());
  ASSERT_TRUE(sink.wait_for([&] { return finished(status->id); }));
  EXPECT_EQ(queue->status(status->id)->state, JobState::Done);
  EXPECT_FALSE(std::filesystem::exists(file(status->id)));
}

TEST_F(Queue, ReportsModelLoadError) {
  const auto path = folder.path() / "text.gguf";
  std::ofstream(path) << "Once upon a time";
  start(path);
  EXPECT_EQ(queue->load_state().phase, LoadState::Phase::Failed);
  EXPECT_TRUE(queue->load_state().error.contains("not a GGUF file")) << queue->load_state().error;
  EXPECT_FALSE(queue->facts().has_value());
  const auto rejected = queue->submit(greedy_tokens(5, 4));
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().kind, SubmitError::Kind::LoadFailed);
  EXPECT_TRUE(rejected.error().message.contains("not a GGUF file"));
  queue->stop();
}

TEST_F(Queue, StopsDuringModelLoad) {
  ensure_backends_loaded();
  const auto model = generated_model({.shape = "small"});
  const auto begin = FairClock::now();
  for (int i = 0; i < 3; ++i) {
    GenerationQueue loading({.model = {.path = model},
                             .context = TracedModel::small_context(),
                             .data_dir = folder.path(),
                             .max_queued = 1},
                            sink);
    loading.stop();
  }
  EXPECT_LT(FairClock::now() - begin, 30s);
}

// For the live view: the finished ops of the step in flight, more at each call.
TEST_F(Queue, ReportsStepInFlight) {
  start();
  GenerationRequest request = greedy_tokens(64, 440);
  const auto status = queue->submit(request);
  ASSERT_TRUE(status.has_value());
  std::map<std::uint32_t, std::size_t> most;  // ops seen, by step
  int looks = 0;
  int grew = 0;
  const auto running = [&] {
    const std::lock_guard lock(sink.mutex);
    return !finished(status->id);
  };
  while (running()) {
    const auto flight = queue->in_flight(status->id, 0);
    if (flight) {
      ++looks;
      EXPECT_TRUE(std::ranges::is_sorted(flight->ends));
      EXPECT_TRUE(flight->ends.empty() || flight->first_op <= flight->ends.front());
      auto& seen = most[flight->step.v];
      EXPECT_GE(flight->ends.size(), seen) << "the number of ops never decreases";
      grew += flight->ends.size() > seen && seen > 0;
      seen = flight->ends.size();
      // Continues where the last call ended.
      const auto rest = queue->in_flight(status->id, static_cast<std::uint32_t>(seen));
      if (rest && rest->step == flight->step && !rest->ends.empty() && seen > 0) {
        EXPECT_EQ(rest->first, seen);
        EXPECT_GE(rest->ends.front(), flight->ends.back());
      }
    }
  }
  EXPECT_FALSE(queue->in_flight(status->id, 0).has_value());
  EXPECT_FALSE(queue->in_flight("nobody", 0).has_value());
  EXPECT_GT(looks, 10);
  EXPECT_GT(most.size(), 5U);
  EXPECT_GT(grew, 0);
  const std::lock_guard lock(sink.mutex);
  for (const auto& [step, ops] : most) {
    ASSERT_LT(step, sink.steps[status->id].size());
    const Step& recorded = sink.steps[status->id][step];
    EXPECT_TRUE(recorded.dropped || ops <= recorded.op_ends.size());
  }
  std::printf("%d looks into %zu of 440 steps\n", looks, most.size());
}

}  // namespace
}  // namespace tt::test
