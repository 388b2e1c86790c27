// A text table: each column is as wide as its widest cell.
#pragma once

#include <string>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt::cli {

enum class Align { Left, Right };
struct Column {
  std::string name;
  Align align = Align::Left;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One cell per column; missing cells are empty. Control characters are escaped
  // (escape_control_chars()).
  void add(std::vector<std::string> cells);
  void print() const;  // on standard output

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string layer_text(LayerId layer);  // "-": outside all layers

}  // namespace tt::cli
