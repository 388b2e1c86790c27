// Comparison of two sessions over HTTP while they are recorded.
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/support/http_client.h"
#include "tests/server/support/test_server.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

// A running session; its recording ends with the object.
class GrowingSession {
 public:
  GrowingSession(const std::filesystem::path& folder, const std::string& id) {
    SessionInfo info = SmallSession::small_info();
    info.id = id;
    writer_ = SessionWriter::create(folder / (id + ".ttrace"), info).value();
    const GraphTemplate graph = small_graph();
    const Allocation allocation{
        .id = AllocationId{1},
        .graph = TemplateId{1},
        .addresses = std::vector<std::uint64_t>(graph.tensors.size(), 4096)};
    EXPECT_TRUE(writer_->add_template(TemplateId{1}, graph).has_value());
    EXPECT_TRUE(writer_->add_allocation(allocation).has_value());
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(writer_->add_step(small_step(i)).has_value());
    EXPECT_TRUE(writer_->commit().has_value());
  }

 private:
  std::unique_ptr<SessionWriter> writer_;
};

TEST(ComparisonRoutes, RunningSessionsDoNotDeadlock) {
  TestServer server({.model = {}});
  const GrowingSession a(server.data, "a"), b(server.data, "b");
  ASSERT_EQ(server.get("/api/v1/sessions/a").body["state"], "running");
  // With itself, and with the other in both directions at the same time.
  std::atomic<int> answered = 0;
  std::vector<std::jthread> clients;
  for (const char* path : {"a/comparison/a", "a/comparison/b", "b/comparison/a"}) {
    clients.emplace_back([&server, &answered, path] {
      for (int i = 0; i < 50; ++i) {
        const TestResponse answer = server.get(std::string("/api/v1/sessions/") + path);
        if (answer.status != 200) return;
        ++answered;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(answered, 150);
  const json own = server.get("/api/v1/sessions/a/comparison/a").body;
  EXPECT_EQ(own["left"], own["right"]);
  EXPECT_EQ(own["tokens"]["left"], own["tokens"]["right"]) << own;
}

}  // namespace
}  // namespace tt::test
