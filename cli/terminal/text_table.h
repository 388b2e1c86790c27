// A text table: each column is as wide as its widest cell.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt::cli {

enum class Align { Left, Right };
struct Column {
  // "tensor"; ">bytes" is aligned to the right.
  Column(const char* heading);                               // NOLINT: implicit
  Column(std::string column_name, Align side = Align::Left)  // NOLINT: implicit
      : name(std::move(column_name)), align(side) {}
  std::string name;
  Align align = Align::Left;
};

std::string layer_text(LayerId layer);  // "-": outside all layers

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell per column; missing cells are empty. Control characters are escaped
  // (escape_control_chars()).
  void add(std::vector<std::string> cells);
  // Texts, whole numbers and layers.
  template <class... Cells>
  void add(const Cells&... cells) {
    add(std::vector<std::string>{cell(cells)...});
  }
  // On standard output.
  void print() const;
  void print_markdown() const;

 private:
  static std::string cell(std::string_view text) { return std::string(text); }
  static std::string cell(std::integral auto number) { return std::to_string(number); }
  static std::string cell(LayerId layer) { return layer_text(layer); }
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tt::cli
