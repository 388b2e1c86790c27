// Encodes pictures as a video with the program ffmpeg.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cli/commands/scratch_folder.h"

namespace tt::cli {

struct VideoFormat {
  std::string_view name, extension;
  std::uint32_t frames_per_second;  // unless chosen
};
std::span<const VideoFormat> video_formats();
// Null: not a format of a video.
const VideoFormat* find_video_format(std::string_view name);

struct VideoSettings {
  const VideoFormat* format = nullptr;
  std::uint32_t width = 0, height = 0, frames_per_second = 0;
  std::string subtitles;         // ASS
  std::filesystem::path output;  // is replaced
};

// One thread. A video that was not finished is incomplete.
class VideoEncoder {
 public:
  // Starts ffmpeg. The error says what to install if there is none.
  static std::expected<VideoEncoder, std::string> start(const VideoSettings& settings);
  VideoEncoder(VideoEncoder&& other) noexcept;
  VideoEncoder& operator=(VideoEncoder&&) = delete;
  ~VideoEncoder();  // ends ffmpeg

  // RGB, 8 bits per channel. False: ffmpeg has ended; finish() says why.
  bool add(std::span<const std::byte> picture);
  std::expected<void, std::string> finish();

 private:
  VideoEncoder() = default;
  std::unique_ptr<ScratchFolder> folder_;  // subtitles, messages
  pid_t program_ = -1;
  int pictures_ = -1;
};

}  // namespace tt::cli
