// The built page as files over HTTP: the interface, and /docs/index.html, the
// contract to browse. Read from disk at each request (they are
// few and small, the kernel keeps them), so a page that was built anew is there
// at once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tt {

struct StaticFile {
  std::string body, type;
  std::string cache;  // Cache-Control: hashed assets never change, the rest is asked for again
  std::string etag;
};

// FNV-1a of the bytes: tells whether they are the ones that the browser has.
std::string etag_of(std::string_view body);

class StaticFiles {
 public:
  explicit StaticFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `path` as in the request, decoded: "/", "/assets/x-1a2b.js". A path of one
  // part without an extension is the page's own affair and gets its index.
  // None: there is no such file. Where the page is not built "/" says how to.
  std::optional<StaticFile> find(std::string_view path) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace tt
