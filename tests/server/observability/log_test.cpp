// Log lines as written to stderr.
#include "server/observability/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace tt {
namespace {

using nlohmann::json;

template <class Write>
std::vector<std::string> lines_of(LogOptions options, Write write) {
  ::testing::internal::CaptureStderr();
  write(Log(options));
  std::istringstream captured(::testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(captured, line);) lines.push_back(line);
  return lines;
}

TEST(Log, TextLineHasTimeLevelMessageAndFields) {
  const auto lines = lines_of({}, [](const Log& log) {
    log.of("llama.cpp").warn("it is slow\n", {{"ms", 12}, {"share", 0.5}, {"model", "a b"}});
  });
  ASSERT_EQ(lines.size(), 1u);
  const std::regex expected(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d warning )"
                            R"RE(it is slow component=llama\.cpp ms=12 share=0\.5 model="a b")RE");
  EXPECT_TRUE(std::regex_match(lines[0], expected)) << lines[0];
}

TEST(Log, JsonLineHasSameFields) {
  const auto lines = lines_of({.json = true}, [](const Log& log) {
    log.of("llama.cpp").warn("it is slow\n", {{"ms", 12}, {"share", 0.5}, {"model", "a b"}});
  });
  ASSERT_EQ(lines.size(), 1u);
  json line = json::parse(lines[0]);
  EXPECT_TRUE(std::regex_match(line["time"].get<std::string>(),
                               std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)")));
  line.erase("time");
  EXPECT_EQ(line, json({{"level", "warning"},
                        {"message", "it is slow"},
                        {"component", "llama.cpp"},
                        {"ms", 12},
                        {"share", 0.5},
                        {"model", "a b"}}));
}

TEST(Log, FiltersByLevel) {
  const LogLevel all[] = {LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warning,
                          LogLevel::Error};
  for (const LogLevel minimum : all) {
    std::size_t expected = 0;
    const auto lines = lines_of({.level = minimum}, [&](const Log& log) {
      for (const LogLevel level : all) {
        log.write(level, "x");
        EXPECT_EQ(log.writes(level), level >= minimum);
        expected += level >= minimum ? 1 : 0;
      }
    });
    EXPECT_EQ(lines.size(), expected);
  }
}

TEST(Log, EscapesControlCharacters) {
  const auto lines = lines_of({}, [](const Log& log) {
    log.info("a\nb\x1b[2J\xC2\x9B\x7F",
             {{"path", "/x\r\n2029 info forged"}, {"said", "say \"no\""}});
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find(R"( info a\x0ab\x1b[2J\xc2\x9b\x7f path="/x\x0d\x0a2029 info forged")"
                          R"( said="say \"no\"")"),
            std::string::npos)
      << lines[0];
}

TEST(Log, ArbitraryBytesProduceOneValidJsonLine) {
  std::mt19937 random(1);
  std::vector<std::string> texts;
  for (int i = 0; i < 2000; ++i) {
    std::string text = "x";  // blank messages are not logged
    for (auto n = random() % 40; n > 0; --n) text += static_cast<char>(random());
    texts.push_back(text + "x");
  }
  const auto lines = lines_of({.json = true}, [&](const Log& log) {
    for (const std::string& text : texts) log.info(text, {{"field", text}});
  });
  ASSERT_EQ(lines.size(), texts.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const json line = json::parse(lines[i], nullptr, false);
    ASSERT_FALSE(line.is_discarded()) << lines[i];
    EXPECT_EQ(line["message"], line["field"]);
    const auto replaced = json(texts[i]).dump(-1, ' ', false, json::error_handler_t::replace);
    EXPECT_EQ(line["message"], json::parse(replaced));
  }
}

}  // namespace
}  // namespace tt
