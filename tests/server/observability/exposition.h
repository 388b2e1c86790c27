// A strict parser of the Prometheus text format, independent of the code that writes it:
// https://prometheus.io/docs/instrumenting/exposition_formats/
// Deviations that a lenient scraper would accept fail the test.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace tt::test {

struct MetricFamily {
  std::string type, help;
  // Key: name and labels as written, tt_sessions_total{state="done"}.
  std::map<std::string, double> samples;
};
using Exposition = std::map<std::string, MetricFamily>;

// The family of a sample.
inline std::string family_of(const std::string& name, const Exposition& families) {
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    const std::string ending = suffix;
    if (!name.ends_with(ending)) continue;
    const std::string family = name.substr(0, name.size() - ending.size());
    const auto found = families.find(family);
    if (found != families.end() && found->second.type == "histogram") return family;
  }
  return name;
}

inline void expect_valid_histogram(const std::string& name, const MetricFamily& family) {
  double before = 0;
  double least_bound = -INFINITY;
  std::map<double, double> buckets;
  for (const auto& [sample, value] : family.samples) {
    const std::string start = name + "_bucket{le=\"";
    if (sample.starts_with(start)) buckets[std::stod(sample.substr(start.size()))] = value;
  }
  ASSERT_FALSE(buckets.empty()) << name;
  for (const auto& [bound, count] : buckets) {
    EXPECT_GT(bound, least_bound) << name;
    EXPECT_GE(count, before) << name << " is not cumulative";
    before = count;
    least_bound = bound;
  }
  EXPECT_TRUE(std::isinf(least_bound)) << name << " has no bucket +Inf";
  ASSERT_TRUE(family.samples.contains(name + "_count")) << name;
  EXPECT_EQ(family.samples.at(name + "_count"), before) << name;
  EXPECT_TRUE(family.samples.contains(name + "_sum")) << name;
}

inline Exposition parse_exposition(const std::string& text) {
  static const std::regex help(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\\n]|\\[\\n])*))");
  static const std::regex type(
      R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped))");
  static const std::regex sample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*))re"
      R"re((?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})?)re"
      R"re( (NaN|[+-]Inf|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)( -?\d+)?)re");
  Exposition families;
  std::set<std::string> closed;
  std::string current;
  EXPECT_TRUE(text.ends_with('\n')) << "no newline at the end";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch part;
    if (std::regex_match(line, part, help)) {
      EXPECT_TRUE(families[part[1]].help.empty()) << "duplicate HELP: " << line;
      families[part[1]].help = part[2];
    } else if (std::regex_match(line, part, type)) {
      MetricFamily& family = families[part[1]];
      EXPECT_TRUE(family.type.empty()) << "duplicate TYPE: " << line;
      EXPECT_TRUE(family.samples.empty()) << "TYPE after samples: " << line;
      family.type = part[2];
    } else if (std::regex_match(line, part, sample)) {
      const std::string name = family_of(part[1], families);
      if (name != current) {
        EXPECT_FALSE(closed.contains(name)) << "samples not contiguous: " << name;
        closed.insert(current);
        current = name;
      }
      const std::string key =
          part[2].matched ? part[1].str() + "{" + part[2].str() + "}" : part[1].str();
      EXPECT_FALSE(families[name].type.empty()) << "no TYPE: " << line;
      const double value = std::stod(part[3]);
      EXPECT_TRUE(value >= 0 || families[name].type == "gauge") << line;
      EXPECT_TRUE(families[name].samples.emplace(key, value).second) << "duplicate sample: " << key;
    } else {
      ADD_FAILURE() << "invalid line: " << line;
    }
  }
  for (const auto& [name, family] : families) {
    EXPECT_FALSE(family.help.empty()) << name;
    if (family.type == "histogram") expect_valid_histogram(name, family);
  }
  return families;
}

}  // namespace tt::test
