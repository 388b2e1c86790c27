// Serves the built web UI as static files: the application, and /docs/index.html, the API
// reference. Files are read from disk on each request (they are few and small, and the kernel
// caches them), so a rebuilt web UI is visible at once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tt {

struct StaticFile {
  std::string body, type;
  std::string cache;  // Cache-Control: hashed assets are immutable, the rest is revalidated
  std::string etag;
};

// FNV-1a hash of the content, quoted as a strong entity tag.
std::string etag_of(std::string_view body);

class StaticFiles {
 public:
  explicit StaticFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `path` is the decoded request path: "/", "/assets/x-1a2b.js". Returns nullopt when the
  // file does not exist. If the web UI is not built, "/" returns instructions for building it.
  std::optional<StaticFile> find(std::string_view path) const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace tt
