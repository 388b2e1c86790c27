// 10,000 mutated requests of every route: each connection gets a response or is closed, every
// response conforms to the contract, and the server still works afterwards.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <print>
#include <thread>

#include "api/openapi/openapi.h"
#include "tests/server/http/contract_table.h"
#include "tests/server/http/mutator.h"
#include "tests/server/support/test_server.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

constexpr std::size_t kRequests = 10'000;
constexpr std::size_t kClients = 4;

// TT_SEED repeats a run with its printed seed.
std::uint64_t test_seed() {
  const char* given = std::getenv("TT_SEED");
  return given == nullptr ? 20261121 : std::strtoull(given, nullptr, 10);
}

class HttpMutation : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.wait_until_loaded());
    model_ = server_.model_manager.current()->id;
    for (std::string& session : sessions_) {
      session = server_.generate({{"prompt", "a"}, {"max_tokens", 1}});
      ASSERT_EQ(server_.wait_for_end(session)["state"], "done");
    }
    std::ifstream file(server_.folder.path() / (sessions_[0] + ".ttrace"), std::ios::binary);
    file_.assign(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(file_.empty());
  }

  // A valid or nearly valid request of the operation.
  RequestParts request_of(const ContractTable::Operation& operation, Mutator& mutator) const {
    RequestParts parts{
        .method = operation.method, .target = operation.path, .headers = {}, .body = {}};
    std::string query;
    for (const auto& parameter : operation.parameters) {
      const std::string value = value_of(operation, parameter, mutator);
      if (parameter.in_path) {
        const std::string name = "{" + parameter.name + "}";
        parts.target.replace(parts.target.find(name), name.size(), value);
      } else if (mutator.once_in(2)) {
        query += (query.empty() ? "?" : "&") + parameter.name + "=" + value;
      }
    }
    parts.target += query;
    if (operation.method == "GET" && mutator.once_in(8)) parts.method = "HEAD";
    parts.headers = {{"Host", "127.0.0.1"}};
    if (mutator.once_in(4)) parts.headers.emplace_back("Accept-Encoding", "gzip");
    if (operation.body_type.empty()) return parts;
    parts.body = operation.body_type == "application/json" ? body_of(operation).dump() : file_;
    parts.headers.emplace_back("Content-Type", operation.body_type);
    parts.headers.emplace_back("Content-Length", std::to_string(parts.body.size()));
    return parts;
  }

  const ContractTable contract_{openapi_json()};
  TestServer server_{options()};
  std::array<std::string, 3> sessions_;
  std::string file_;   // a session file
  std::string model_;  // the model's id

 private:
  static TestServerOptions options() {
    ensure_backends_loaded();
    TestServerOptions options;
    // A small context ends requests with a large max_tokens early.
    options.context = {.context = 64, .batch = 64, .ubatch = 64, .threads = 1};
    // A short timeout for requests that announce more bytes than they send.
    options.frontend.body_timeout = 500ms;
    return options;
  }

  static json body_of(const ContractTable::Operation& operation) {
    json body = operation.body_example;
    if (body.contains("max_tokens")) body["max_tokens"] = 1;
    return body;
  }

  std::string value_of(const ContractTable::Operation& operation,
                       const ContractTable::Parameter& parameter, Mutator& mutator) const {
    if (parameter.name == "id") {
      // Deletes rarely: other requests need the sessions.
      const bool keep = operation.method == "DELETE" && !mutator.once_in(20);
      return keep ? "20261121-000000-abcdef" : sessions_[mutator.below(sessions_.size())];
    }
    if (parameter.name == "model" && parameter.in_path) {
      // Rarely (un)loads the model: other requests need it, and loading takes time.
      const bool keep = operation.method == "POST" && !mutator.once_in(40);
      return keep ? "no-such-model" : model_;
    }
    const json& schema = parameter.schema;
    if (schema.contains("enum")) {
      const auto& word = schema["enum"][mutator.below(schema["enum"].size())];
      return word.is_string() ? word.get<std::string>() : word.dump();
    }
    if (schema.value("type", "") == "boolean") return mutator.once_in(2) ? "true" : "false";
    if (schema.value("type", "") == "string") return "a";
    return std::to_string(schema.value("minimum", 0) + static_cast<int>(mutator.below(3)));
  }
};

// The method and the target of the first request in `bytes`; empty when malformed.
std::pair<std::string, std::string> first_line(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || last <= first) return {};
  return {std::string(line.substr(0, first)),
          std::string(line.substr(first + 1, last - first - 1))};
}

struct MutationResults {
  std::mutex mutex;
  struct Kind {
    std::size_t count = 0;
    std::string example;
  };
  std::map<std::string, Kind> violations;
  std::map<int, std::size_t> statuses;

  void add(int status, const std::string& violation, std::string_view request) {
    const std::scoped_lock lock(mutex);
    ++statuses[status];
    if (violation.empty()) return;
    Kind& kind = violations[violation];
    ++kind.count;
    if (!kind.example.empty() && kind.example.size() <= request.size()) return;
    kind.example = request;
  }
};

TEST_F(HttpMutation, EveryResponseConformsToTheContract) {
  const std::uint64_t seed = test_seed();
  std::println("TT_SEED={}", seed);
  const auto began = std::chrono::steady_clock::now();
  MutationResults findings;
  std::atomic<std::size_t> made = 0;

  const auto send_one = [&](Mutator& mutator) {
    const auto& operations = contract_.operations();
    const auto& operation = operations[mutator.below(operations.size())];
    const std::string other =
        request_of(operations[mutator.below(operations.size())], mutator).text();
    const std::string request = mutator.request(request_of(operation, mutator), other);
    const auto [method, target] = first_line(request);

    RawClient client(server_.port);
    // Sometimes as the second request of a connection, sent together with the first.
    const bool second = mutator.once_in(4);
    client.send((second ? get_request("/api/v1/health") : "") + request);
    client.shutdown_write();
    if (second && client.read_response().status != 200) {
      findings.add(0, "no response to a valid request before the mutated one", request);
    }
    const RawResponse answer = client.read_response(method);
    const bool whole_head = request.contains("\r\n\r\n");
    std::string violation;
    if (answer.status != 0) {
      violation = contract_.violation(contract_.find_operation(method, target), method, answer);
    } else if (whole_head) {
      violation = "no response to a complete head";
    }
    // The remaining bytes may parse as another request; its connection closes, too.
    if (!client.closed_within(20s)) violation += " (and the connection is not closed)";
    findings.add(answer.status, violation, request);
  };

  std::vector<std::jthread> clients;
  for (std::size_t number = 0; number < kClients; ++number) {
    clients.emplace_back([&, number] {
      Mutator mutator(seed + number);
      while (made++ < kRequests) {
        send_one(mutator);
        if (!mutator.once_in(100)) continue;
        for (const std::string& session : sessions_) {
          server_.post("/api/v1/sessions/" + session + "/restore", "");
        }
      }
    });
  }
  clients.clear();

  for (const auto& [status, count] : findings.statuses) std::println("{:5} x {}", count, status);
  std::println("{} requests in {:.1f} s", kRequests,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  for (const auto& [wrong, kind] : findings.violations) {
    ADD_FAILURE()
        << kind.count << " x " << wrong << ", for example: "
        << json(kind.example.substr(0, 400)).dump(-1, ' ', true, json::error_handler_t::replace);
  }

  EXPECT_EQ(server_.get("/api/v1/health").status, 200);
  // A request may have unloaded the model.
  EXPECT_EQ(server_.post("/api/v1/models/" + model_ + "/load", "").status, 202);
  EXPECT_TRUE(wait_until(
      [&] { return server_.get("/api/v1/models/" + model_).body["state"] == "loaded"; }));
  const std::string id = server_.generate({{"prompt", "Once"}, {"max_tokens", 3}});
  EXPECT_EQ(server_.wait_for_end(id)["state"], "done");
}

}  // namespace
}  // namespace tt::test
