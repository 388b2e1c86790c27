#include "tracer/text/text_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tracer/text/utf8.h"

namespace tt::test {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

// Pushes the pieces one by one, then flushes; each output must be valid UTF-8.
std::string stream_pieces(const std::vector<std::string>& pieces,
                          std::vector<std::string> stops = {}) {
  TextStream stream(std::move(stops));
  std::string text;
  for (const std::string& piece : pieces) {
    const std::string grown = stream.push(piece);
    EXPECT_EQ(grown, to_valid_utf8(grown));
    text += grown;
  }
  return text + stream.flush();
}

TEST(TextStream, OutputsWholeCharactersOnly) {
  TextStream stream({});
  EXPECT_EQ(stream.push("a\xE2"), "a");  // the euro sign is E2 82 AC
  EXPECT_EQ(stream.push("\x82"), "");
  EXPECT_EQ(stream.push("\xAC!"), "\u20AC!");
  EXPECT_EQ(stream.push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.push("\x80"), "\U0001F600");
  EXPECT_EQ(stream.flush(), "");
}

TEST(TextStream, ReplacesInvalidUtf8) {
  struct Case {
    const char* name;
    std::string bytes, text;
  };
  const Case cases[] = {
      {"plain", "abc", "abc"},
      {"lone continuation", "a\x80z", "a" + kReplacement + "z"},
      {"never a lead byte", "\xFFz", kReplacement + "z"},
      {"overlong slash", "\xC0\xAF", kReplacement + kReplacement},
      {"surrogate", "\xED\xA0\x80", kReplacement + kReplacement + kReplacement},
      {"above the last plane", "\xF4\x90\x80\x80",
       kReplacement + kReplacement + kReplacement + kReplacement},
      {"cut off at the end", "a\xE2\x82", "a" + kReplacement},
      {"cut off by a letter", "\xE2\x82z", kReplacement + "z"},
      {"zero byte", std::string("a\0b", 3), std::string("a\0b", 3)},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(to_valid_utf8(c.bytes), c.text);
    EXPECT_EQ(stream_pieces({c.bytes}), c.text);
    std::vector<std::string> bytes;
    for (const char byte : c.bytes) bytes.emplace_back(1, byte);
    EXPECT_EQ(stream_pieces(bytes), c.text) << "byte by byte";
  }
}

TEST(Utf8, PrefixEndsBetweenCharacters) {
  const std::string text = "a\u20AC\U0001F600!";  // 1, 3, 4 and 1 bytes
  const std::vector<std::size_t> lengths = {0, 1, 1, 1, 4, 4, 4, 4, 8, 9, 9};
  for (std::size_t bytes = 0; bytes < lengths.size(); ++bytes)
    EXPECT_EQ(utf8_prefix(text, bytes), text.substr(0, lengths[bytes])) << bytes;
  // Bytes that belong to no character are cut after a few.
  EXPECT_EQ(utf8_prefix(std::string(20, '\x80'), 10).size(), 6U);
}

TEST(TextStream, EndsBeforeStopString) {
  struct Case {
    const char* name;
    std::vector<std::string> pieces, stops;
    std::string text;
  };
  const Case cases[] = {
      {"in one piece", {"one STOP two"}, {"STOP"}, "one "},
      {"across pieces", {"one S", "TO", "P two"}, {"STOP"}, "one "},
      {"only looked like it", {"one STO", "RM"}, {"STOP"}, "one STORM"},
      {"the beginning at the end", {"one STO"}, {"STOP"}, "one STO"},
      {"the first of two", {"a bb cc"}, {"cc", "bb"}, "a "},
      {"begins within itself", {"aa", "ab", "c"}, {"aab"}, "a"},
      {"of half a character", {"x\xE2\x82", "\xAC y"}, {"\u20AC"}, "x"},
      {"empty ones never stop", {"abc"}, {""}, "abc"},
      {"at once", {"STOP"}, {"STOP"}, ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(stream_pieces(c.pieces, c.stops), c.text);
  }
}

TEST(TextStream, OutputsNothingAfterStopString) {
  TextStream stream({"."});
  EXPECT_EQ(stream.push("end. more"), "end");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.push("and more"), "");
  EXPECT_EQ(stream.flush(), "");
}

// The text does not depend on how the bytes are split into pieces.
TEST(TextStream, DoesNotDependOnPieces) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::vector<std::string> alphabet = {"a", "b", "\u20AC", "\U0001F600", "\xE2", "\x82"};
    std::string whole;
    for (int i = 0; i < 40; ++i) whole += alphabet[random() % alphabet.size()];
    const std::vector<std::string> stops =
        seed % 3 == 0 ? std::vector<std::string>{} : std::vector<std::string>{"abab", "b\u20AC"};
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t length = 1 + random() % 5;
      pieces.push_back(whole.substr(at, length));
      at += length;
    }
    std::size_t end = whole.size();
    for (const std::string& stop : stops) end = std::min(end, whole.find(stop));
    EXPECT_EQ(stream_pieces(pieces, stops), to_valid_utf8(whole.substr(0, end)));
  }
}

}  // namespace
}  // namespace tt::test
