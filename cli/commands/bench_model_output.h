// The output of `tt bench-model`: tables for the terminal and Markdown, and machine-readable rows.
#pragma once

#include <string>
#include <vector>

#include "analysis/speed/speed_comparison.h"
#include "api/json/json.h"

namespace tt::cli {

enum class BenchFormat { Table, Csv, Json, JsonLines, Markdown, Sql };

// The measured tests of one configuration.
struct BenchResult {
  std::string name;          // of the configuration; empty: there is only one
  Json facts;                // with llama-bench's column names
  std::string model;         // a line about the model
  std::string machine;       // a line about what the machine did; empty: not known
  std::string machine_word;  // its verdict: "clean", "contended"...
  std::string test_time;     // UTC, ISO 8601
  std::vector<SpeedTest> tests;
};

void print_results(const std::vector<BenchResult>& results, BenchFormat format);
// `before`, `after`: names of the two sides. Only Table, Markdown and Json; others print the table.
void print_comparison(const std::vector<ComparedTest>& tests, const std::string& before,
                      const std::string& after, BenchFormat format);
// Both, as one JSON value if the format is JSON.
void print_results_and_comparison(const std::vector<BenchResult>& results,
                                  const std::vector<ComparedTest>& tests, BenchFormat format);

}  // namespace tt::cli
