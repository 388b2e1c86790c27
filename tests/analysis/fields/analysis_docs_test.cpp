// docs/analyses.md and the paths and schemas of the analyses in api/openapi.yaml are generated from
// analysis/analyses.h. UPDATE_DOCS=1 rewrites them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <format>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/aggregate/axis_words.h"
#include "analysis/analyses.h"
#include "analysis/parameters/filter_parameters.h"
#include "analysis/report/set_comparison.h"
#include "analysis/report/validation.h"
#include "analysis/sets/generality.h"
#include "analysis/sets/set_trend.h"
#include "tests/support/generated_text.h"
#include "tracer/text/join.h"

namespace tt::test {
namespace {

using fields::Field;
using fields::Schema;
using Kind = Schema::Kind;

std::string capitalized(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// "expert-pinning": expertPinning.
std::string operation_of(std::string_view name) {
  std::string id;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '-') {
      ++i;
      id += static_cast<char>(std::toupper(static_cast<unsigned char>(name[i])));
    } else {
      id += name[i];
    }
  }
  return id;
}

// --- schemas of answers

std::string ref_to(const std::string& schema) {
  return std::format("$ref: '#/components/schemas/{}'", schema);
}

// A schema on one line, without braces; empty: it needs several lines.
std::string short_schema(const Schema& schema) {
  const std::string null = schema.nullable ? ", 'null'" : "";
  const auto type = [&](const char* name) {
    return null.empty() ? std::format("type: {}", name) : std::format("type: [{}{}]", name, null);
  };
  if (!schema.name.empty() && schema.kind != Kind::List) {
    // The schema Layer allows null.
    if (!schema.nullable || schema.kind == Kind::Integer) return ref_to(schema.name);
    return std::format("oneOf: [{{ {} }}, {{ type: 'null' }}]", ref_to(schema.name));
  }
  switch (schema.kind) {
    case Kind::Flag:
      return type("boolean");
    case Kind::Integer:
      return type("integer");
    case Kind::Count:
      return type("integer") + ", minimum: 0";
    case Kind::Real:
      return type("number");
    case Kind::Text:
      return type("string");
    case Kind::Words:
      return schema.nullable
                 ? std::format("oneOf: [{{ enum: [{}] }}, {{ type: 'null' }}]", join(schema.words))
                 : std::format("enum: [{}]", join(schema.words));
    case Kind::List: {
      const std::string item = short_schema(schema.item.front());
      return item.empty() ? "" : std::format("{}, items: {{ {} }}", type("array"), item);
    }
    case Kind::Map: {
      const std::string item = short_schema(schema.item.front());
      if (item.empty()) return "";
      if (schema.words.empty())
        return std::format("{}, additionalProperties: {{ {} }}", type("object"), item);
      const auto quoted = [](const std::string& word) { return "'" + word + "'"; };
      return std::format("type: object, required: [{}], properties: {{ {} }}",
                         join(schema.words, quoted),
                         join(schema.words, [&](const std::string& word) {
                           return std::format("{}: {{ {} }}", quoted(word), item);
                         }));
    }
    case Kind::Record:
      return "";
  }
  return "";
}

std::string description_of(const Field& field) {
  return field.meaning.empty() ? "" : yaml_text(capitalized(field.meaning));
}

// The lines of a schema, below `indent`.
std::string long_schema(const Schema& schema, const std::string& indent,
                        const std::string& description, bool as_component = false);

std::string property(const Field& field, const std::string& indent) {
  const std::string in_short = short_schema(field.schema), description = description_of(field);
  if (!in_short.empty()) {
    return std::format("{}{}: {{ {}{} }}\n", indent, field.name, in_short,
                       description.empty() ? "" : ", description: " + description);
  }
  return std::format("{}{}:\n{}", indent, field.name,
                     long_schema(field.schema, indent + "  ", description));
}

std::string long_schema(const Schema& schema, const std::string& indent,
                        const std::string& description, bool as_component) {
  std::string text = description.empty() ? "" : indent + "description: " + description + "\n";
  if (!as_component) {
    if (const std::string in_short = short_schema(schema); !in_short.empty())
      return text + indent + in_short + "\n";
    if (schema.nullable) {
      Schema inner = schema;
      inner.nullable = false;
      return text + indent + "oneOf:\n" + indent + "  - type: 'null'\n" + indent + "  -\n" +
             long_schema(inner, indent + "    ", "");
    }
  }
  if (schema.kind == Kind::List)
    return text + indent + "type: array\n" + indent + "items:\n" +
           long_schema(schema.item.front(), indent + "  ", "");
  if (schema.kind == Kind::Map)
    return text + indent + "type: object\n" + indent + "additionalProperties:\n" +
           long_schema(schema.item.front(), indent + "  ", "");
  std::vector<std::string> required;
  std::string properties;
  for (const Field& field : schema.fields) {
    if (!field.optional) required.push_back(field.name);
    properties += property(field, indent + "  ");
  }
  return text + indent + "type: object\n" + indent + "required: [" + join(required) + "]\n" +
         indent + "properties:\n" + properties;
}

// The records with a name of their own, and those in them.
void collect(const Schema& schema, std::map<std::string, Schema>& to) {
  for (const Field& field : schema.fields) collect(field.schema, to);
  for (const Schema& item : schema.item) collect(item, to);
  if (schema.kind == Kind::Record && !schema.name.empty()) to.emplace(schema.name, schema);
}

std::string words_line(const columns::Enumeration& of, const char* description,
                       const std::vector<std::string>& words) {
  return std::format("    {}: {{ type: string, description: {}, enum: [{}] }}\n", of.schema,
                     yaml_text(description), join(words));
}

std::string schemas() {
  std::map<std::string, Schema> all;
  for (const Analysis& row : analyses()) collect(row.schema, all);
  // Of answers that are not rows of the table, or parts of one.
  collect(fields::schema_of<Validation>(), all);
  collect(fields::schema_of<SetComparison>(), all);
  collect(fields::schema_of<Generality>(), all);
  collect(fields::schema_of<SetTrend>(), all);
  std::vector<std::string> places = fields::list_of(kAxisWords);
  places.erase(places.begin(), places.begin() + 3);  // time, step, token
  constexpr columns::Enumeration kPlaces{.schema = "PlaceAxis", .count = 0, .word = nullptr};
  std::string text =
      words_line(kAxisWords,
                 "Described in docs/heat.md. op_kind: the ops of one operation_type; op: the ops "
                 "whose outputs have the same name; kernel: the ops that the same implementation "
                 "ran, unknown if that was not recorded; head: the attention heads of each layer; "
                 "type: the type of the tensor; file, buffer: byte offsets; all: a single row",
                 fields::list_of(kAxisWords)) +
      words_line(kPlaces, "Every axis except time, step and token", places) +
      words_line(kRowAxes, "Every axis except bytes and time", fields::list_of(kRowAxes)) +
      words_line(words_of(Value{}),
                 "bytes: bytes read and written. accesses: reads and writes. executions: executed "
                 "ops. time: duration of the ops in ns. faults: major page faults, which waited "
                 "for the disk",
                 fields::list_of(words_of(Value{})));
  for (const auto& [name, schema] : all)
    text += std::format("    {}:\n{}", name, long_schema(schema, "      ", "", true));
  return text;
}

// --- parameters and paths

std::string schema_of(const ParameterInfo& info) {
  const std::string standard = info.default_value.empty() ? "" : ", default: " + info.default_value;
  switch (info.kind) {
    case ParameterInfo::Kind::Number:
      return std::format("type: integer, minimum: {}, maximum: {}{}", info.min, info.max, standard);
    case ParameterInfo::Kind::Percent:
      return std::format("type: number, minimum: 0, maximum: 100{}", standard);
    case ParameterInfo::Kind::Word:
      return info.schema.empty() ? std::format("enum: [{}]{}", join(info.words), standard)
                                 : ref_to(info.schema) + standard;
    case ParameterInfo::Kind::Flag:
      return "type: boolean, default: false";
    case ParameterInfo::Kind::Text:
    case ParameterInfo::Kind::Numbers:
    case ParameterInfo::Kind::Layers:
      return std::format("type: string, maxLength: {}", info.max_length);
    case ParameterInfo::Kind::Layer:
      return "oneOf: [{ type: integer, minimum: 0, maximum: 2147483647 }, { enum: [outside, none] "
             "}]";
  }
  return "";
}

std::string parameter(const ParameterInfo& info) {
  const std::string description =
      info.meaning.empty() ? "" : ", description: " + yaml_text(capitalized(info.meaning));
  return std::format("{{ name: {}, in: {}{}, schema: {{ {} }} }}", info.name,
                     info.in_path ? "path, required: true" : "query", description, schema_of(info));
}

std::string filter_components() {
  std::string text;
  for (const ParameterInfo& info : filter_parameters().infos())
    text += std::format("    filter_{}: {}\n", info.name, parameter(info));
  return text;
}

bool is_filter(const ParameterInfo& info) {
  static const auto filters = filter_parameters().infos();
  return std::ranges::any_of(filters, [&](const ParameterInfo& of) {
    return of.name == info.name && of.meaning == info.meaning;
  });
}

std::string paths() {
  std::string text;
  for (const Analysis& row : analyses()) {
    text += std::format("  /api/v1/sessions/{{id}}/{}:\n    parameters:\n", row.path);
    text += "      - $ref: '#/components/parameters/id'\n";
    for (const ParameterInfo& info : row.parameters) {
      text += is_filter(info)
                  ? std::format("      - $ref: '#/components/parameters/filter_{}'\n", info.name)
                  : std::format("      - {}\n", parameter(info));
    }
    text += std::format(
        "    get:\n      operationId: {}\n      tags: [analysis]\n      summary: {}\n"
        "      responses:\n        '200':\n          description: {}\n          content:\n"
        "            application/json:\n              schema: {{ {} }}\n",
        operation_of(row.name), yaml_text(row.summary), yaml_text(row.answer),
        ref_to(row.schema.name));
    for (const char* status : {"400", "401", "404", "500"})
      text += std::format("        '{}': {{ $ref: '#/components/responses/Problem' }}\n", status);
    text += "        '503': { $ref: '#/components/responses/Busy' }\n";
  }
  return text;
}

TEST(AnalysisDocs, OpenapiMatchesTheTable) {
  expect_generated("api/openapi.yaml", "analysis/analyses.h: paths", paths());
  expect_generated("api/openapi.yaml", "analysis/analyses.h: filter", filter_components());
  expect_generated("api/openapi.yaml", "analysis/analyses.h: schemas", schemas());
}

// --- docs/analyses.md

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text.empty() ? " " : " " + text + " ";
}

// One line per field; the fields of a list of rows and of a record are below it.
void add_fields(const Schema& schema, const std::string& before, std::string& to) {
  const Schema* of = &schema;
  while (of->kind == Kind::List || of->kind == Kind::Map) of = &of->item.front();
  for (const Field& field : of->fields) {
    const std::string name = before + field.name;
    const Schema* inner = &field.schema;
    while (inner->kind == Kind::List || inner->kind == Kind::Map) inner = &inner->item.front();
    std::string meaning = field.meaning;
    if (inner->kind == Kind::Words) meaning += (meaning.empty() ? "" : ": ") + join(inner->words);
    to += std::format("| `{}` |{}|{}|\n", name, cell(inner->unit), cell(meaning));
    add_fields(field.schema, name + ".", to);
  }
}

std::string document() {
  std::string text;
  for (const Analysis& row : analyses()) {
    text += std::format("## {}\n\n{}. `GET /api/v1/sessions/{{id}}/{}`\n\n", row.name, row.summary,
                        row.path);
    std::string own;
    bool has_filters = false;
    for (const ParameterInfo& info : row.parameters) {
      has_filters = has_filters || is_filter(info);
      if (is_filter(info)) continue;
      std::string meaning = info.meaning;
      if (!info.words.empty()) meaning += (meaning.empty() ? "" : ": ") + join(info.words);
      own += std::format("| `{}` |{}|{}|\n", info.name, cell(info.default_value), cell(meaning));
    }
    if (!own.empty()) text += "| parameter | default | |\n|---|---|---|\n" + own + "\n";
    if (has_filters) text += "Also the [parameters of a filter](#parameters-of-a-filter).\n\n";
    text += "| field | unit | |\n|---|---|---|\n";
    add_fields(row.schema, "", text);
    text += "\n";
  }
  text += "## Parameters of a filter\n\n| parameter | |\n|---|---|\n";
  for (const ParameterInfo& info : filter_parameters().infos()) {
    text += std::format("| `{}` |{}|\n", info.name,
                        cell(info.meaning + (info.words.empty() ? "" : ": " + join(info.words))));
  }
  return text;
}

TEST(AnalysisDocs, DocumentMatchesTheTable) {
  expect_generated("docs/analyses.md", "analysis/analyses.h", document());
}

// Names are unique, and each row, parameter and field says what it is.
TEST(AnalysisDocs, EveryRowIsComplete) {
  std::set<std::string> names, paths;
  for (const Analysis& row : analyses()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_TRUE(paths.insert(row.path).second);
    EXPECT_NE(std::string(row.summary), "");
    EXPECT_EQ(row.schema.kind, Kind::Record);
    EXPECT_NE(row.schema.name, "");
    std::set<std::string> parameters;
    for (const ParameterInfo& info : row.parameters) {
      EXPECT_TRUE(parameters.insert(info.name).second) << info.name;
      EXPECT_NE(info.meaning, "") << info.name;
      EXPECT_EQ(std::string(row.path).contains("{" + info.name + "}"), info.in_path) << info.name;
    }
  }
}

}  // namespace
}  // namespace tt::test
