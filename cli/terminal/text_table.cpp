#include "cli/terminal/text_table.h"

#include <algorithm>
#include <cstddef>
#include <format>
#include <utility>

#include "api/text/escape_control_chars.h"
#include "cli/terminal/standard_output.h"

namespace tt::cli {

namespace {

// Number of characters: UTF-8 continuation bytes are not counted.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

Column::Column(const char* heading) : name(heading) {
  if (!name.starts_with('>')) return;
  name.erase(0, 1);
  align = Align::Right;
}

void TextTable::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = escape_control_chars(cell);
  rows_.push_back(std::move(cells));
}

void TextTable::print() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = width_of(columns_[i].name);
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& content = cell(i);
      const std::string gap(widths[i] - width_of(content), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].align == Align::Right ? gap + content : content + gap;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    put(text + '\n');
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].name; });
  for (const auto& row : rows_) line([&](std::size_t i) -> const std::string& { return row[i]; });
}

void TextTable::print_markdown() const {
  std::string names = "|", rule = "|";
  for (const Column& column : columns_) {
    names += std::format(" {} |", column.name);
    rule += column.align == Align::Right ? " ---: |" : " --- |";
  }
  put_line(names + '\n' + rule);
  for (const auto& row : rows_) {
    std::string line = "|";
    for (std::string cell : row) {
      for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2)
        cell.insert(at, "\\");
      line += std::format(" {} |", cell);
    }
    put_line(std::move(line));
  }
}

std::string layer_text(LayerId layer) { return layer == kNoLayer ? "-" : std::to_string(layer.v); }

}  // namespace tt::cli
