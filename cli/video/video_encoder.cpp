#include "cli/video/video_encoder.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <format>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

extern char** environ;

namespace tt::cli {
namespace {

constexpr const char* kSubtitles = "text.ass";
constexpr const char* kMessages = "messages";

constexpr std::array kFormats = {
    VideoFormat{"webm", ".webm", 30},
    VideoFormat{"mp4", ".mp4", 30},
    VideoFormat{"gif", ".gif", 10},
};

// What ffmpeg gets between the input and the output.
std::vector<std::string> encoding(std::string_view format) {
  const std::string draw = std::string("ass=") + kSubtitles;
  // The colours of a GIF are chosen for each picture: for all of them, ffmpeg would hold them all
  // in memory.
  if (format == "gif")
    return {
        "-vf",
        draw +
            ",split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1:dither=none"};
  std::vector<std::string> arguments = {"-vf", draw, "-pix_fmt", "yuv420p", "-c:v"};
  const auto add = [&](std::initializer_list<const char*> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  if (format == "webm")
    add({"libvpx-vp9", "-b:v", "0", "-crf", "32", "-deadline", "realtime", "-cpu-used", "6",
         "-row-mt", "1"});
  else
    add({"libx264", "-preset", "veryfast", "-crf", "21", "-movflags", "+faststart"});
  return arguments;
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::span<const VideoFormat> video_formats() { return kFormats; }

const VideoFormat* find_video_format(std::string_view name) {
  const auto* const found = std::ranges::find(kFormats, name, &VideoFormat::name);
  return found == kFormats.end() ? nullptr : found;
}

std::expected<VideoEncoder, std::string> VideoEncoder::start(const VideoSettings& settings) {
  VideoEncoder encoder;
  encoder.folder_ = std::make_unique<ScratchFolder>("tt-video");
  const std::filesystem::path& folder = encoder.folder_->path();
  if (folder.empty()) return std::unexpected(encoder.folder_->error());
  if (!(std::ofstream(folder / kSubtitles) << settings.subtitles))
    return std::unexpected(std::format("cannot write to {}", folder.string()));

  std::array<int, 2> ends{};
  // A socket and not a pipe: when ffmpeg has ended, a write is an error and not a signal.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return std::unexpected("socketpair: " + std::system_category().message(errno));
  encoder.pictures_ = ends[0];
  // With the working folder, the file names need no escaping in the filter.
  const std::string output = std::filesystem::absolute(settings.output).string();
  std::vector<std::string> arguments = {"ffmpeg",
                                        "-hide_banner",
                                        "-loglevel",
                                        "error",
                                        "-y",
                                        "-f",
                                        "rawvideo",
                                        "-pix_fmt",
                                        "rgb24",
                                        "-s",
                                        std::format("{}x{}", settings.width, settings.height),
                                        "-framerate",
                                        std::to_string(settings.frames_per_second),
                                        "-i",
                                        "pipe:0"};
  for (std::string& more : encoding(settings.format->name)) arguments.push_back(std::move(more));
  for (std::string more : {std::string("-f"), std::string(settings.format->name), "file:" + output})
    arguments.push_back(std::move(more));
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, kMessages, O_WRONLY | O_CREAT, 0600);
  // A group of its own: Ctrl+C ends tt, which then ends ffmpeg.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error =
      ::posix_spawnp(&encoder.program_, "ffmpeg", &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(ends[1]);
  if (error == 0) return encoder;
  encoder.program_ = -1;
  if (error == ENOENT)
    return std::unexpected(
        "videos are encoded by the program ffmpeg, which was not found. Install it (Debian, "
        "Ubuntu: "
        "apt install ffmpeg; Fedora: dnf install ffmpeg-free).");
  return std::unexpected("ffmpeg cannot be started: " + std::system_category().message(error));
}

VideoEncoder::VideoEncoder(VideoEncoder&& other) noexcept
    : folder_(std::move(other.folder_)),
      program_(std::exchange(other.program_, -1)),
      pictures_(std::exchange(other.pictures_, -1)) {}

VideoEncoder::~VideoEncoder() {
  if (pictures_ >= 0) ::close(pictures_);
  if (program_ <= 0) return;
  ::kill(program_, SIGKILL);
  ::waitpid(program_, nullptr, 0);
}

bool VideoEncoder::add(std::span<const std::byte> picture) {
  while (!picture.empty()) {
    const ssize_t sent = ::send(pictures_, picture.data(), picture.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    picture = picture.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

std::expected<void, std::string> VideoEncoder::finish() {
  ::close(std::exchange(pictures_, -1));
  int status = 0;
  while (::waitpid(program_, &status, 0) < 0 && errno == EINTR) {
  }
  program_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string why = first_line(folder_->path() / kMessages);
  return std::unexpected("ffmpeg failed" + (why.empty() ? "" : ": " + why));
}

}  // namespace tt::cli
