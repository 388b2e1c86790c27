// The fields of a result, declared once: name, meaning, unit and how to get the value. JSON, the
// schemas of api/openapi.yaml, the tables of `tt analyze`, the types of the page and
// docs/analyses.md come from this declaration. Rows of columns that are read by the million are
// declared in analysis/columns instead.
//
// A result declares a function beside it, which is found by its argument:
//
//   Fields<ReadOrder> fields_of(const ReadOrder*) {
//     return Fields<ReadOrder>("ReadOrder")
//         .add("reads", "number of reads of the model files", &ReadOrder::reads)
//         .add("bytes", "", &ReadOrder::bytes);
//   }
//
// The type of a field is that of its getter: numbers, bool, texts, Ns, Bytes, ids, enumerations
// with words_of(), optionals of them (can be null), structs with fields_of(), and lists and maps of
// all of these.
#pragma once

#include <concepts>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/columns/column.h"
#include "analysis/columns/enumerations.h"
#include "analysis/columns/values.h"
#include "analysis/fields/schema.h"
#include "analysis/fields/value.h"
#include "tracer/format/model/ids.h"

namespace tt {

// The words of an enumeration; each to_text() of the value.
consteval columns::Enumeration words_of(Phase) { return columns::kPhases; }
consteval columns::Enumeration words_of(Verdict) { return columns::kVerdicts; }
consteval columns::Enumeration words_of(tt::Kernel) { return columns::kKernels; }
consteval columns::Enumeration words_of(TensorKind) { return columns::kTensorKinds; }
consteval columns::Enumeration words_of(Component) { return columns::kComponents; }
consteval columns::Enumeration words_of(Source) { return columns::kSources; }

namespace fields {

template <class T>
concept Declared = requires(const T* of) { fields_of(of); };
// The fields of a type, built once.
template <Declared T>
const auto& declared() {
  static const auto fields = fields_of(static_cast<const T*>(nullptr));
  return fields;
}
template <class T>
concept HasWords = std::is_enum_v<T> && requires { words_of(T{}); };
template <class T>
inline constexpr bool is_strong = false;
template <class Tag, class Rep>
inline constexpr bool is_strong<Strong<Tag, Rep>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class Key, class T>
inline constexpr bool is_map<std::map<Key, T>> = true;

inline std::vector<std::string> list_of(const columns::Enumeration& words) {
  std::vector<std::string> list;
  for (int i = 0; i < words.count; ++i) list.emplace_back(words.word(i));
  return list;
}
inline Schema words_schema(const columns::Enumeration& words) {
  return {.kind = Schema::Kind::Words, .name = words.schema, .words = list_of(words)};
}

template <class T>
Value value_of(const T& of) {
  if constexpr (Declared<T>) {
    return declared<T>().value(of);
  } else if constexpr (columns::is_optional<T>) {
    return of ? value_of(*of) : Value{};
  } else if constexpr (std::same_as<T, LayerId>) {
    return value_of(columns::layer_or_null(of));
  } else if constexpr (is_strong<T>) {
    return value_of(of.v);
  } else if constexpr (std::is_enum_v<T>) {
    return Value{std::string(to_text(of))};
  } else if constexpr (std::same_as<T, bool>) {
    return Value{of};
  } else if constexpr (std::floating_point<T>) {
    return Value{static_cast<double>(of)};
  } else if constexpr (std::unsigned_integral<T>) {
    return Value{std::uint64_t{of}};
  } else if constexpr (std::signed_integral<T>) {
    return Value{std::int64_t{of}};
  } else if constexpr (std::convertible_to<T, std::string_view>) {
    return Value{std::string(std::string_view(of))};
  } else if constexpr (is_map<T>) {
    Record record;
    for (const auto& [key, value] : of) {
      if constexpr (std::is_enum_v<typename T::key_type>) {
        record.push_back({.name = to_text(key), .value = value_of(value)});
      } else {
        record.push_back({.name = key, .value = value_of(value)});
      }
    }
    return Value{std::move(record)};
  } else {
    static_assert(std::ranges::range<T>, "no type of a field");
    List list;
    for (const auto& item : of) list.push_back(value_of(item));
    return Value{std::move(list)};
  }
}

template <class T>
Schema schema_of() {
  using enum Schema::Kind;
  if constexpr (Declared<T>) {
    return declared<T>().schema();
  } else if constexpr (columns::is_optional<T>) {
    Schema schema = schema_of<typename T::value_type>();
    schema.nullable = true;
    return schema;
  } else if constexpr (std::same_as<T, LayerId>) {
    return {.kind = Integer, .nullable = true, .name = "Layer"};
  } else if constexpr (std::same_as<T, Ns>) {
    return {.kind = Integer, .unit = "ns"};
  } else if constexpr (std::same_as<T, Bytes>) {
    return {.kind = Count, .unit = "bytes"};
  } else if constexpr (is_strong<T>) {
    return schema_of<decltype(T{}.v)>();
  } else if constexpr (HasWords<T>) {
    return words_schema(words_of(T{}));
  } else if constexpr (std::same_as<T, bool>) {
    return {.kind = Flag};
  } else if constexpr (std::floating_point<T>) {
    return {.kind = Real};
  } else if constexpr (std::integral<T>) {
    return {.kind = std::unsigned_integral<T> ? Count : Integer};
  } else if constexpr (std::is_enum_v<T> || std::convertible_to<T, std::string_view>) {
    return {.kind = Text};
  } else if constexpr (is_map<T>) {
    Schema schema{.kind = Map, .item = {schema_of<typename T::mapped_type>()}};
    return schema;
  } else {
    return {.kind = List, .item = {schema_of<std::ranges::range_value_t<T>>()}};
  }
}

// What the type of a getter does not say.
struct Notes {
  const char* unit = "";
  const char* null = "";                        // what a null means
  const columns::Enumeration* words = nullptr;  // of a text
  std::vector<std::string> names{};             // of a map that always has these
};

template <class T>
class Fields {
 public:
  // `schema`: its name in api/openapi.yaml; empty: it is written where it is used.
  explicit Fields(const char* schema = "") : name_(schema) {}

  // A field with the value `get(result)`. `get` is a function or a pointer to a member.
  template <class Get>
  Fields&& add(const char* name, std::string meaning, Get get, const Notes& notes = {}) && {
    using Found = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>;
    if (*notes.null != '\0')
      meaning += std::string(meaning.empty() ? "" : "; ") + "null: " + notes.null;
    bindings_.push_back(
        {.describe =
             [=] {
               Schema schema =
                   notes.words != nullptr ? words_schema(*notes.words) : schema_of<Found>();
               if (columns::is_optional<Found>) schema.nullable = true;
               if (*notes.unit != '\0') schema.unit = notes.unit;
               if (schema.kind == Schema::Kind::Map) schema.words = notes.names;
               return std::vector{Field{.name = name, .meaning = meaning, .schema = schema}};
             },
         .append =
             [=](const T& of, Record& to) {
               to.push_back({.name = name, .value = value_of(std::invoke(get, of))});
             }});
    return std::move(*this);
  }

  // A field that a record without a value does not have. `get` returns an optional.
  template <class Get>
  Fields&& add_optional(const char* name, std::string meaning, Get get) && {
    using Found = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>::value_type;
    bindings_.push_back({.describe =
                             [=] {
                               return std::vector{Field{.name = name,
                                                        .meaning = meaning,
                                                        .schema = schema_of<Found>(),
                                                        .optional = true}};
                             },
                         .append =
                             [=](const T& of, Record& to) {
                               if (const auto& found = std::invoke(get, of))
                                 to.push_back({.name = name, .value = value_of(*found)});
                             }});
    return std::move(*this);
  }

  // The fields of a part of the result.
  template <class Get>
  Fields&& include(Get get) && {
    using Part = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>;
    bindings_.push_back(
        {.describe = [] { return schema_of<Part>().fields; },
         .append = [=](const T& of,
                       Record& to) { declared<Part>().append(std::invoke(get, of), to); }});
    return std::move(*this);
  }

  Value value(const T& of) const {
    Record record;
    append(of, record);
    return Value{std::move(record)};
  }
  void append(const T& of, Record& to) const {
    for (const Binding& binding : bindings_) binding.append(of, to);
  }
  Schema schema() const {
    Schema schema{.kind = Schema::Kind::Record, .name = name_};
    for (const Binding& binding : bindings_)
      std::ranges::move(binding.describe(), std::back_inserter(schema.fields));
    return schema;
  }

 private:
  struct Binding {
    std::function<std::vector<Field>()> describe;
    std::function<void(const T&, Record&)> append;
  };
  const char* name_;
  std::vector<Binding> bindings_;
};

}  // namespace fields

using fields::Fields;

// Meanings of fields that several results have.
inline constexpr const char* kLeftOutSteps =
    "number of steps that clean=true leaves out of all values; 0 without it";
inline constexpr const char* kDamagedSteps = "number of damaged steps, which no sum includes";
inline constexpr const char* kTotalRows = "number of rows in the whole list";

// A part of a model file, as in the tables of analysis/columns.
Fields<FileRange> fields_of(const FileRange*);

}  // namespace tt
