#include "api/exchange/import/log_names.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <format>
#include <set>
#include <span>
#include <utility>

#include "api/exchange/recording/recorded_parts.h"
#include "api/exchange/rows/export_columns.h"
#include "api/exchange/rows/session_metadata.h"
#include "tracer/format/model/step.h"

namespace tt::exchange {
namespace {

// Collects the values of `type` in the outermost object, in order. Json keeps only the last one.
class TypeValues {
 public:
  std::vector<std::string> values;

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t) { return true; }
  bool number_unsigned(std::uint64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool string(std::string& text) {
    if (depth_ == 1 && is_type_) values.push_back(text);
    return true;
  }
  bool binary(Json::binary_t&) { return true; }
  bool start_object(std::size_t) { return open(); }
  bool start_array(std::size_t) { return open(); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (depth_ == 1) is_type_ = name == "type";
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) { return false; }

 private:
  bool open() {
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  std::size_t depth_ = 0;
  bool is_type_ = false;
};

// What other tracers call our fields. The first one that an object has counts.
struct Alias {
  std::string_view theirs, ours;
};
constexpr Alias kAliases[] = {
    {"name", "tensor_name"},    {"dtype", "tensor_type"},  {"memory_bytes", "size_bytes"},
    {"layer", "layer_id"},      {"expert", "expert_id"},   {"rank", "expert_rank"},
    {"score", "routing_score"}, {"token", "token_id"},     {"op_type", "operation_type"},
    {"offset", "file_offset"},  {"address", "tensor_ptr"}, {"source", "memory_source"}};
constexpr std::pair<std::string_view, double> kUnits[] = {{"_us", 1e3}, {"_ms", 1e6}, {"_s", 1e9}};

void rename(Json& fields, std::string_view theirs, std::string_view ours) {
  const auto found = fields.find(theirs);
  if (found == fields.end() || fields.contains(ours)) return;
  Json value = std::move(*found);
  fields.erase(found);
  fields[std::string(ours)] = std::move(value);
}

// "duration_ms" and "timestamp_us" in ns.
void convert_times(Json& fields) {
  for (const std::string name : {"timestamp", "duration"}) {
    for (const auto& [unit, ns] : kUnits) {
      const auto found = fields.find(name + std::string(unit));
      if (found == fields.end() || !found->is_number()) continue;
      const double value = found->get<double>() * ns;
      fields.erase(found);
      if (!fields.contains(name + "_ns") && std::abs(value) < 9e18)
        fields[name + "_ns"] = static_cast<std::int64_t>(std::llround(value));
    }
  }
}

// A text in `tensor` or `op` is a name; ours are numbers.
void name_texts(Json& fields) {
  for (const auto& [field, name] :
       {std::pair{"tensor", "tensor_name"}, std::pair{"op", "operation_type"}}) {
    const auto found = fields.find(field);
    if (found != fields.end() && found->is_string()) rename(fields, field, name);
  }
}

// Fields that are imported, or that follow from imported ones.
const std::set<std::string, std::less<>>& known_fields(std::string_view event) {
  static const std::set<std::string, std::less<>> kRow = [] {
    std::set<std::string, std::less<>> names = {"duration_ns", "phase"};
    for (const AccessColumn& column : access_columns()) names.insert(column.name);
    return names;
  }();
  static const std::set<std::string, std::less<>> kStep = [] {
    std::set<std::string, std::less<>> names = {
        "step",     "timestamp_ns", "duration_ns", "phase",    "timing",     "first_op_ns",
        "token_id", "token_count",  "threads",     "template", "ops",        "ops_run",
        "tokens",   "dropped",      "aborted",     "accesses", "bytes_read", "bytes_written"};
    for (const StepCondition& of : kStepConditions) names.insert(of.name);
    return names;
  }();
  static const std::set<std::string, std::less<>> kSession = [] {
    std::set<std::string, std::less<>> names = {
        "log_version", "session", "session_id", "losses",   "steps",      "range",
        "state",       "error",   "tokens",     "accesses", "bytes_read", "bytes_written"};
    for (const auto& [name, value] : to_json(SessionInfo{}).items()) names.insert(name);
    return names;
  }();
  static const std::set<std::string, std::less<>> kLayer = {
      "step", "layer_id", "timestamp_ns", "duration_ns",
      "ops",  "accesses", "bytes_read",   "bytes_written"};
  if (event == "tensor_log") return kRow;
  if (event.starts_with("step_")) return kStep;
  if (event == "layer_step") return kLayer;
  return kSession;
}

bool is_known_event(std::string_view event) {
  if (RecordedParts::is_part(event)) return true;
  constexpr std::string_view kEvents[] = {"session_start", "step_begin", "layer_step",
                                          "tensor_log",    "step_end",   "session_end"};
  return std::ranges::contains(kEvents, event);
}

// In our logs, these repeat other fields for parsers of other logs.
bool repeats(const Json& fields, std::string_view name) {
  if (name == "event" || name == "type") return true;
  return fields.contains("extent") && (name == "dtype" || name == "memory_bytes");
}

}  // namespace

LogEntry log_entry(const Json& parsed, std::string_view line) {
  LogEntry entry{.event = text_in(parsed, "event"), .fields = parsed, .unknown = {}};
  Json& fields = entry.fields;
  TypeValues types;
  if (parsed.contains("type")) Json::sax_parse(line, &types);
  std::span<const std::string> rest = types.values;
  if (entry.event.empty() && !rest.empty()) {
    entry.event = rest.front();
    rest = rest.subspan(1);
  }
  constexpr std::string_view kLayerEvents[] = {"layer_begin", "layer_start", "layer_end", "layer"};
  if (std::ranges::contains(kLayerEvents, entry.event)) entry.event = "layer_step";
  if (!is_known_event(entry.event)) {
    entry.unknown.push_back(entry.event.empty() ? "lines without event"
                                                : std::format("event {}", entry.event));
    return entry;
  }
  if (RecordedParts::is_part(entry.event)) return entry;
  const bool ours = fields.contains("extent");
  if (entry.event == "tensor_log" || entry.event == "layer_step") {
    if (!rest.empty() && rest.back() != entry.event && !fields.contains("tensor_type"))
      fields["tensor_type"] = rest.back();
    name_texts(fields);
    for (const auto& [theirs, name] : kAliases)
      if (!ours) rename(fields, theirs, name);
  }
  if (!entry.event.starts_with("session_")) convert_times(fields);
  const auto& known = known_fields(entry.event);
  for (const auto& [name, value] : fields.items())
    if (!known.contains(name) && !repeats(fields, name))
      entry.unknown.push_back(entry.event + "." + name);
  return entry;
}

}  // namespace tt::exchange
