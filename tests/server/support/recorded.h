// Sessions of the bundled model, and everything that a server says of one.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/server/support/test_server.h"

namespace tt::test {

namespace fs = std::filesystem;

json short_request(const std::string& prompt);
inline const json kEndless = {{"prompt", "Once"}, {"max_tokens", 900}, {"ignore_eos", true}};

// The id of a session that has ended.
std::string record(TestServer& server, const std::string& prompt = "The sea");
// The id of one that is being recorded, with some steps in its file.
std::string start_endless(TestServer& server);
void end(TestServer& server, const std::string& id);

// What the server answers to every question about a session, by path.
std::map<std::string, json> all_answers(TestServer& server, const std::string& id);

std::vector<std::string> listed(TestServer& server, const std::string& query = "");

// Every file below a folder, relative, in order. Looks again where one goes meanwhile.
std::vector<std::string> files_below(const fs::path& folder);

std::string bytes_of(const fs::path& file);
// Overwrites a page of a session where its last quarter begins.
void damage_last_quarter(const fs::path& file);
void write_bytes(const fs::path& file, const std::string& bytes);

// What the sqlite3 program says: nobody of us.
std::string sqlite3_says(const fs::path& file, const std::string& sql);

std::string download(TestServer& server, const std::string& id);
Answer send_in(TestServer& server, const std::string& bytes);

}  // namespace tt::test
