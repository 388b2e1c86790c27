#include "api/exchange/run_folder/tar.h"
#include "api/exchange/import/import.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <format>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "api/exchange/import/import.h"

namespace tt::exchange {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunkBytes = 256u << 10;  // read buffer size
constexpr std::uint64_t kCheckInterval = 16u << 20;
constexpr std::size_t kMaxEntries = 1000;

struct FreeEntry {
  void operator()(archive_entry* entry) const noexcept { archive_entry_free(entry); }
};
struct FreeWriter {
  void operator()(archive* writer) const noexcept { archive_write_free(writer); }
};
struct FreeReader {
  void operator()(archive* reader) const noexcept { archive_read_free(reader); }
};

TraceError error_from(archive* library, TraceError::Kind kind) {
  const char* const text = archive_error_string(library);
  return {kind, text == nullptr ? "The archive cannot be processed." : text};
}

// ---------------------------------------------------------------------------
// Writing

class TarWriter {
 public:
  TarWriter(const ByteSink& sink, std::int64_t changed_utc_s)
      : sink_(sink), changed_(changed_utc_s), writer_(archive_write_new()) {}
  // An archive that was not closed stays truncated; it is not padded to look complete.
  ~TarWriter() {
    if (!closed_) archive_write_fail(writer_.get());
  }
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  WriteResult open() {
    archive* const writer = writer_.get();
    if (archive_write_set_format_pax_restricted(writer) != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(writer, kChunkBytes) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(writer, 1) != ARCHIVE_OK ||
        archive_write_open2(writer, this, nullptr, &TarWriter::put, nullptr, nullptr) != ARCHIVE_OK)
      return failed();
    return {};
  }

  WriteResult add_folder(const std::string& name) { return begin(name, AE_IFDIR, 0755, 0); }

  WriteResult add_file(const fs::path& path, const std::string& name,
                       const ContinueCheck& keep_going) {
    std::error_code none;
    const std::uint64_t bytes = fs::file_size(path, none);
    std::ifstream file(path, std::ios::binary);
    if (none || !file) return std::unexpected(system_error(path));
    if (WriteResult begun = begin(name, AE_IFREG, 0644, bytes); !begun) return begun;
    for (std::uint64_t left = bytes; left > 0;) {
      if (!keep_going()) return std::unexpected(cancelled_error());
      buffer_.resize(std::min<std::uint64_t>(left, kChunkBytes));
      if (!file.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size())))
        return std::unexpected(system_error(path));
      if (archive_write_data(writer_.get(), buffer_.data(), buffer_.size()) < 0) return failed();
      left -= buffer_.size();
    }
    return {};
  }

  WriteResult close() {
    closed_ = true;
    return archive_write_close(writer_.get()) == ARCHIVE_OK ? WriteResult{} : failed();
  }

 private:
  WriteResult begin(const std::string& name, unsigned type, int mode, std::uint64_t bytes) {
    const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), type);
    archive_entry_set_perm(entry.get(), static_cast<mode_t>(mode));
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes));
    archive_entry_set_mtime(entry.get(), changed_, 0);
    return archive_write_header(writer_.get(), entry.get()) == ARCHIVE_OK ? WriteResult{}
                                                                          : failed();
  }

  WriteResult failed() {
    if (!sink_status_) return sink_status_;
    return std::unexpected(error_from(writer_.get(), TraceError::Kind::Io));
  }

  static la_ssize_t put(archive*, void* self, const void* bytes, std::size_t count) {
    auto& writer = *static_cast<TarWriter*>(self);
    if (writer.sink_status_)
      writer.sink_status_ = writer.sink_({static_cast<const char*>(bytes), count});
    return writer.sink_status_ ? static_cast<la_ssize_t>(count) : -1;
  }

  const ByteSink& sink_;
  const std::int64_t changed_;
  WriteResult sink_status_;
  bool closed_ = false;
  std::vector<char> buffer_;
  std::unique_ptr<archive, FreeWriter> writer_;
};

// ---------------------------------------------------------------------------
// Reading

std::unexpected<TraceError> rejected(std::string why) {
  return std::unexpected(TraceError{TraceError::Kind::Damaged, std::move(why)});
}

// Quotes an untrusted name for messages.
std::string quoted_name(std::string_view name) {
  constexpr std::size_t kMaxLength = 60;
  std::string text(name.substr(0, kMaxLength));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  return "\"" + text + (name.size() > kMaxLength ? "...\"" : "\"");
}

class TarReader {
 public:
  TarReader(std::span<const std::string_view> names, fs::path folder,
            const CopyProgress& on_progress, const ContinueCheck& keep_going)
      : names_(names),
        folder_(std::move(folder)),
        may_go_on_(on_progress),
        keep_going_(keep_going),
        reader_(archive_read_new()) {}

  WriteResult read(const fs::path& path) {
    std::error_code none;
    archive_bytes_ = fs::file_size(path, none);
    if (none) return std::unexpected(system_error(path));
    if (archive_read_support_format_tar(reader_.get()) != ARCHIVE_OK ||
        archive_read_open_filename(reader_.get(), path.c_str(), kChunkBytes) != ARCHIVE_OK)
      return not_a_tar();
    for (std::size_t entries = 0;; ++entries) {
      if (!keep_going_()) return std::unexpected(cancelled_error());
      archive_entry* entry = nullptr;
      const int status = archive_read_next_header(reader_.get(), &entry);
      if (status == ARCHIVE_EOF) break;
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
        return entries == 0 ? not_a_tar() : damaged_archive();
      if (entries == kMaxEntries)
        return rejected(std::format(
            "The archive has more than {} entries. Send a single run folder.", kMaxEntries));
      if (WriteResult taken = take(entry); !taken) return taken;
    }
    for (const std::string_view name : names_) {
      // Run folders of earlier versions have no recording.
      if (!taken_from_.contains(name) && name != kRecording)
        return rejected(std::format("The archive has no {}: it is not a run folder.", name));
    }
    return {};
  }

 private:
  WriteResult take(archive_entry* entry) {
    const char* const entry_name = archive_entry_pathname(entry);
    if (entry_name == nullptr || *entry_name == '\0')
      return rejected("An entry of the archive has no name.");
    const std::string name = entry_name;
    if (WriteResult checked = check(entry, name); !checked) return checked;
    const fs::path path = fs::path(name).lexically_normal();
    const auto found = std::ranges::find(names_, path.filename().string());
    if (archive_entry_filetype(entry) != AE_IFREG || found == names_.end()) return {};
    const std::string parent = path.parent_path().string();
    if (!taken_from_.empty() && taken_from_.begin()->second != parent)
      return rejected(
          std::format("The archive has files of two run folders: {} is not in the folder of {}.",
                      quoted_name(name), taken_from_.begin()->first));
    if (!taken_from_.emplace(*found, parent).second)
      return rejected(std::format("The archive contains {} twice.", quoted_name(name)));
    return copy(*found);
  }

  WriteResult check(archive_entry* entry, const std::string& name) const {
    const fs::path path(name);
    if (path.is_absolute() || std::ranges::contains(path, fs::path("..")))
      return rejected(
          std::format("The archive entry {} is outside of the folder.", quoted_name(name)));
    const auto type = archive_entry_filetype(entry);
    const bool link =
        archive_entry_hardlink(entry) != nullptr || archive_entry_symlink(entry) != nullptr;
    if (link || (type != AE_IFREG && type != AE_IFDIR))
      return rejected(
          std::format("The archive entry {} is neither a file nor a folder. Pack it without links.",
                      quoted_name(name)));
    if (archive_entry_sparse_count(entry) > 0)
      return rejected(std::format("The entry {} is a sparse file. Pack it as a plain file.",
                                  quoted_name(name)));
    const auto begins = static_cast<std::uint64_t>(archive_read_header_position(reader_.get()));
    const auto bytes =
        static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_entry_size(entry)));
    if (archive_entry_size(entry) < 0 || begins > archive_bytes_ || bytes > archive_bytes_ - begins)
      return rejected(
          std::format("The archive is truncated: it ends inside {}.", quoted_name(name)));
    return {};
  }

  WriteResult copy(std::string_view name) {
    auto file = OutputFile::create(folder_ / name);
    if (!file) return std::unexpected(file.error());
    buffer_.resize(kChunkBytes);
    for (;;) {
      if (!keep_going_()) return std::unexpected(cancelled_error());
      const la_ssize_t got = archive_read_data(reader_.get(), buffer_.data(), buffer_.size());
      if (got == 0) return file->commit();
      if (got < 0) return damaged_archive();
      written_ += static_cast<std::uint64_t>(got);
      if (written_ - checked_at_ >= kCheckInterval) {
        checked_at_ = written_;
        if (auto proceed = may_go_on_(written_); !proceed) return proceed;
      }
      if (WriteResult put = file->write({buffer_.data(), static_cast<std::size_t>(got)}); !put)
        return put;
    }
  }

  static WriteResult not_a_tar() {
    return std::unexpected(
        TraceError{TraceError::Kind::NotASession,
                   "Not a tar archive. Pack the run folder with `tar -cf`, without compression."});
  }
  WriteResult damaged_archive() {
    return rejected(std::format("The archive is damaged or truncated: {}.",
                                error_from(reader_.get(), TraceError::Kind::Damaged).message));
  }

  const std::span<const std::string_view> names_;
  const fs::path folder_;
  const CopyProgress& may_go_on_;
  const ContinueCheck& keep_going_;
  std::uint64_t archive_bytes_ = 0, written_ = 0, checked_at_ = 0;
  std::map<std::string_view, std::string> taken_from_;  // folder in the archive, by file name
  std::vector<char> buffer_;
  std::unique_ptr<archive, FreeReader> reader_;
};

}  // namespace

WriteResult write_tar(const fs::path& folder, const std::string& top, std::int64_t changed_utc_s,
                      const ByteSink& sink, const ContinueCheck& keep_going) {
  std::error_code failed;
  std::vector<fs::path> paths;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed))
    paths.push_back(at->path());
  if (failed)
    return std::unexpected(
        TraceError{TraceError::Kind::Io, folder.string() + ": " + failed.message()});
  std::ranges::sort(paths);
  TarWriter tar(sink, changed_utc_s);
  if (WriteResult opened = tar.open(); !opened) return opened;
  if (WriteResult begun = tar.add_folder(top + "/"); !begun) return begun;
  for (const fs::path& path : paths) {
    const std::string name = top + "/" + path.lexically_relative(folder).string();
    const auto type = fs::symlink_status(path, failed).type();
    if (type != fs::file_type::directory && type != fs::file_type::regular)
      return std::unexpected(
          TraceError{TraceError::Kind::Io, path.string() + " is not a regular file."});
    const WriteResult added = type == fs::file_type::directory
                                  ? tar.add_folder(name + "/")
                                  : tar.add_file(path, name, keep_going);
    if (!added) return added;
  }
  return tar.close();
}

WriteResult read_tar(const fs::path& archive, std::span<const std::string_view> names,
                     const fs::path& folder, const CopyProgress& on_progress,
                     const ContinueCheck& keep_going) {
  return TarReader(names, folder, on_progress, keep_going).read(archive);
}

}  // namespace tt::exchange
