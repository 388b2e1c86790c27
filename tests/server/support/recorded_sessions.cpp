#include "tests/server/support/recorded_sessions.h"
#include "tests/support/wait.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace tt::test {

json short_request(const std::string& prompt) {
  return {
      {"prompt", prompt}, {"max_tokens", 4}, {"temperature", 0}, {"ignore_eos", true}, {"seed", 1}};
}

std::string record(TestServer& server, const std::string& prompt) {
  const std::string id = server.generate(short_request(prompt));
  EXPECT_EQ(server.wait_for_end(id)["state"], "done");
  return id;
}

std::string start_long_request(TestServer& server) {
  // It stops at a late step, and does not end while a test looks at it.
  json request = kLongRequest;
  request["breakpoints"] = {"^l_out layer 0 step 800"};
  const std::string id = server.generate(request);
  EXPECT_TRUE(
      wait_until([&] { return server.get("/api/v1/sessions/" + id).body.value("steps", 0) > 3; }));
  return id;
}

void cancel_and_wait(TestServer& server, const std::string& id) {
  server.del("/api/v1/generate/" + id);
  server.wait_for_end(id);
}

std::map<std::string, json> all_responses(TestServer& server, const std::string& id) {
  std::map<std::string, json> answers;
  const auto ask = [&](const std::string& path) {
    const TestResponse answer = server.get("/api/v1/sessions/" + id + path);
    EXPECT_EQ(answer.status, 200) << path;
    answers[path] = answer.body;
  };
  for (const char* path : {"", "/tokens", "/steps"}) ask(path);
  for (const json& step : answers["/steps"]["steps"]) {
    const std::string of_step = "/steps/" + std::to_string(step["step"].get<int>());
    ask(of_step + "/ops");
    ask(of_step + "/accesses?limit=10000");
  }
  return answers;
}

std::vector<std::string> session_ids(TestServer& server, const std::string& query) {
  std::vector<std::string> ids;
  for (const json& session : server.get("/api/v1/sessions" + query).body["sessions"])
    ids.push_back(session["id"]);
  return ids;
}

std::vector<std::string> list_files(const fs::path& folder) {
  for (;;) {
    std::vector<std::string> files;
    try {
      for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (!entry.is_directory())
          files.push_back(entry.path().lexically_relative(folder).string());
    } catch (const fs::filesystem_error& error) {
      if (error.code() == std::errc::no_such_file_or_directory && fs::exists(folder)) continue;
      throw;
    }
    std::ranges::sort(files);
    return files;
  }
}

std::string read_bytes(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void damage_last_quarter(const fs::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto size = fs::file_size(path);
  file.seekp(static_cast<std::streamoff>(size - size / 4));
  file << std::string(4096, '\x5a');
}

void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string run_sqlite3(const fs::path& file, const std::string& sql) {
  const std::string command = "sqlite3 -batch '" + file.string() + "' \"" + sql + "\" 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "cannot run sqlite3";
  std::string output;
  for (int c = 0; (c = fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  pclose(pipe);
  while (output.ends_with('\n')) output.pop_back();
  return output;
}

std::string download(TestServer& server, const std::string& id) {
  const auto file = server.client().Get("/api/v1/sessions/" + id + "/file");
  EXPECT_TRUE(file && file->status == 200);
  return file ? file->body : "";
}

TestResponse import_session(TestServer& server, const std::string& bytes) {
  return server.post("/api/v1/sessions", bytes, "application/octet-stream");
}

}  // namespace tt::test
