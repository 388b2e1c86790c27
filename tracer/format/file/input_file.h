// Opens a file that a user or another program may have made: the one way in which such files are
// read, except models, sessions (SQLite) and files of /proc and /sys.
//
// Opening never waits, also for a FIFO. Only regular files are opened (and pipes, where the caller
// accepts them), so that reading ends. Reading throws no exception. Any thread; an object is used
// by one thread at a time.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>
#include <system_error>

#include "tracer/format/model/trace_error.h"

namespace tt {

enum class InputKind : std::uint8_t {
  Regular,
  RegularOrPipe,  // also standard input and `<(command)`: a stream of unknown length
};

class InputFile {
 public:
  // Error: "PATH cannot be read: REASON", NotFound if there is no such file, else Io.
  static Expected<InputFile> open(const std::filesystem::path& path,
                                  InputKind kind = InputKind::Regular);
  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  // Ends at the end of the file, and at an error of reading: then finished() is that error.
  std::istream& stream() { return *stream_; }
  Status finished() const;

 private:
  class Buffer;
  InputFile(std::filesystem::path path, std::unique_ptr<Buffer> buffer);

  std::filesystem::path path_;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::istream> stream_;
};

// The whole content. Error: as of open() and finished(), or the file has more than `max_bytes`.
Expected<std::string> read_input(const std::filesystem::path& path, std::uint64_t max_bytes,
                                 InputKind kind = InputKind::Regular);

// The same error text for files that are opened in another way; empty: a regular file, or none.
std::string not_regular_reason(std::filesystem::file_type type);

}  // namespace tt
