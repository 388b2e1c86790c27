#include "tracer/format/file/file_header.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <format>
#include <fstream>
#include <string_view>

#include "tracer/format/file/session_tables.h"

namespace tt {

std::expected<void, TraceError> check_file_header(const std::filesystem::path& path) {
  using Kind = TraceError::Kind;
  const auto fail = [&](Kind kind, const std::string& what) -> std::expected<void, TraceError> {
    return std::unexpected(TraceError{kind, path.string() + " " + what});
  };
  // SQLite's file header: magic, ..., user_version at 60, application_id at 68, big-endian.
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr std::size_t kVersionAt = 60, kApplicationIdAt = 68;

  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    return fail(Kind::NotFound, "does not exist");
  if (status.type() != std::filesystem::file_type::regular)
    return fail(Kind::NotASession, "is not a session file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(errno == EACCES || errno == EPERM ? Kind::ReadOnly : Kind::Io,
                std::format("cannot be read: {}", std::strerror(errno)));
  std::array<char, 100> head{};
  in.read(head.data(), head.size());
  if (in.gcount() != static_cast<std::streamsize>(head.size()) ||
      std::string_view(head.data(), kMagic.size()) != kMagic)
    return fail(Kind::NotASession, "is not a session file");

  const auto number_at = [&](std::size_t at) {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<std::uint8_t>(head[at + i]);
    return v;
  };
  if (number_at(kApplicationIdAt) != kApplicationId)
    return fail(Kind::NotASession, "is an SQLite database, but not a session");
  const std::uint32_t version = number_at(kVersionAt);
  if (version > kFormatVersion)
    return fail(Kind::NewerVersion,
                std::format("has format version {}, this program reads up to {}. Open it with a "
                            "newer tensor-trace.",
                            version, kFormatVersion));
  if (version == 0) return fail(Kind::NotASession, "has no format version");
  return {};
}

}  // namespace tt
