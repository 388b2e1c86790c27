#include "server/app/api_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <format>
#include <memory>
#include <string_view>
#include <system_error>

#include "server/frontend/secret.h"
#include "tracer/format/file/input_file.h"

namespace tt {

namespace {

constexpr std::size_t kMinKeyLength = 16;
constexpr std::size_t kMaxKeyLength = 256;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// Returns null and sets errno on failure.
File open_file(const std::filesystem::path& path, int flags, const char* mode) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  return {fd < 0 ? nullptr : fdopen(fd, mode), &std::fclose};
}

std::string reason() { return std::generic_category().message(errno); }

bool is_valid_key(std::string_view text) {
  return text.size() >= kMinKeyLength && text.size() <= kMaxKeyLength &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

std::string invalid_key_error(std::string_view where) {
  return std::format(
      "{} is not valid: a key must be {} to {} visible ASCII characters without spaces.", where,
      kMinKeyLength, kMaxKeyLength);
}

std::expected<ApiKey, std::string> create_key_file(const std::filesystem::path& path) {
  const File file = open_file(path, O_WRONLY | O_CREAT | O_EXCL, "w");
  const std::string key = random_secret();
  if (!file || std::fputs((key + "\n").c_str(), file.get()) < 0 || std::fflush(file.get()) != 0) {
    return std::unexpected(
        std::format("The key file {} cannot be created: {}.", path.string(), reason()));
  }
  return ApiKey{.key = key, .notice = std::format("created the key file {}", path.string())};
}

}  // namespace

std::expected<ApiKey, std::string> load_api_key(const ApiKeyOptions& options) {
  if (!options.key.empty() && !options.file.empty()) {
    return std::unexpected("Both a key and a key file are set. Set only one of them.");
  }
  if (options.file.empty()) {
    if (options.key.empty() || is_valid_key(options.key))
      return ApiKey{.key = options.key, .notice = {}};
    return std::unexpected(invalid_key_error("The API key"));
  }
  constexpr std::uint64_t kMaxFileBytes = kMaxKeyLength + 255;
  const auto content = read_input(options.file, kMaxFileBytes);
  if (!content && content.error().kind == TraceError::Kind::NotFound)
    return create_key_file(options.file);
  if (!content) return std::unexpected(std::format("The key file {}.", content.error().message));
  std::string_view text = *content;
  constexpr std::string_view kBlank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);
  if (!is_valid_key(text)) {
    return std::unexpected(invalid_key_error(std::format("The key in {}", options.file.string())));
  }
  struct stat facts{};
  const bool world_readable =
      stat(options.file.c_str(), &facts) == 0 && (facts.st_mode & 0044) != 0;
  return ApiKey{.key = std::string(text),
                .notice = world_readable
                              ? std::format("other users of this machine can read the key file {}",
                                            options.file.string())
                              : ""};
}

}  // namespace tt
