#include "api/json/analysis/bench_json.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <iterator>
#include <optional>
#include <utility>

#include "api/json/bounded_json.h"

namespace tt {

namespace {

std::int64_t whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }

Json whole_numbers(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(whole(value));
  return json;
}

Json change_json(const SpeedChange& change) {
  return {{"ratio", change.ratio},
          {"low", optional_json(change.low)},
          {"high", optional_json(change.high)},
          {"noise", change.noise},
          {"verdict", to_text(change.verdict)}};
}

// As samples_ns(): the times of the two contexts in turns.
std::vector<double> in_turns(const std::vector<double>& first, const std::vector<double>& second) {
  SpeedTest test;
  test.first_ns = first;
  test.second_ns = second;
  return test.samples_ns();
}

bool is_list(const Json& value) { return value.is_array() || value.is_object(); }

std::string quoted(std::string text, char quote) {
  for (std::size_t at = 0; (at = text.find(quote, at)) != std::string::npos; at += 2)
    text.insert(at, 1, quote);
  return quote + text + quote;
}

std::string plain_text(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string sql_value(const Json& value) {
  if (value.is_null()) return "NULL";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  return value.is_string() ? quoted(value.get<std::string>(), '\'') : value.dump();
}

const char* sql_type(const Json& value) {
  if (value.is_number_float()) return "REAL";
  return value.is_number() || value.is_boolean() ? "INTEGER" : "TEXT";
}

std::vector<std::string> column_names(const Json& row) {
  std::vector<std::string> names;
  for (const auto& [name, value] : row.items())
    if (!is_list(value)) names.push_back(name);
  return names;
}

// Reads a list of positive times.
std::optional<std::vector<double>> times_of(const Json& row, const char* name) {
  const auto field = row.find(name);
  if (field == row.end() || !field->is_array()) return std::nullopt;
  std::vector<double> times;
  for (const Json& value : *field) {
    if (!value.is_number()) return std::nullopt;
    const auto time = value.get<double>();
    if (!(time >= 0) || !std::isfinite(time)) return std::nullopt;
    times.push_back(time);
  }
  return times;
}

std::optional<std::uint32_t> count_of(const Json& row, const char* name) {
  const auto field = row.find(name);
  if (field == row.end() || !field->is_number_unsigned()) return std::nullopt;
  const auto value = field->get<std::uint64_t>();
  if (!std::in_range<std::uint32_t>(value)) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

bool are_positive(const std::vector<double>& times) {
  return std::ranges::all_of(times, [](double time) { return time > 0; });
}

std::optional<SpeedTest> test_of(const Json& row) {
  if (!row.is_object()) return std::nullopt;
  const auto n_prompt = count_of(row, "n_prompt"), n_gen = count_of(row, "n_gen");
  const auto samples = times_of(row, "samples_ns");
  if (!n_prompt || !n_gen || !samples || samples->empty() || !are_positive(*samples))
    return std::nullopt;
  SpeedTest test;
  test.n_prompt = *n_prompt;
  test.n_gen = *n_gen;
  if (!row.contains("rounds")) {  // of llama-bench: each sample is a round
    for (const double time : *samples) {
      test.first_ns.insert(test.first_ns.end(), 2, time);
      test.second_ns.insert(test.second_ns.end(), 2, time);
    }
    return test;
  }
  for (std::size_t i = 0; i < samples->size(); ++i)
    (i % 2 == 0 ? test.first_ns : test.second_ns).push_back((*samples)[i]);
  if (const auto quiet = times_of(row, "quiet_samples_ns");
      quiet && quiet->size() == samples->size() && are_positive(*quiet)) {
    for (std::size_t i = 0; i < quiet->size(); ++i)
      (i % 2 == 0 ? test.first_quiet_ns : test.second_quiet_ns).push_back((*quiet)[i]);
  }
  test.recorded_ns = times_of(row, "recorded_samples_ns").value_or(std::vector<double>());
  if (const auto ops = row.find("ops"); ops != row.end() && ops->is_array()) {
    for (const Json& op : *ops) {
      if (!op.is_object() || !op.contains("op") || !op["op"].is_string()) return std::nullopt;
      auto times = times_of(op, "samples_ns");
      if (!times) return std::nullopt;
      const auto count = op.find("count");
      test.ops.push_back(
          {.op = op["op"].get<std::string>(),
           .count = count != op.end() && count->is_number() ? count->get<double>() : 0,
           .ns = *std::move(times),
           .quiet_ns = times_of(op, "quiet_samples_ns").value_or(std::vector<double>())});
    }
  }
  return test;
}

}  // namespace

std::string test_name(std::uint32_t n_prompt, std::uint32_t n_gen) {
  if (n_gen == 0) return std::format("pp{}", n_prompt);
  if (n_prompt == 0) return std::format("tg{}", n_gen);
  return std::format("pp{}+tg{}", n_prompt, n_gen);
}

double evaluation_speed(double ns, std::uint32_t tokens) { return ns > 0 ? tokens * 1e9 / ns : 0; }

Json bench_row_json(const Json& facts, const SpeedTest& test, const std::string& test_time,
                    const std::string& machine) {
  Json row = facts;
  const auto speed = [&](double time) { return evaluation_speed(time, test.tokens()); };
  const std::vector<double> ns = test.samples_ns();
  std::vector<double> ts;
  std::ranges::transform(ns, std::back_inserter(ts), speed);
  const SampleSpread times = sample_spread(ns), speeds = sample_spread(ts);
  row["n_prompt"] = test.n_prompt;
  row["n_gen"] = test.n_gen;
  row["n_depth"] = 0;
  row["test_time"] = test_time;
  row["avg_ns"] = whole(times.mean);
  row["stddev_ns"] = whole(times.stddev);
  row["avg_ts"] = speeds.mean;
  row["stddev_ts"] = speeds.stddev;
  row["rounds"] = test.first_ns.size() / 2;
  row["median_ts"] = speed(times.median);
  row["p5_ts"] = speed(times.p95);
  row["p95_ts"] = speed(times.p5);
  row["noise"] = test.noise();
  row["recorded_median_ts"] = speed(sample_spread(test.recorded_ns).median);
  for (const auto& [name, value] : change_json(test.recording_cost()).items())
    if (name != "noise") row["recording_" + name] = value;
  row["machine"] = text_or_null(machine);
  row["samples_ns"] = whole_numbers(ns);
  row["samples_ts"] = ts;
  row["quiet_samples_ns"] = whole_numbers(in_turns(test.first_quiet_ns, test.second_quiet_ns));
  row["recorded_samples_ns"] = whole_numbers(test.recorded_ns);
  double all = 0;
  for (const SpeedOp& op : test.ops) all += sample_spread(op.ns).median;
  Json ops = Json::array();
  for (const SpeedOp& op : test.ops) {
    const double median = sample_spread(op.ns).median;
    ops.push_back({{"op", op.op},
                   {"count", op.count},
                   {"median_ns", whole(median)},
                   {"share", all > 0 ? median / all : 0},
                   {"samples_ns", whole_numbers(op.ns)},
                   {"quiet_samples_ns", whole_numbers(op.quiet_ns)}});
  }
  row["ops"] = std::move(ops);
  return row;
}

Json to_json(const ComparedTest& test) {
  Json json{{"n_prompt", test.n_prompt},
            {"n_gen", test.n_gen},
            {"before_ns", whole(test.before_ns)},
            {"after_ns", whole(test.after_ns)}};
  json.update(change_json(test.change));
  Json ops = Json::array();
  for (const ComparedOp& op : test.ops) {
    Json row{{"op", op.op},
             {"before_ns", whole(op.before_ns)},
             {"after_ns", whole(op.after_ns)},
             {"share", op.share}};
    row["change"] = op.change ? change_json(*op.change) : Json();
    ops.push_back(std::move(row));
  }
  json["ops"] = std::move(ops);
  return json;
}

std::expected<BenchFile, std::string> parse_bench_rows(std::string_view text) {
  const auto parsed = parse_json(text, {.depth = 8, .values = 4'000'000, .fields = 256});
  const auto wrong = [](const std::string& why) {
    return std::unexpected("is not a result of tt bench-model -o json (nor of llama-bench): it " +
                           why);
  };
  if (!parsed) return wrong(parsed.error().message);
  // With --against the rows are a field, and there are those of two configurations.
  if (!parsed->is_array()) return wrong("has no list of tests");
  BenchFile file;
  for (const Json& row : *parsed) {
    auto test = test_of(row);
    if (!test) {
      return std::unexpected(
          "has a test without n_prompt, n_gen or valid samples_ns: write it with -o json");
    }
    if (file.tests.empty()) {
      for (const auto& [name, value] : row.items())
        if (!is_list(value)) file.facts[name] = value;
      file.of_llama_bench = !row.contains("rounds");
    }
    if (const auto machine = row.find("machine");
        machine != row.end() && machine->is_string() && *machine != "clean")
      file.disturbed = machine->get<std::string>();
    file.tests.push_back(*std::move(test));
  }
  return file;
}

std::vector<std::string> bench_differences(const BenchFile& before, const BenchFile& after) {
  struct Compared {
    const char* what;
    const char* field;
    bool same_program = false;  // llama-bench writes the value in another way
  };
  constexpr Compared kCompared[] = {
      {"model", "model_type"},
      {"size of the model", "model_size"},
      {"number of parameters", "model_n_params"},
      {"processor", "cpu_info"},
      {"GPU", "gpu_info"},
      {"number of threads", "n_threads"},
      {"batch", "n_batch"},
      {"micro-batch", "n_ubatch"},
      {"type of the K cache", "type_k"},
      {"type of the V cache", "type_v"},
      {"GPU layers", "n_gpu_layers"},
      {"expert layers on the CPU", "n_cpu_moe"},
      {"flash attention", "flash_attn", true},
      {"mmap", "use_mmap", true},
      {"repacking", "repack", true},
      {"tensor buffers", "tensor_buft_overrides", true},
  };
  std::vector<std::string> differences;
  const auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const auto& [what, field, same_program] : kCompared) {
    if (same_program && before.of_llama_bench != after.of_llama_bench) continue;
    const auto left = before.facts.find(field), right = after.facts.find(field);
    if (left == before.facts.end() || right == after.facts.end() || *left == *right) continue;
    differences.push_back(
        std::format("the {} differs: {} and {}", what, text(*left), text(*right)));
  }
  for (const auto& [name, file] : {std::pair{"first", &before}, std::pair{"second", &after}}) {
    if (!file->disturbed.empty()) {
      differences.push_back(
          std::format("the {} measurement was disturbed: {}", name, file->disturbed));
    }
  }
  return differences;
}

void use_same_rounds(BenchFile& before, BenchFile& after) {
  if (before.of_llama_bench == after.of_llama_bench) return;
  for (SpeedTest& test : (before.of_llama_bench ? after : before).tests) {
    std::vector<double> rounds;
    for (std::size_t i = 0; i < test.first_ns.size(); i += 2) {
      std::vector<double> blocks;
      for (const auto* side : {&test.first_ns, &test.second_ns})
        for (std::size_t at = i; at < std::min(i + 2, side->size()); ++at)
          blocks.push_back((*side)[at]);
      rounds.push_back(sample_spread(blocks).median);
    }
    test.first_ns.clear();
    test.second_ns.clear();
    for (const double round : rounds) {
      test.first_ns.insert(test.first_ns.end(), 2, round);
      test.second_ns.insert(test.second_ns.end(), 2, round);
    }
    test.first_quiet_ns.clear();
    test.second_quiet_ns.clear();
  }
}

std::string bench_csv(const std::vector<Json>& rows) {
  if (rows.empty()) return "";
  std::string out;
  const auto add = [&](const char* separator, const std::string& cell) {
    out += separator + cell;
    return ",";
  };
  const char* separator = "";
  for (const std::string& name : column_names(rows.front())) separator = add(separator, name);
  for (const Json& row : rows) {
    separator = "\n";
    for (const std::string& name : column_names(row))
      separator = add(separator, quoted(plain_text(row[name]), '"'));
  }
  return out + "\n";
}

std::string bench_sql(const std::vector<Json>& rows) {
  if (rows.empty()) return "";
  std::string columns, names;
  for (const std::string& name : column_names(rows.front())) {
    columns +=
        std::format("{}\n  {} {}", columns.empty() ? "" : ",", name, sql_type(rows.front()[name]));
    names += (names.empty() ? "" : ", ") + name;
  }
  std::string out = std::format("CREATE TABLE IF NOT EXISTS llama_bench ({}\n);\n\n", columns);
  for (const Json& row : rows) {
    std::string values;
    for (const std::string& name : column_names(row))
      values += (values.empty() ? "" : ", ") + sql_value(row[name]);
    out += std::format("INSERT INTO llama_bench ({}) VALUES ({});\n", names, values);
  }
  return out;
}

}  // namespace tt
