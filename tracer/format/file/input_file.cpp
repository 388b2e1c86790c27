#include "tracer/format/file/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <format>
#include <streambuf>
#include <utility>

namespace tt {

namespace fs = std::filesystem;

namespace {

TraceError cannot_read(const fs::path& path, const std::string& reason,
                       TraceError::Kind kind = TraceError::Kind::Io) {
  return {kind, std::format("{} cannot be read: {}", path.string(), reason)};
}

std::string reason_of(int error) { return std::generic_category().message(error); }

fs::file_type type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return fs::file_type::regular;
    case S_IFDIR:
      return fs::file_type::directory;
    case S_IFIFO:
      return fs::file_type::fifo;
    case S_IFSOCK:
      return fs::file_type::socket;
    case S_IFBLK:
      return fs::file_type::block;
    case S_IFCHR:
      return fs::file_type::character;
    default:
      return fs::file_type::unknown;
  }
}

}  // namespace

std::string not_regular_reason(fs::file_type type) {
  switch (type) {
    case fs::file_type::none:
    case fs::file_type::not_found:
    case fs::file_type::regular:
      return "";
    case fs::file_type::directory:
      return "it is a folder";
    case fs::file_type::fifo:
      return "it is a pipe";
    case fs::file_type::block:
    case fs::file_type::character:
      return "it is a device";
    default:
      return "it is not a regular file";
  }
}

class InputFile::Buffer : public std::streambuf {
 public:
  explicit Buffer(int fd) : fd_(fd) {}
  void wait_for_writer() { waits_ = true; }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() override { ::close(fd_); }

  int error() const { return error_; }

 protected:
  int_type underflow() override {
    ssize_t got = 0;
    while ((got = ::read(fd_, bytes_.data(), bytes_.size())) < 0) {
      pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
      if (errno == EAGAIN && waits_ && (::poll(&ready, 1, -1) > 0 || errno == EINTR)) continue;
      if (errno != EINTR) break;
    }
    if (got < 0) error_ = errno;
    if (got <= 0) return traits_type::eof();
    setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
    return traits_type::to_int_type(bytes_[0]);
  }

 private:
  int fd_;
  bool waits_ = false;
  int error_ = 0;
  std::array<char, 1U << 16> bytes_;
};

InputFile::InputFile(fs::path path, std::unique_ptr<Buffer> buffer)
    : path_(std::move(path)),
      buffer_(std::move(buffer)),
      stream_(std::make_unique<std::istream>(buffer_.get())) {}
InputFile::InputFile(InputFile&&) noexcept = default;
InputFile::~InputFile() = default;

Expected<InputFile> InputFile::open(const fs::path& path, InputKind kind) {
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY;
  int fd = ::open(path.c_str(), kFlags | O_NONBLOCK);
  // Another program has a lease on a regular file, which it gives back within a time limit.
  if (fd < 0 && errno == EAGAIN) fd = ::open(path.c_str(), kFlags);
  if (fd < 0) {
    const int error = errno;
    const bool missing = error == ENOENT || error == ENOTDIR;
    return std::unexpected(
        error == ENXIO  // a socket
            ? cannot_read(path, not_regular_reason(fs::file_type::socket))
            : cannot_read(path, reason_of(error),
                          missing ? TraceError::Kind::NotFound : TraceError::Kind::Io));
  }
  auto buffer = std::make_unique<Buffer>(fd);
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return std::unexpected(cannot_read(path, reason_of(errno)));
  const bool pipe = S_ISFIFO(facts.st_mode) || (S_ISCHR(facts.st_mode) && ::isatty(fd) == 1);
  if (!S_ISREG(facts.st_mode) && !(pipe && kind == InputKind::RegularOrPipe))
    return std::unexpected(cannot_read(path, not_regular_reason(type_of(facts.st_mode))));
  // Others are read without waiting: for the kernel, /proc/kmsg is a regular file.
  if (pipe) buffer->wait_for_writer();
  return InputFile(path, std::move(buffer));
}

Status InputFile::finished() const {
  if (buffer_->error() == 0) return {};
  return std::unexpected(cannot_read(path_, reason_of(buffer_->error())));
}

Expected<std::string> read_input(const fs::path& path, std::uint64_t max_bytes, InputKind kind) {
  auto file = InputFile::open(path, kind);
  if (!file) return std::unexpected(std::move(file.error()));
  std::string text;
  std::array<char, 1U << 14> part;
  while (text.size() <= max_bytes && file->stream()) {
    const auto wanted = std::min<std::uint64_t>(part.size(), max_bytes + 1 - text.size());
    file->stream().read(part.data(), static_cast<std::streamsize>(wanted));
    text.append(part.data(), static_cast<std::size_t>(file->stream().gcount()));
  }
  if (const Status read = file->finished(); !read) return std::unexpected(read.error());
  if (text.size() > max_bytes) {
    return std::unexpected(cannot_read(
        path, max_bytes < 1U << 20 ? std::format("it is larger than {} KiB", max_bytes >> 10)
                                   : std::format("it is larger than {} MiB", max_bytes >> 20)));
  }
  return text;
}

}  // namespace tt
