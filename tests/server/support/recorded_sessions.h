// Sessions recorded with the bundled model, and helpers to read them through the server.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/server/support/test_server.h"

namespace tt::test {

namespace fs = std::filesystem;

json short_request(const std::string& prompt);
inline const json kLongRequest = {{"prompt", "Once"}, {"max_tokens", 900}, {"ignore_eos", true}};

// Records a short session to its end; returns its id.
std::string record(TestServer& server, const std::string& prompt = "The sea");
// Starts a long session; returns its id once some steps are in the file.
std::string start_long_request(TestServer& server);
void cancel_and_wait(TestServer& server, const std::string& id);

// The responses of the server to the main requests about a session, by path.
std::map<std::string, json> all_responses(TestServer& server, const std::string& id);

std::vector<std::string> session_ids(TestServer& server, const std::string& query = "");

// All files below a folder as sorted relative paths. Retries when a file disappears meanwhile.
std::vector<std::string> list_files(const fs::path& folder);

std::string read_bytes(const fs::path& file);
// Overwrites 4096 bytes at the start of the last quarter of the file.
void damage_last_quarter(const fs::path& file);
void write_bytes(const fs::path& file, const std::string& bytes);

// The output of the sqlite3 shell, independent of our code.
std::string run_sqlite3(const fs::path& file, const std::string& sql);

std::string download(TestServer& server, const std::string& id);
TestResponse import_session(TestServer& server, const std::string& bytes);

}  // namespace tt::test
