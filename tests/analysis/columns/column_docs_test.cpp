// docs/sql.md, docs/exports.md and api/openapi.yaml contain text that is generated from
// analysis/columns. UPDATE_DOCS=1 rewrites it.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <format>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/columns/access_columns.h"
#include "analysis/columns/op_columns.h"
#include "analysis/columns/step_columns.h"
#include "analysis/columns/tensor_columns.h"
#include "tests/support/generated_text.h"

namespace tt::test {
namespace {

using columns::ColumnInfo;
using columns::Enumeration;
using columns::Type;

constexpr auto kAccess = columns::infos_of(columns::access_columns());
constexpr auto kOp = columns::infos_of(columns::op_columns());
constexpr auto kStep = columns::infos_of(columns::step_columns());
constexpr auto kSource = columns::infos_of(columns::source_columns());
constexpr auto kTensor = columns::infos_of(columns::tensor_columns());

std::string joined(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

std::vector<std::string> words_of(const Enumeration& of) {
  std::vector<std::string> words;
  for (int i = 0; i < of.count; ++i) words.emplace_back(of.word(i));
  return words;
}

void append_sentence(std::string& to, const std::string& part) {
  to += (to.empty() || part.empty() ? "" : "; ") + part;
}

// The cell of a Markdown table. `null` is how the format writes a null.
std::string description(const ColumnInfo& info, const char* null) {
  std::string text = info.meaning;
  if (info.words != nullptr) {
    std::vector<std::string> words = words_of(*info.words);
    for (std::string& word : words) word = "`" + word + "`";
    text += (text.empty() ? "" : ": ") + joined(words);
  }
  if (info.nullable()) append_sentence(text, std::format("{}: {}", null, info.null));
  return text;
}

std::string cell(const std::string& text) { return text.empty() ? " " : " " + text + " "; }

std::string type_and_unit(const char* type, const ColumnInfo& info) {
  const std::string unit = info.type == Type::Flag ? "flag" : info.unit;
  return unit.empty() ? type : std::format("{}, {}", type, unit);
}

const char* sql_type(Type type) {
  return type == Type::Text ? "TEXT" : type == Type::Float ? "REAL" : "INTEGER";
}

std::string sql_table(std::span<const ColumnInfo> infos) {
  std::string text = "| column | type, unit | |\n|---|---|---|\n", hidden;
  for (const ColumnInfo& info : infos) {
    const std::string type = type_and_unit(sql_type(info.type), info);
    std::string meaning = description(info, "NULL");
    if (info.per_session) append_sentence(meaning, "not in `SELECT *`");
    (info.per_session ? hidden : text) +=
        std::format("| `{}` | {} |{}|\n", info.name, type, cell(meaning));
    if (info.former_name != nullptr) {
      hidden += std::format("| `{}` | {} | former name of `{}`; not in `SELECT *` |\n",
                            info.former_name, type, info.name);
    }
  }
  return text + hidden;
}

std::string export_table(std::span<const ColumnInfo> infos) {
  static constexpr const char* kTypes[] = {"text", "bool", "i32", "u32", "i64", "u64", "f32"};
  std::string text = "| column | type, unit | |\n|---|---|---|\n";
  for (const ColumnInfo& info : infos) {
    if (info.of_op) continue;
    const char* type = kTypes[static_cast<int>(info.type)];
    text += std::format("| `{}` | {} |{}|\n", info.name,
                        *info.unit == '\0' ? type : std::format("{}, {}", type, info.unit),
                        cell(description(info, "null")));
  }
  return text;
}

std::string property(const ColumnInfo& info) {
  std::string schema;
  if (info.words != nullptr) {
    schema = std::format("$ref: '#/components/schemas/{}'", info.words->schema);
    if (info.nullable()) schema = std::format("anyOf: [{{ {} }}, {{ type: 'null' }}]", schema);
  } else {
    const bool is_number = info.type != Type::Text && info.type != Type::Flag;
    const std::string type = info.type == Type::Text    ? "string"
                             : info.type == Type::Flag  ? "boolean"
                             : info.type == Type::Float ? "number"
                                                        : "integer";
    schema = "type: " + (info.nullable() ? std::format("[{}, 'null']", type) : type);
    if (is_number && (info.type == Type::UInt32 || info.type == Type::UInt64))
      schema += ", minimum: 0";
  }
  std::string meaning = info.meaning;
  if (info.nullable()) append_sentence(meaning, std::string("null: ") + info.null);
  if (!meaning.empty()) {
    meaning[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(meaning[0])));
    schema += ", description: " + yaml_text(meaning);
  }
  return std::format("        {}: {{ {} }}\n", info.name, schema);
}

// An object schema without its name. `more`: fields that follow in the file and are no columns.
std::string schema_of(std::span<const ColumnInfo> infos, const std::vector<std::string>& more) {
  std::vector<std::string> names;
  std::string properties;
  for (const ColumnInfo& info : infos) {
    if (!info.in_rest()) continue;
    names.emplace_back(info.name);
    properties += property(info);
  }
  names.insert(names.end(), more.begin(), more.end());
  return std::format("      type: object\n      required: [{}]\n      properties:\n{}",
                     joined(names), properties);
}

std::string enumerations() {
  std::string text;
  for (const Enumeration* of :
       {&columns::kPhases, &columns::kTimings, &columns::kVerdicts, &columns::kKernels,
        &columns::kComponents, &columns::kCategories, &columns::kTensorKinds, &columns::kSources,
        &columns::kExtents, &columns::kQkvTypes})
    text += std::format("    {}: {{ enum: [{}] }}\n", of->schema, joined(words_of(*of)));
  return text;
}

void expect_columns(const std::string& file, const std::string& name, const std::string& text) {
  expect_generated(file, "analysis/columns: " + name, text);
}

TEST(ColumnDocs, SqlTablesMatchTheDefinitions) {
  expect_columns("docs/sql.md", "access", sql_table(kAccess));
  expect_columns("docs/sql.md", "op", sql_table(kOp));
  expect_columns("docs/sql.md", "step", sql_table(kStep));
  expect_columns("docs/sql.md", "tensor", sql_table(kTensor));
}

TEST(ColumnDocs, ExportTableMatchesTheDefinition) {
  expect_columns("docs/exports.md", "access", export_table(kAccess));
}

TEST(ColumnDocs, OpenapiSchemasMatchTheDefinitions) {
  expect_columns("api/openapi.yaml", "words", enumerations());
  expect_columns("api/openapi.yaml", "Access", schema_of(kAccess, {}));
  expect_columns("api/openapi.yaml", "Op", schema_of(kOp, {"sources"}));
  expect_columns("api/openapi.yaml", "OpSource", schema_of(kSource, {}));
  expect_columns("api/openapi.yaml", "Step", schema_of(kStep, {"layers"}));
  expect_columns("api/openapi.yaml", "Tensor", schema_of(kTensor, {}));
}

// One name, one meaning: a column of several tables has one type in all of them.
TEST(ColumnDocs, SameNameHasTheSameTypeInAllTables) {
  std::vector<ColumnInfo> known;
  for (const std::span<const ColumnInfo> table :
       {std::span<const ColumnInfo>(kAccess), {kOp}, {kStep}, {kTensor}}) {
    for (const ColumnInfo& info : table) {
      const auto same =
          std::ranges::find(known, std::string_view(info.name),
                            [](const ColumnInfo& of) { return std::string_view(of.name); });
      if (same == known.end()) {
        known.push_back(info);
        continue;
      }
      SCOPED_TRACE(info.name);
      EXPECT_EQ(info.type, same->type);
      EXPECT_STREQ(info.unit, same->unit);
      EXPECT_EQ(info.words, same->words);
    }
  }
}

}  // namespace
}  // namespace tt::test
