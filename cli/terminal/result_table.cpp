#include "cli/terminal/result_table.h"

#include <algorithm>
#include <format>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/common/format_units.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "tracer/text/join.h"

namespace tt::cli {

namespace {

using fields::Field;
using fields::List;
using fields::Record;
using fields::Schema;
using fields::Value;
using Kind = Schema::Kind;

const Value* find(const Record& record, const std::string& name) {
  for (const auto& member : record)
    if (member.name == name) return &member.value;
  return nullptr;
}

std::string number_text(double number, const std::string& unit) {
  if (unit == "bytes") return format_bytes(number);
  if (unit == "ns") return format_duration(number);
  return std::format("{:.6g}", number);
}

// The text of one cell.
std::string cell_of(const Value* value, const Schema& schema) {
  if (value == nullptr || std::holds_alternative<std::nullptr_t>(value->of)) return "-";
  return std::visit(
      [&]<class T>(const T& of) -> std::string {
        if constexpr (std::is_same_v<T, bool>) {
          return of ? "yes" : "no";
        } else if constexpr (std::is_same_v<T, std::string>) {
          return of;
        } else if constexpr (std::is_same_v<T, List>) {
          const Schema& item = schema.item.front();
          if (item.kind == Kind::Record) return std::to_string(of.size());
          return join(of, [&](const Value& each) { return cell_of(&each, item); });
        } else if constexpr (std::is_same_v<T, Record> || std::is_same_v<T, std::nullptr_t>) {
          return "-";
        } else if constexpr (std::is_same_v<T, double>) {
          return number_text(of, schema.unit);
        } else {
          return schema.unit.empty() ? std::to_string(of)
                                     : number_text(static_cast<double>(of), schema.unit);
        }
      },
      value->of);
}

// Columns of a list of rows, and the single values of a result: "disk.read_bytes" is the field
// read_bytes of the field disk.
struct FlatField {
  std::vector<std::string> path;
  const Schema* schema;
  std::string name() const {
    std::string name;
    for (const std::string& part : path) name += (name.empty() ? "" : ".") + part;
    return name;
  }
  const Value* of(const Value& value) const {
    const Value* at = &value;
    for (const std::string& part : path) {
      const auto* const record = std::get_if<Record>(&at->of);
      at = record == nullptr ? nullptr : find(*record, part);
      if (at == nullptr) return nullptr;
    }
    return at;
  }
};

// `value`: names the members of a map that has no fixed ones.
void flatten(const Schema& schema, const Value* value, const std::vector<std::string>& path,
             std::vector<FlatField>& to) {
  const auto below = [&](const std::string& name) {
    std::vector<std::string> longer = path;
    longer.push_back(name);
    return longer;
  };
  const auto member = [&](const std::string& name) -> const Value* {
    const auto* const record = value == nullptr ? nullptr : std::get_if<Record>(&value->of);
    return record == nullptr ? nullptr : find(*record, name);
  };
  if (schema.kind == Kind::Record) {
    for (const Field& field : schema.fields)
      flatten(field.schema, member(field.name), below(field.name), to);
  } else if (schema.kind == Kind::Map) {
    std::vector<std::string> names = schema.words;
    if (const auto* const record = value == nullptr ? nullptr : std::get_if<Record>(&value->of);
        record != nullptr && names.empty()) {
      for (const auto& each : *record) names.push_back(each.name);
    }
    for (const std::string& name : names)
      flatten(schema.item.front(), member(name), below(name), to);
  } else {
    to.push_back({.path = path, .schema = &schema});
  }
}

bool is_table(const Schema& schema) {
  return schema.kind == Kind::List && schema.item.front().kind == Kind::Record;
}

void print_rows(const List& rows, const Schema& row) {
  std::vector<FlatField> columns;
  flatten(row, rows.empty() ? nullptr : &rows.front(), {}, columns);
  // Fields that only some answers have.
  std::erase_if(columns, [&](const FlatField& column) {
    return std::ranges::none_of(rows, [&](const Value& of) { return column.of(of) != nullptr; });
  });
  std::vector<Column> heads;
  for (const FlatField& column : columns) {
    const Kind kind = column.schema->kind;
    const bool is_text = kind == Kind::Text || kind == Kind::Words || kind == Kind::Flag;
    heads.push_back({column.name(), is_text ? Align::Left : Align::Right});
  }
  TextTable table(std::move(heads));
  for (const Value& of : rows) {
    std::vector<std::string> cells;
    for (const FlatField& column : columns) cells.push_back(cell_of(column.of(of), *column.schema));
    table.add(std::move(cells));
  }
  table.print();
}

}  // namespace

void print_result(const Value& value, const Schema& schema) {
  std::vector<FlatField> all;
  flatten(schema, &value, {}, all);
  TextTable single({{"value"}, {""}});
  bool has_single = false;
  for (const FlatField& field : all) {
    if (is_table(*field.schema)) continue;
    single.add({field.name(), cell_of(field.of(value), *field.schema)});
    has_single = true;
  }
  if (has_single) single.print();
  for (const FlatField& field : all) {
    if (!is_table(*field.schema)) continue;
    const Value* const rows = field.of(value);
    if (rows == nullptr || !std::holds_alternative<List>(rows->of)) continue;
    if (has_single) put("\n");
    has_single = true;
    const auto& list = std::get<List>(rows->of);
    print_line("{}: {}", field.name(), counted(list.size(), "row"));
    if (!list.empty()) print_rows(list, field.schema->item.front());
  }
}

}  // namespace tt::cli
