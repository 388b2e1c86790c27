#include "server/frontend/detail/message_deflate.h"

#include <algorithm>
#include <array>
#include <new>

#include "server/frontend/detail/request_head.h"

namespace tt::frontend {
namespace {

constexpr int kWindow = -15;  // 32 KiB, raw deflate
constexpr int kLevel = 1;     // fastest; higher levels cost more time than they save on a network
constexpr int kMemory = 8;
// Bytes at the end of a sync flush, which senders omit (RFC 7692, 7.2.1).
constexpr std::array<unsigned char, 4> kTail{0x00, 0x00, 0xff, 0xff};

// zlib declares its input as non-const.
Bytef* bytes_of(const void* at) { return static_cast<Bytef*>(const_cast<void*>(at)); }

}  // namespace

bool offers_deflate(std::string_view extensions) {
  int offers = 0;
  while (!extensions.empty()) {
    std::string_view extension = extensions.substr(0, extensions.find(','));
    extensions.remove_prefix(std::min(extensions.size(), extension.size() + 1));
    const std::string_view name = trim(extension.substr(0, extension.find(';')));
    if (name != "permessage-deflate") continue;
    if (++offers > 1) return false;
    extension.remove_prefix(std::min(extension.size(), extension.find(';')));
    while (!extension.empty()) {
      extension.remove_prefix(1);
      const std::string_view parameter = extension.substr(0, extension.find(';'));
      extension.remove_prefix(parameter.size());
      const std::string_view what = trim(parameter.substr(0, parameter.find('=')));
      if (what != "client_max_window_bits" && what != "client_no_context_takeover" &&
          what != "server_no_context_takeover")
        return false;
    }
  }
  return offers == 1;
}

Deflater::Deflater() {
  if (deflateInit2(&stream_, kLevel, Z_DEFLATED, kWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}
Deflater::~Deflater() { deflateEnd(&stream_); }

std::vector<unsigned char> Deflater::deflate(std::span<const unsigned char> message,
                                             std::size_t room) {
  deflateReset(&stream_);
  std::vector<unsigned char> out(room + message.size());
  stream_.next_in = bytes_of(message.data());
  stream_.avail_in = static_cast<uInt>(message.size());
  stream_.next_out = out.data() + room;
  stream_.avail_out = static_cast<uInt>(message.size());
  const int done = ::deflate(&stream_, Z_SYNC_FLUSH);
  // With a full output buffer the flush is incomplete.
  if (done != Z_OK || stream_.avail_in != 0 || stream_.avail_out == 0) return {};
  out.resize(room + message.size() - stream_.avail_out - kTail.size());
  return out;
}

Inflater::Inflater() {
  if (inflateInit2(&stream_, kWindow) != Z_OK) throw std::bad_alloc();
}
Inflater::~Inflater() { inflateEnd(&stream_); }

std::expected<std::vector<std::byte>, Inflater::Failure> Inflater::inflate(
    std::span<const std::byte> message, std::size_t max_bytes) {
  constexpr std::size_t kChunkBytes = 16 * 1024;
  const std::span<const std::byte> tail = std::as_bytes(std::span(kTail));
  std::vector<std::byte> out;
  for (const auto part : {message, tail}) {
    stream_.next_in = bytes_of(part.data());
    stream_.avail_in = static_cast<uInt>(part.size());
    do {
      const std::size_t before = out.size();
      out.resize(before + kChunkBytes);
      stream_.next_out = bytes_of(out.data() + before);
      stream_.avail_out = kChunkBytes;
      const int done = ::inflate(&stream_, Z_SYNC_FLUSH);
      out.resize(before + kChunkBytes - stream_.avail_out);
      if (out.size() > max_bytes) return std::unexpected(Failure::TooLarge);
      // A final block may end the message; the next block starts a new stream.
      if (done == Z_STREAM_END) {
        inflateReset(&stream_);
        continue;
      }
      if (done != Z_OK && done != Z_BUF_ERROR) return std::unexpected(Failure::Damaged);
    } while (stream_.avail_in != 0 || stream_.avail_out == 0);
  }
  return out;
}

}  // namespace tt::frontend
