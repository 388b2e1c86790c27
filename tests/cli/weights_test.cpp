// tt weights, against numpy, against llama-quantize, and against planted errors.
#include <ggml.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/support/command_output.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/modelgen/model_spec.h"
#include "tracer/weights/block_parameters.h"

namespace tt {
namespace {

using nlohmann::json;

std::string in(const test::TempFolder& folder, const std::string& command) {
  return test::command_output(std::format("cd {} && {}", folder.path().string(), command));
}

const json& tensor_of(const json& list, const std::string& name) {
  const auto found = std::ranges::find_if(
      list["tensors"], [&](const json& tensor) { return tensor["name"] == name; });
  EXPECT_NE(found, list["tensors"].end()) << name;
  return *found;
}

// Of tensors, layers, components and the whole model, against those of numpy.
void expect_errors(const json& ours, const json& numpy, bool by_reads) {
  constexpr std::array kFigures = {"rmse", "relative_error", "cosine", "max_error"};
  using Sums = std::map<std::string, double>;
  std::map<json, Sums> layers;
  std::map<std::string, Sums> components;
  double squares = 0, all = 0, shares = 0;
  std::size_t costs = 0;
  const auto is_quantized = [](const json& tensor) { return tensor["type"] != "f32"; };
  for (const json& tensor : ours["tensors"]) {
    const json& theirs = numpy[tensor["name"].get<std::string>()];
    ASSERT_EQ(tensor.contains("error"), theirs.is_null()) << tensor;
    if (theirs.is_null()) {
      EXPECT_EQ(tensor["reads"], 0);
      continue;
    }
    for (const char* figure : kFigures)
      EXPECT_NEAR(tensor[figure].get<double>(), theirs[figure].get<double>(),
                  1e-6 * theirs[figure].get<double>() + 1e-9)
          << tensor["name"] << " " << figure;
    if (by_reads) {
      EXPECT_NEAR(tensor["reads"].get<double>(), theirs["reads"].get<double>(), 1e-9)
          << tensor["name"];
    } else {
      EXPECT_EQ(tensor["reads"], nullptr);
    }
    for (Sums* sums : {&layers[tensor["layer"]], &components[tensor["component"]]}) {
      for (const auto& [name, sum] : theirs["sums"].items()) (*sums)[name] += sum.get<double>();
      (*sums)["values"] += theirs["values"].get<double>();
    }
    if (!is_quantized(tensor)) continue;
    all += theirs["values_read"].get<double>();
    squares +=
        theirs["values_read"].get<double>() * std::pow(theirs["relative_error"].get<double>(), 2);
  }
  EXPECT_NEAR(ours["relative_error"].get<double>(), std::sqrt(squares / all), 1e-7);
  for (const json& tensor : ours["tensors"]) {
    if (!tensor.contains("error_per_byte") || tensor["error_per_byte"].is_null()) continue;
    ++costs;
    EXPECT_TRUE(is_quantized(tensor));
    const json& theirs = numpy[tensor["name"].get<std::string>()];
    const double share = theirs["values_read"].get<double>() *
                         std::pow(theirs["relative_error"].get<double>(), 2) / all;
    EXPECT_NEAR(tensor["error_per_byte"].get<double>() * tensor["bytes_saved"].get<double>(), share,
                1e-6 * share + 1e-12)
        << tensor["name"];
    shares += share;
  }
  EXPECT_GT(costs, 8U);
  EXPECT_NEAR(shares, squares / all, 1e-9);
  const auto expect_sums = [&](const json& found, Sums& sums) {
    EXPECT_EQ(found["values"].get<double>(), sums["values"]) << found;
    const double rmse = std::sqrt(sums["error"] / sums["weights"]);
    EXPECT_NEAR(found["rmse"].get<double>(), rmse, 1e-6 * rmse + 1e-12) << found;
    EXPECT_NEAR(found["relative_error"].get<double>(), std::sqrt(sums["error"] / sums["reference"]),
                1e-6)
        << found;
    EXPECT_NEAR(found["cosine"].get<double>(),
                sums["product"] / std::sqrt(sums["reference"] * sums["value"]), 1e-6)
        << found;
  };
  EXPECT_EQ(ours["layers"].size(), layers.size());
  for (const json& layer : ours["layers"]) expect_sums(layer, layers[layer["layer"]]);
  EXPECT_EQ(ours["components"].size(), components.size());
  for (const json& one : ours["components"]) expect_sums(one, components[one["component"]]);
}

void write_value(const std::filesystem::path& path, const GgufTensor& tensor, std::uint64_t row,
                 std::uint64_t column, float value) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file
      .seekp(static_cast<std::streamoff>(
          tensor.file.offset + 4 * (row * static_cast<std::uint64_t>(tensor.ne[0]) + column)))
      .write(reinterpret_cast<const char*>(&value), 4);
}

// A second decoder, written from the description of the formats, and another program's blocks.
TEST(WeightsCommand, EqualsNumpy) {
  const test::TempFolder folder;
  constexpr std::array kTypes = {"q4_0", "q4_1", "q5_0", "q5_1",   "q8_0",   "q2_k", "q3_k",
                                 "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"};
  ASSERT_EQ(run_tt(folder,
                   std::format("model small --layers {} --quant f32 -q -o f32.gguf", kTypes.size()))
                .code,
            0);
  // A value that is an outlier of its row.
  const auto original = GgufIndex::open(folder / "f32.gguf");
  ASSERT_TRUE(original.has_value());
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    write_value(folder / "f32.gguf", *original->find(std::format("blk.{}.attn_q.weight", i)), 5, 77,
                1.5F);
  std::string types;
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    types += std::format(" --tensor-type 'blk\\.{}\\.attn_q={}'", i, kTypes[i]);
  in(folder, "llama-quantize" + types + " f32.gguf m.gguf Q8_0");
  const auto index = GgufIndex::open(folder / "m.gguf");
  ASSERT_TRUE(index.has_value());
  json tensors = json::array();
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    const GgufTensor& tensor = *index->find(std::format("blk.{}.attn_q.weight", i));
    EXPECT_EQ(*modelgen::parse_type(tensor.type), *modelgen::parse_type(kTypes[i]));
    const Result blocks = run_tt(folder, "weights m.gguf " + tensor.name + " --blocks");
    EXPECT_EQ(blocks.code, 0) << blocks.err;
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"offset", tensor.file.offset},
                       {"bytes", tensor.file.length},
                       {"columns", tensor.ne[0]},
                       {"details", run_json(folder, "weights m.gguf " + tensor.name)},
                       {"blocks", blocks.out}});
  }
  std::ofstream(folder / "tensors.json") << tensors;
  const json numpy =
      json::parse(in(folder, std::format("python3 {} m.gguf < tensors.json",
                                         source_path("tests/cli/decode_weights.py"))));
  const json list = run_json(folder, "weights m.gguf");
  int outliers = 0;
  for (const json& tensor : tensors) {
    const json& theirs = numpy[tensor["name"].get<std::string>()];
    const std::string name = tensor["name"];
    const json& ours = tensor_of(list, name);
    EXPECT_EQ(ours["count"], theirs["count"]) << tensor["type"];
    EXPECT_EQ(ours["zeros"], theirs["zeros"]) << tensor["type"];
    EXPECT_EQ(ours["outliers"], theirs["outliers"]) << tensor["type"];
    for (const char* figure : {"min", "max", "mean", "std"})
      EXPECT_NEAR(ours[figure].get<double>(), theirs[figure].get<double>(), 2e-7)
          << tensor["type"] << " " << figure;
    EXPECT_EQ(theirs["scale_errors"], 0) << tensor["type"];
    EXPECT_EQ(theirs["minimum_errors"], 0) << tensor["type"];
    EXPECT_EQ(theirs["block_errors"], 0) << tensor["type"];
    EXPECT_EQ(theirs["histogram_errors"], 0) << tensor["type"];
    const json& rows = tensor["details"]["rows"];
    ASSERT_EQ(rows.size(), theirs["rows"]["min"].size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      for (const char* figure : {"zeros", "outliers"})
        EXPECT_EQ(rows[row][figure], theirs["rows"][figure][row]) << tensor["type"] << row;
      for (const char* figure : {"min", "max", "mean", "std", "rms"})
        EXPECT_NEAR(rows[row][figure].get<double>(), theirs["rows"][figure][row].get<double>(),
                    5e-7)
            << tensor["type"] << " " << figure << " of row " << row;
    }
    outliers += ours["outliers"].get<int>();
  }
  EXPECT_GT(outliers, 0);
  // The same blocks as JSON.
  const json blocks =
      run_json(folder, "weights m.gguf --blocks " + tensors[7]["name"].get<std::string>());
  EXPECT_EQ(blocks["type"], "q4_K");
  const json& block = blocks["blocks"].at(9);
  EXPECT_EQ(block["first"], 9 * 32 % blocks["shape"][0].get<int>());
  EXPECT_NEAR(block["scale"].get<double>(),
              block["super_block"]["scale"].get<double>() *
                  block["super_block"]["scale_factor"].get<double>(),
              1e-9);
}

// Of all types: what ggml decodes is an integer, or an eighth of one, times the scale, less the
// minimum, and none of the integers is too large for the type.
TEST(BlockParameters, DecodeWhatGgmlDecodes) {
  std::mt19937 random(7);
  std::size_t types = 0;
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const auto type = static_cast<ggml_type>(i);
    const char* const name = ggml_type_name(type);
    const BlockLayout* const layout = name == nullptr ? nullptr : block_layout(name);
    // Types of a kernel's own input are not in files.
    if (layout == nullptr) {
      EXPECT_TRUE(name == nullptr || !ggml_is_quantized(type) || type == GGML_TYPE_Q8_1 ||
                  type == GGML_TYPE_Q8_K)
          << name << " has no block parameters";
      continue;
    }
    ++types;
    // ggml decodes any bytes. Quantizing needs tables that take some seconds for each of the types
    // with less than 4 bits.
    constexpr std::int64_t kValues = 16'384;
    std::vector<float> decoded(kValues);
    std::vector<std::byte> bytes(ggml_row_size(type, kValues));
    for (std::byte& one : bytes) one = static_cast<std::byte>(random());
    ggml_get_type_traits(type)->to_float(bytes.data(), decoded.data(), kValues);
    ASSERT_EQ(bytes.size() % layout->bytes, 0U) << name;
    double largest = 0;
    std::int64_t checked = 0;
    for (std::size_t block = 0; block < bytes.size() / layout->bytes; ++block) {
      BlockParameters parameters;
      layout->decode(std::span(bytes).subspan(block * layout->bytes, layout->bytes), parameters);
      ASSERT_EQ(parameters.scales.size() * layout->sub_values, layout->values) << name;
      ASSERT_EQ(parameters.minima.size(), layout->has_minima ? parameters.scales.size() : 0U)
          << name;
      for (std::size_t v = 0; v < layout->values; ++v) {
        const std::size_t sub = v / layout->sub_values;
        const double scale = parameters.scales[sub];
        const double minimum = layout->has_minima ? parameters.minima[sub] : 0;
        const double value = decoded[block * layout->values + v];
        // Both are rounded to floats. The scale of a random block can be anything.
        const double rounding = (std::abs(value) + std::abs(minimum)) / std::abs(scale) * 1e-6;
        if (!std::isfinite(rounding) || rounding > 0.005) continue;
        ++checked;
        const double q = 8 * (value + minimum) / scale;
        EXPECT_NEAR(q, std::round(q), 0.05) << name << " block " << block << " value " << v;
        largest = std::max(largest, std::abs(q / 8));
      }
    }
    EXPECT_GT(checked, kValues / 2) << name;
    EXPECT_GE(largest, 0.9) << name;
    EXPECT_LE(largest, 128) << name;
  }
  EXPECT_GE(types, 23U);
}

// Errors that were put into single values are found where they are.
TEST(WeightsCommand, FindsPlantedErrors) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model small --layers 2 --quant f32 -q -o a.gguf").code, 0);
  std::filesystem::copy_file(folder / "a.gguf", folder / "b.gguf");
  const auto index = GgufIndex::open(folder / "b.gguf");
  ASSERT_TRUE(index.has_value());
  const std::string name = "blk.1.ffn_up.weight";
  const GgufTensor& tensor = *index->find(name);
  const auto columns = static_cast<std::uint64_t>(tensor.ne[0]);
  constexpr std::uint64_t kRow = 17, kColumn = 250;
  float before = 0, after = 0;
  {
    std::fstream file(folder / "b.gguf", std::ios::in | std::ios::out | std::ios::binary);
    const auto at =
        static_cast<std::streamoff>(tensor.file.offset + 4 * (kRow * columns + kColumn));
    file.seekg(at).read(reinterpret_cast<char*>(&before), 4);
    after = before + 0.5F;
    file.seekp(at).write(reinterpret_cast<const char*>(&after), 4);
  }
  const json list = run_json(folder, "weights b.gguf --reference a.gguf");
  for (const json& one : list["tensors"]) {
    const bool planted = one["name"] == name;
    EXPECT_EQ(one["max_error"] > 0, planted) << one["name"];
    if (!planted) {
      EXPECT_EQ(one["relative_error"], 0) << one["name"];
    }
  }
  const double count = static_cast<double>(tensor.file.length) / 4;
  EXPECT_NEAR(tensor_of(list, name)["rmse"].get<double>(), 0.5 / std::sqrt(count), 1e-6);
  const json worst = run_json(folder, "weights b.gguf " + name + " --reference a.gguf");
  EXPECT_EQ(worst["worst_rows"][0]["row"], kRow);
  EXPECT_EQ(worst["worst_blocks"][0]["row"], kRow);
  EXPECT_EQ(worst["worst_blocks"][0]["first"], kColumn / 256 * 256);
  EXPECT_NEAR(worst["worst_blocks"][0]["max_error"].get<double>(), after - before, 1e-6);

  // NaN and infinity are counted, and spoil no other figure.
  std::fstream(folder / "b.gguf", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(tensor.file.offset))
      .write("\0\0\xc0\x7f\0\0\x80\xff", 8);
  const json counted = tensor_of(run_json(folder, "weights b.gguf"), name);
  EXPECT_EQ(counted["not_finite"], 2);
  EXPECT_EQ(counted["count"], static_cast<std::uint64_t>(count) - 2);
  EXPECT_NEAR(counted["max"].get<double>(), std::max(0.3, static_cast<double>(after)), 0.5);
  EXPECT_GT(counted["outliers"], 0);  // the planted value
}

// What was read comes from SQL, the importances from the file of llama-imatrix, and everything is
// computed by numpy.
TEST(WeightsCommand, ErrorsAreWeighedByImportancesAndReads) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model moe --layers 2 --quant f32 -q -o f32.gguf").code, 0);
  in(folder, "llama-quantize f32.gguf q4.gguf Q4_K_S");
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 300; ++i) text << "Once upon a time there was a " << i << " and the sea. ";
  text.close();
  in(folder,
     "llama-imatrix -m f32.gguf -f text.txt -t 1 -c 64 --chunks 1 --output-format gguf "
     "-o matrix.gguf");
  ASSERT_EQ(run_tt(folder, "record -m f32.gguf --tokens 1,2 -n 2 -o s.ttrace").code, 0);
  // Of each op that read a part of a weight, once.
  std::map<std::string, json> reads;
  const json rows = run_json(
      folder,
      "sql s.ttrace \"SELECT tensor_name, file_offset, file_bytes, count(*) FROM (SELECT DISTINCT "
      "step, op, tensor_name, file_offset, file_bytes FROM access WHERE NOT write AND tensor_kind "
      "= "
      "'weight') GROUP BY 1, 2, 3\"");
  std::size_t slices = 0;
  for (const json& row : rows["rows"]) {
    reads[row[0]].push_back({row[1], row[2], row[3]});
    slices += row[0].get<std::string>().contains("_exps") ? 1U : 0U;
  }
  EXPECT_LT(slices, 2U * 3 * 8) << "an expert must be idle";
  const auto model = GgufIndex::open(folder / "q4.gguf"),
             reference = GgufIndex::open(folder / "f32.gguf"),
             matrix = GgufIndex::open(folder / "matrix.gguf");
  ASSERT_TRUE(model && reference && matrix);
  json pairs = json::array();
  const auto part = [](const GgufTensor& of) {
    return json{{"type", of.type}, {"offset", of.file.offset}, {"bytes", of.file.length}};
  };
  std::size_t with_importance = 0;
  for (const GgufTensor& tensor : model->tensors()) {
    json one = part(tensor);
    one.update({{"name", tensor.name},
                {"columns", tensor.ne[0]},
                {"reference", part(*reference->find(tensor.name))},
                {"reads", reads.contains(tensor.name) ? reads[tensor.name] : json::array()}});
    if (const GgufTensor* sums = matrix->find(tensor.name + ".in_sum2")) {
      const GgufTensor& counts = *matrix->find(tensor.name + ".counts");
      one["importance"] = {{"file", "matrix.gguf"},
                           {"sums", sums->file.offset},
                           {"counts", counts.file.offset},
                           {"matrices", counts.file.length / 4}};
      ++with_importance;
    }
    pairs.push_back(std::move(one));
  }
  EXPECT_GT(with_importance, 8U);
  const auto numpy_of = [&](const json& tensors) {
    std::ofstream(folder / "pairs.json") << tensors;
    return json::parse(
        in(folder, std::format("python3 {} q4.gguf --reference f32.gguf < pairs.json",
                               source_path("tests/cli/decode_weights.py"))));
  };
  const json both = numpy_of(pairs);
  json by_reads = pairs, by_importance = pairs;
  for (json& one : by_reads) one.erase("importance");
  for (json& one : by_importance) one.erase("reads");
  const std::string command = "weights q4.gguf --reference f32.gguf";
  expect_errors(run_json(folder, command + " --imatrix matrix.gguf --session s.ttrace"), both,
                true);
  expect_errors(run_json(folder, command + " --session s.ttrace"), numpy_of(by_reads), true);
  expect_errors(run_json(folder, command + " --imatrix matrix.gguf"), numpy_of(by_importance),
                false);
  // Rows that were not read are not among the worst.
  const std::string experts = "blk.0.ffn_down_exps.weight";
  const json worst = run_json(folder, std::format("weights q4.gguf {} --reference f32.gguf "
                                                  "--imatrix matrix.gguf --session s.ttrace",
                                                  experts));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(worst["worst_rows"][i]["row"], both[experts]["worst_rows"][i]);

  // --fit weighs by the same: what it predicts is what the new file has.
  const std::string weighed = " --rows 100 --imatrix matrix.gguf --session s.ttrace";
  const json mix = run_json(folder, "weights f32.gguf --fit 4MB -o types.txt" + weighed);
  in(folder,
     "llama-quantize --imatrix matrix.gguf --tensor-type-file types.txt f32.gguf mix.gguf Q8_0");
  const json built = run_json(folder, "weights mix.gguf --reference f32.gguf" + weighed);
  EXPECT_NEAR(built["predicted_relative_error"].get<double>(), mix["relative_error"].get<double>(),
              1e-9);
  EXPECT_NEAR(built["relative_error"].get<double>(), mix["relative_error"].get<double>(),
              0.02 * mix["relative_error"].get<double>());
  for (const json& tensor : mix["tensors"]) {
    const json theirs = tensor_of(built, tensor["name"]);
    EXPECT_EQ(tensor["error_per_byte"].is_null(),
              !theirs.contains("error_per_byte") || theirs["error_per_byte"].is_null())
        << tensor;
  }
  // The first lines are of those that may be smaller.
  const Result table = run_tt(folder, "weights f32.gguf --fit 4MB" + weighed);
  const json* cheapest = nullptr;
  for (const json& tensor : mix["tensors"])
    if (!tensor["error_per_byte"].is_null() &&
        (cheapest == nullptr || tensor["error_per_byte"] < (*cheapest)["error_per_byte"]))
      cheapest = &tensor;
  ASSERT_NE(cheapest, nullptr);
  EXPECT_EQ(table.out.find(cheapest->at("name").get<std::string>()), table.out.find('\n') + 1)
      << table.out;
  EXPECT_TRUE(run_tt(folder, "weights mix.gguf --reference f32.gguf --rows 7")
                  .out.contains("Predicted for these types, from 7 rows of each tensor"));
}

// The chain of llama-quantize: fewer bits, larger errors. The mix that --fit finds has the size and
// the error that it predicts, and a smaller error than one type for all that needs as much.
TEST(WeightsCommand, MixFitsAndIsBetterThanOneType) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model small --layers 4 --quant f32 -q -o f32.gguf").code, 0);
  // Matrices that need fewer bits than others: nine of ten values are 0, as in a pruned model.
  const auto index = GgufIndex::open(folder / "f32.gguf");
  ASSERT_TRUE(index.has_value());
  for (const GgufTensor& tensor : index->tensors()) {
    if (!tensor.name.ends_with("ffn_down.weight")) continue;
    std::fstream file(folder / "f32.gguf", std::ios::in | std::ios::out | std::ios::binary);
    std::vector<float> values(tensor.file.length / 4);
    const auto at = static_cast<std::streamoff>(tensor.file.offset);
    const auto size = static_cast<std::streamsize>(tensor.file.length);
    file.seekg(at).read(reinterpret_cast<char*>(values.data()), size);
    std::mt19937 random(1);
    for (float& value : values) value = random() % 10 == 0 ? value : 0;
    file.seekp(at).write(reinterpret_cast<const char*>(values.data()), size);
  }
  const auto relative_of = [&](const std::string& model) {
    const json list = run_json(folder, "weights " + model + " --reference f32.gguf");
    return list["relative_error"].get<double>();
  };
  double last = 0;
  const auto bytes_of = [&](const char* model) {
    const auto built = GgufIndex::open(folder / model);
    EXPECT_TRUE(built.has_value()) << model;
    std::uint64_t bytes = 0;
    for (const GgufTensor& tensor : built->tensors()) bytes += tensor.file.length;
    return bytes;
  };
  for (const std::string type : {"Q8_0", "Q4_K", "Q2_K"}) {
    in(folder, std::format("llama-quantize --pure f32.gguf {0}.gguf {0}", type));
    const double error = relative_of(type + ".gguf");
    EXPECT_GT(error, last) << type;
    last = error;
  }
  // The same types, each from the file before: the errors against the original and against that
  // file.
  std::string from = "f32.gguf";
  last = 0;
  for (const std::string type : {"Q8_0", "Q4_K", "Q2_K"}) {
    const std::string to = "from_" + type + ".gguf";
    in(folder, std::format("llama-quantize --pure --allow-requantize {} {} {}", from, to, type));
    const double error = relative_of(to);
    EXPECT_GT(error, last) << type;
    last = error;
    const json step = run_json(folder, "weights " + to + " --reference " + from);
    EXPECT_GT(step["relative_error"], 0);
    EXPECT_LE(step["relative_error"], 1.1 * error) << type;
    from = to;
  }
  const json mix = run_json(folder, "weights f32.gguf --rows 1000 -o types.txt --fit " +
                                        std::to_string(bytes_of("Q4_K.gguf")));
  in(folder, "llama-quantize --tensor-type-file types.txt f32.gguf mix.gguf Q8_0");
  EXPECT_LE(mix["bytes"], bytes_of("Q4_K.gguf"));
  EXPECT_EQ(mix["bytes"], bytes_of("mix.gguf"));
  const double measured = relative_of("mix.gguf");
  EXPECT_NEAR(mix["relative_error"].get<double>(), measured, 0.02 * measured);
  EXPECT_LT(measured, relative_of("Q4_K.gguf"));
  // Each tensor has the type that the list says, whatever its name contains.
  const auto built = GgufIndex::open(folder / "mix.gguf");
  ASSERT_TRUE(built.has_value());
  for (const json& one : mix["tensors"])
    EXPECT_EQ(one["type"], built->find(one["name"].get<std::string>())->type) << one["name"];
}

// The weights of the bundled model are trained. llama-perplexity says how far the answers of both
// files are from those of the original: the mix must be closer than one type of at least its size.
TEST(WeightsCommand, AdvisedMixChangesTheAnswersOfTheBundledModelLess) {
  const test::TempFolder folder;
  in(folder,
     std::format("llama-quantize --allow-requantize {} f32.gguf F32", kTestPaths.bundled_model));
  in(folder, std::format("python3 {} > corpus.txt && head -c 30000 corpus.txt > text.txt",
                         source_path("tracer/modelgen/bundled/corpus.py")));
  in(folder, "llama-quantize --pure f32.gguf uniform.gguf Q4_1");
  const auto index = GgufIndex::open(folder / "uniform.gguf");
  ASSERT_TRUE(index.has_value());
  std::uint64_t bytes = 0;
  for (const GgufTensor& tensor : index->tensors()) bytes += tensor.file.length;
  const json mix =
      run_json(folder, std::format("weights f32.gguf --fit {} --rows 1000 -o types.txt", bytes));
  EXPECT_LE(mix["bytes"], bytes);
  in(folder, "llama-quantize --tensor-type-file types.txt f32.gguf mix.gguf Q8_0");
  in(folder,
     "llama-perplexity -m f32.gguf -f text.txt -t 1 -c 128 --chunks 24 --save-all-logits base");
  const auto divergence = [&](const std::string& model) {
    // The mean over the first 16 chunks. The program does not wait for its log when it ends: on a
    // busy machine the last lines, with the mean over all of them, are often missing.
    static const std::regex mean("\n +16 +[0-9.]+ ± +[0-9.]+ +[-0-9.]+ ± +[0-9.]+ +([0-9.]+) ±");
    std::string said;
    for (int tries = 0; tries < 5; ++tries) {
      said =
          in(folder, "llama-perplexity -m " + model +
                         " -t 1 -c 128 --chunks 24 --kl-divergence-base base --kl-divergence 2>&1");
      if (std::smatch found; std::regex_search(said, found, mean)) return std::stod(found[1]);
    }
    ADD_FAILURE() << said;
    return 0.0;
  };
  const double of_mix = divergence("mix.gguf"), of_uniform = divergence("uniform.gguf");
  RecordProperty("kl_divergence_of_mix", std::to_string(of_mix));
  RecordProperty("kl_divergence_of_q4_1", std::to_string(of_uniform));
  EXPECT_GT(of_mix, 0);
  EXPECT_LT(of_mix, of_uniform);
}

TEST(WeightsCommand, SaysWhatIsWrong) {
  const test::TempFolder folder;
  ASSERT_EQ(run_tt(folder, "model small --layers 1 -q -o a.gguf").code, 0);
  std::filesystem::copy_file(kTestPaths.bundled_model, folder / "other.gguf");
  std::ofstream(folder / "text.gguf") << "no model";
  const auto error_of = [&](const std::string& arguments) {
    const Result result = run_tt(folder, "weights " + arguments);
    EXPECT_NE(result.code, 0) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    return result.err;
  };
  EXPECT_TRUE(error_of("a.gguf blk.0.attn_qq.weight").contains("Did you mean blk.0.attn_q.weight"));
  EXPECT_TRUE(error_of("a.gguf --fit 1KB").contains("no mix fits: with the smallest types"));
  EXPECT_TRUE(
      error_of("a.gguf --reference other.gguf").contains("Give two files of the same model"));
  EXPECT_TRUE(error_of("a.gguf --imatrix other.gguf").contains("that llama-imatrix wrote"));
  EXPECT_TRUE(error_of("a.gguf output_norm.weight --blocks").contains("its type is f32"));
  EXPECT_TRUE(error_of("text.gguf").contains("text.gguf"));
  EXPECT_TRUE(error_of("none.gguf").contains("none.gguf"));
  EXPECT_TRUE(error_of("a.gguf --fit 1MB -o a.gguf --force").contains("a.gguf"));
}

}  // namespace
}  // namespace tt
