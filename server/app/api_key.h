// Where the key comes from that programs have to show (door.h).
#pragma once

#include <expected>
#include <filesystem>
#include <string>

namespace tt {

struct ApiKeyOptions {
  std::string key;             // as given; empty: none
  std::filesystem::path file;  // empty: none
};

struct ApiKey {
  std::string key;     // empty: none was given
  std::string notice;  // what the person who started the server should know
};

// A file that is not there is made, for its owner only, with a random key in it.
// A key is 16 to 256 visible ASCII characters; in a file blank space around it
// does not count. The error is a sentence, and never holds a key.
std::expected<ApiKey, std::string> load_api_key(const ApiKeyOptions& options);

}  // namespace tt
