// Loads the API key that clients must send (frontend.h).
#pragma once

#include <expected>
#include <filesystem>
#include <string>

namespace tt {

struct ApiKeyOptions {
  std::string key;             // empty: not set
  std::filesystem::path file;  // empty: not set
};

struct ApiKey {
  std::string key;     // empty: not set
  std::string notice;  // message for the operator; empty: none
};

// If the key file does not exist, it is created with mode 0600 and a random key. A key is 16
// to 256 visible ASCII characters; whitespace around it in a file is ignored. The error is a
// complete sentence and never contains the key.
std::expected<ApiKey, std::string> load_api_key(const ApiKeyOptions& options);

}  // namespace tt
