// tt export of videos. In place of ffmpeg runs a program that keeps what it gets, so that each
// picture and text can be looked at; with the real one, ffprobe says what the files are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/support/command_output.h"

namespace tt {
namespace {

using nlohmann::json;

constexpr std::size_t kWidth = 640, kHeight = 360, kFrame = 3 * kWidth * kHeight;

class Video : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TempFolder;
    const Result recorded = run_tt(
        *folder_, "record -p 'Once upon a time' -n 8 -t 1 --ignore-eos --temp 0 -q -o s.ttrace");
    ASSERT_EQ(recorded.code, 0) << recorded.err;
    std::filesystem::create_directory(*folder_ / "bin");
    std::ofstream(*folder_ / "bin/ffmpeg") << "#!/bin/sh\n"
                                              "cat > ../frames.rgb; cp text.ass ../text.ass\n"
                                              "for last; do :; done\n"
                                              "echo video > \"${last#file:}\"\n";
    std::filesystem::permissions(*folder_ / "bin/ffmpeg", std::filesystem::perms::owner_all);
  }
  static void TearDownTestSuite() { delete folder_; }

  // With the program that keeps pictures and texts in this folder.
  static Result film(const std::string& arguments) {
    return run_tt(*folder_, "export s.ttrace --force " + arguments,
                  "PATH=$PWD/bin:$PATH TMPDIR=$PWD");
  }
  // The first columns of the plot with the colour of the position, by frame.
  static std::vector<std::size_t> positions(const std::string& frames) {
    std::vector<std::size_t> found;
    for (std::size_t at = 0; at + kFrame <= frames.size(); at += kFrame) {
      std::size_t x = 0;
      const auto is_accent = [&] {
        const std::string_view pixel(frames.data() + at + 3 * (kWidth * (kHeight / 2) + x), 3);
        return pixel == "\xd6\x27\x28";
      };
      for (x = kWidth / 7; x < kWidth && !is_accent(); ++x) {
      }
      found.push_back(x);
    }
    return found;
  }
  static json rows(const std::string& sql) {
    return run_json(*folder_, "sql s.ttrace \"" + sql + "\"")["rows"];
  }
  static test::TempFolder* folder_;
};
test::TempFolder* Video::folder_ = nullptr;

TEST_F(Video, PicturesFollowTheStepsAndTheirTokens) {
  const Result made = film("-o s.webm --size 640x360 --fps 4");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(contents(*folder_ / "s.webm"), "video\n");
  // 20 seconds, unless chosen.
  const std::string frames = contents(*folder_ / "frames.rgb");
  ASSERT_EQ(frames.size(), 80 * kFrame);
  const std::vector<std::size_t> at = positions(frames);
  EXPECT_TRUE(std::ranges::is_sorted(at));
  EXPECT_EQ(at.front(), kWidth / 7);
  // Each picture is of the step that runs then: on a busy machine one of them can take most of the
  // time.
  const json played = rows(
      "SELECT sum(end_ns - begin_ns) OVER (ORDER BY step) AS played, "
      "(SELECT sum(end_ns - begin_ns) FROM step) FROM step");
  std::size_t running = 0;
  for (std::size_t frame = 0; frame < at.size(); ++frame) {
    SCOPED_TRACE(frame);
    const double now = played[0][1].get<double>() * static_cast<double>(frame) / 80;
    while (running + 1 < played.size() && played[running][0].get<double>() <= now) ++running;
    const double column =
        (kWidth - kWidth / 7.0 - kWidth / 40.0) / static_cast<double>(played.size());
    EXPECT_NEAR(static_cast<double>(at[frame]),
                kWidth / 7.0 + column * static_cast<double>(running), 3);
  }
  // The map gets its colours: the sum of all of them falls from white.
  const auto brightness = [&](std::size_t frame) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kFrame; ++i)
      sum += static_cast<unsigned char>(frames[frame * kFrame + i]);
    return sum;
  };
  EXPECT_LE(brightness(79), brightness(40));
  EXPECT_LE(brightness(40), brightness(0));
  // Unless they are all of the first step.
  if (running > 0) {
    EXPECT_LT(brightness(79), brightness(0));
  }
  // Each step has its tokens marked, after all those before.
  const std::string texts = contents(*folder_ / "text.ass");
  const json steps = rows(
      "SELECT step, token_id, token_count FROM step WHERE end_ns - begin_ns > "
      "(SELECT sum(end_ns - begin_ns) / 40 FROM step)");
  ASSERT_GT(steps.size(), 0U);
  for (const json& step : steps) {
    const auto text = [&](const std::string& where) {
      const json found = rows(
          "SELECT coalesce(group_concat(text, ''), '') FROM (SELECT text FROM "
          "token WHERE " +
          where + " ORDER BY token_id)");
      return found[0][0].get<std::string>();
    };
    const auto first = step[1].get<int>(), end = first + step[2].get<int>();
    const std::string shown = text(std::format("token_id < {}", first)) + "{\\1c&H2827D6&\\b1}" +
                              text(std::format("token_id BETWEEN {} AND {}", first, end - 1)) +
                              "{\\r}";
    EXPECT_TRUE(texts.contains(shown)) << shown;
    EXPECT_TRUE(texts.contains(std::format("step {} of {}", step[0].get<int>(), 8)));
  }
  EXPECT_TRUE(texts.contains("bytes touched: 0"));
  EXPECT_TRUE(texts.contains("pocket.gguf: bytes by step and layer"));
}

TEST_F(Video, SpeedRangeSizeAndMapAreOptions) {
  const auto frames = [&](const std::string& options, std::size_t bytes = kFrame) {
    const Result made = film("-o s.gif " + options);
    EXPECT_EQ(made.code, 0) << made.err;
    return std::filesystem::file_size(*folder_ / "frames.rgb") / bytes;
  };
  const auto ns = rows("SELECT sum(end_ns - begin_ns) FROM step WHERE step BETWEEN 2 AND 4")[0][0]
                      .get<double>();
  const double speed = ns / 1e9 / 5;
  EXPECT_EQ(frames(std::format("--size 640x360 --fps 4 --from-step 2 --to-step 5 --speed {:.15f}",
                               speed)),
            20U);
  EXPECT_TRUE(contents(*folder_ / "text.ass").contains("step 2\n"));
  EXPECT_EQ(frames("--size 320x240 --fps 1", 3 * 320 * 240), 20U);
  for (const char* map : {"component", "op_kind", "tensor", "file", "source"}) {
    EXPECT_EQ(frames(std::string("--size 640x360 --fps 1 --map ") + map), 20U) << map;
    EXPECT_LT(positions(contents(*folder_ / "frames.rgb")).back(), kWidth) << map;
  }
  const Result none = film("-o s.webm --map expert");
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(none.err.contains("choose another one with --map")) << none.err;
}

TEST_F(Video, SaysWhatIsWrongAndLeavesNoFile) {
  const auto expect_error = [&](const std::string& arguments, const std::string& error,
                                const std::string& environment = "PATH=$PWD/bin:$PATH") {
    const Result result = run_tt(*folder_, "export s.ttrace " + arguments, environment);
    EXPECT_NE(result.code, 0) << arguments;
    EXPECT_TRUE(result.err.contains(error)) << arguments << ": " << result.err;
    for (const auto& entry : std::filesystem::directory_iterator(folder_->path()))
      EXPECT_FALSE(entry.path().filename().string().starts_with("wrong")) << entry.path();
  };
  expect_error("-o wrong.mp4", "apt install ffmpeg", "PATH=/nowhere");
  expect_error("-o wrong.csv --speed 2", "are for videos");
  expect_error("-o - --format webm", "standard output");
  expect_error("-o wrong.webm --size 641x360", "even numbers");
  expect_error("-o wrong.webm --size 64", "WIDTHxHEIGHT");
  expect_error("-o wrong.webm --per-token", "a video has no rows");
  expect_error("-o wrong.webm --speed 0.0000001", "choose a greater speed");
  expect_error("-o wrong.webm --fps 100", "--fps");
  // The encoder fails while it gets pictures.
  std::filesystem::create_directory(*folder_ / "broken");
  std::ofstream(*folder_ / "broken/ffmpeg") << "#!/bin/sh\necho 'no such codec' >&2\nexit 1\n";
  std::filesystem::permissions(*folder_ / "broken/ffmpeg", std::filesystem::perms::owner_all);
  expect_error("-o wrong.webm", "ffmpeg failed: no such codec", "PATH=$PWD/broken:$PATH");
}

TEST_F(Video, FfprobeSaysWhatTheFilesAre) {
  struct Expected {
    const char *file, *codec, *container;
  };
  for (const Expected& of : {Expected{"s.webm", "vp9", "webm"}, Expected{"s.mp4", "h264", "mp4"},
                             Expected{"s.gif", "gif", "gif"}}) {
    SCOPED_TRACE(of.file);
    const Result made = run_tt(
        *folder_, std::format("export s.ttrace --force -o {} --size 640x360 --fps 5", of.file));
    ASSERT_EQ(made.code, 0) << made.err;
    const json found = json::parse(test::command_output(
        std::format("ffprobe -v error -of json -count_packets -show_entries "
                    "stream=codec_name,width,height,nb_read_packets:format=format_name,duration {}",
                    (*folder_ / of.file).string())));
    const json& stream = found["streams"][0];
    EXPECT_EQ(stream["codec_name"], of.codec);
    EXPECT_EQ(stream["width"], kWidth);
    EXPECT_EQ(stream["height"], kHeight);
    EXPECT_EQ(stream["nb_read_packets"], "100");
    EXPECT_TRUE(found["format"]["format_name"].get<std::string>().contains(of.container));
    EXPECT_NEAR(std::stod(found["format"]["duration"].get<std::string>()), 20, 0.5);
  }
}

}  // namespace
}  // namespace tt
