// Values of weights over HTTP, against numpy's own decoding of the files and against tt weights.
#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <format>
#include <fstream>
#include <limits>
#include <map>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cli/tt_program.h"
#include "tests/server/support/test_server.h"
#include "tests/support/command_output.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/weights/importance_file.h"
#include "tracer/weights/tensor_details.h"
#include "tracer/weights/weight_reader.h"

namespace tt::test {
namespace {

constexpr std::array kTypes = {"q4_0", "q5_1", "q8_0", "q2_k", "q4_k", "q6_k", "iq4_nl"};

std::string tensor_name(std::size_t layer) { return std::format("blk.{}.attn_q.weight", layer); }

// Importances of `tensor`, and of another one as many as cannot be read. The file has holes, which
// are zeros.
void write_large_importances(const std::filesystem::path& path, const std::string& tensor) {
  gguf_context* const gguf = gguf_init_empty();
  ggml_context* const tensors =
      ggml_init({.mem_size = 16 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true});
  std::size_t bytes = 0;
  const auto add = [&](const std::string& name, std::int64_t columns, std::int64_t rows) {
    ggml_tensor* const of = ggml_new_tensor_2d(tensors, GGML_TYPE_F32, columns, rows);
    ggml_set_name(of, name.c_str());
    gguf_add_tensor(gguf, of);
    bytes += GGML_PAD(ggml_nbytes(of), std::size_t{GGUF_DEFAULT_ALIGNMENT});
  };
  add(tensor + ".in_sum2", 256, 1);
  add(tensor + ".counts", 1, 1);
  add("other.in_sum2", 1 << 20, 600);
  add("other.counts", 1, 1);
  EXPECT_TRUE(gguf_write_to_file(gguf, path.c_str(), /*only_meta=*/true));
  std::filesystem::resize_file(path, gguf_get_meta_size(gguf) + bytes);
  ggml_free(tensors);
  gguf_free(gguf);
}

// A model whose layers have the types above, and its values as numpy decodes them.
class WeightsRoutes : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(run_tt(folder_(), std::format("model small --layers {} --quant f32 -q -o f32.gguf",
                                            kTypes.size()))
                  .code,
              0);
    std::string types;
    for (std::size_t i = 0; i < kTypes.size(); ++i)
      types += std::format(" --tensor-type 'blk\\.{}\\.attn_q={}'", i, kTypes[i]);
    const std::string in = std::format("cd {} && ", folder_().path().string());
    std::filesystem::create_directories(folder_() / "models");
    command_output(in + "llama-quantize" + types + " f32.gguf models/m.gguf Q8_0");
    const auto index = GgufIndex::open(folder_() / "models/m.gguf");
    ASSERT_TRUE(index.has_value());
    json tensors = json::array();
    for (std::size_t i = 0; i < kTypes.size(); ++i) {
      const GgufTensor& tensor = *index->find(tensor_name(i));
      tensors.push_back(
          {{"type", tensor.type}, {"offset", tensor.file.offset}, {"bytes", tensor.file.length}});
      width_() = static_cast<std::size_t>(tensor.ne[0]);
      height_() = static_cast<std::size_t>(tensor.ne[1]);
    }
    std::ofstream(folder_() / "tensors.json") << tensors;
    command_output(in + std::format("python3 {} models/m.gguf values < tensors.json",
                                    source_path("tests/cli/decode_weights.py")));
    const std::string bytes = contents(folder_() / "values");
    values_().resize(bytes.size() / sizeof(float));
    std::memcpy(values_().data(), bytes.data(), bytes.size());
    ASSERT_EQ(values_().size(), kTypes.size() * width_() * height_());
  }

  static TempFolder& folder_() {
    static TempFolder folder;
    return folder;
  }
  static std::vector<float>& values_() {
    static std::vector<float> values;
    return values;
  }
  static std::size_t& width_() {
    static std::size_t width = 0;
    return width;
  }
  static std::size_t& height_() {
    static std::size_t height = 0;
    return height;
  }
  static float numpy(std::size_t layer, std::size_t row, std::size_t column) {
    return values_()[(layer * height_() + row) * width_() + column];
  }

  json ask(const std::string& path, int status = 200) {
    const TestResponse answer = server.get("/api/v1/models/m/" + path);
    EXPECT_EQ(answer.status, status) << path << " " << answer.body;
    return answer.body;
  }

  TestServer server{{.model = {}, .models = folder_() / "models"}};
};

// What a query says of its progress ends at all bytes: as many are read as it announces.
TEST_F(WeightsRoutes, ReadAsManyBytesAsTheFileHas) {
  const auto index = GgufIndex::open(folder_() / "models/m.gguf");
  ASSERT_TRUE(index.has_value());
  auto reader = WeightReader::open(*index);
  ASSERT_TRUE(reader.has_value());
  ASSERT_TRUE(tensor_summaries(*reader, *index, [] { return true; }).has_value());
  std::uint64_t bytes = 0;
  for (const GgufTensor& tensor : index->tensors()) bytes += tensor.file.length;
  EXPECT_EQ(reader->bytes_read(), bytes);
}

TEST_F(WeightsRoutes, StatisticsAreThoseOfTheCommand) {
  EXPECT_EQ(ask("weights"), run_json(folder_(), "weights models/m.gguf"));
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    json theirs = run_json(folder_(), "weights models/m.gguf " + tensor_name(i));
    json ours = ask("weights/tensor?rows=3&name=" + tensor_name(i));
    std::vector<json> rows = theirs["rows"];
    std::ranges::stable_sort(rows, std::ranges::greater(),
                             [](const json& row) { return row["rms"].get<double>(); });
    rows.resize(3);
    EXPECT_EQ(ours["largest_rows"], json(rows));
    EXPECT_EQ(ours["scales"].is_null(), false) << kTypes[i];
    theirs.erase("rows");
    ours.erase("largest_rows");
    EXPECT_EQ(ours, theirs);
  }
}

TEST_F(WeightsRoutes, PictureOfSingleValuesEqualsNumpy) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    SCOPED_TRACE(kTypes[i]);
    const json picture = ask("weights/picture?name=" + tensor_name(i));
    ASSERT_EQ(picture["values_per_cell"], 1);
    ASSERT_EQ(picture["cells"].size(), height_());
    float largest = 0;
    for (std::size_t row = 0; row < height_(); ++row)
      for (std::size_t column = 0; column < width_(); ++column) {
        const float theirs = numpy(i, row, column);
        largest = std::max(largest, std::abs(theirs));
        ASSERT_NEAR(picture["cells"][row][column].get<float>(), theirs, 1e-6F)
            << row << " " << column;
      }
    EXPECT_NEAR(picture["largest"].get<float>(), largest, 1e-6F);
  }
}

// Also of a part, and when the pixels do not divide it evenly.
TEST_F(WeightsRoutes, CellsAreMeansOrLargestOfTheirValues) {
  const std::size_t x0 = 5, x1 = width_() - 3, y0 = 2, y1 = height_() - 1;
  constexpr std::size_t kWidth = 7, kHeight = 5;
  for (const char* value : {"mean", "max_abs"}) {
    const std::string path = std::format(
        "weights/picture?name={}&value={}&x_from={}&x_to={}&y_from={}&y_to={}&width={}&height={}",
        tensor_name(4), value, x0, x1, y0, y1, kWidth, kHeight);
    const json picture = ask(path);
    const auto result = server.client().Get("/api/v1/models/m/" + path + "&format=columns");
    ASSERT_TRUE(static_cast<bool>(result));
    std::vector<float> columns(kWidth * kHeight);
    ASSERT_GE(result->body.size(), 32 + columns.size() * sizeof(float));
    std::memcpy(columns.data(), result->body.data() + 32, columns.size() * sizeof(float));
    std::size_t most = 0;
    for (std::size_t py = 0; py < kHeight; ++py) {
      for (std::size_t px = 0; px < kWidth; ++px) {
        double sum = 0, largest = 0;
        std::size_t count = 0;
        for (std::size_t row = y0 + py * (y1 - y0) / kHeight;
             row < y0 + (py + 1) * (y1 - y0) / kHeight; ++row)
          for (std::size_t column = x0 + px * (x1 - x0) / kWidth;
               column < x0 + (px + 1) * (x1 - x0) / kWidth; ++column) {
            const double one = numpy(4, row, column);
            sum += one;
            largest = std::max(largest, std::abs(one));
            ++count;
          }
        most = std::max(most, count);
        const double expected =
            std::string(value) == "mean" ? sum / static_cast<double>(count) : largest;
        EXPECT_NEAR(picture["cells"][py][px].get<double>(), expected, 1e-6);
        EXPECT_EQ(columns[py * kWidth + px], picture["cells"][py][px].get<float>());
      }
    }
    EXPECT_EQ(picture["values_per_cell"], most);
  }
}

// As the command lists them, which is tested against numpy.
TEST_F(WeightsRoutes, PictureOfBlockParametersEqualsTheList) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    SCOPED_TRACE(kTypes[i]);
    const std::string list =
        run_tt(folder_(), "weights models/m.gguf --blocks " + tensor_name(i)).out;
    // Of each block in the order of the file, by the name of the column.
    std::istringstream lines(list);
    const auto cells_of = [](const std::string& line) {
      std::vector<std::string> cells;
      for (const auto part : std::views::split(std::string_view(line), ','))
        cells.emplace_back(part.begin(), part.end());
      return cells;
    };
    std::string line;
    std::getline(lines, line);
    const std::vector<std::string> names = cells_of(line);
    std::map<std::string, std::vector<float>> columns;
    std::size_t blocks = 0;
    for (; std::getline(lines, line); ++blocks) {
      const std::vector<std::string> cells = cells_of(line);
      ASSERT_EQ(cells.size(), names.size());
      for (std::size_t at = 2; at < 8; ++at)
        if (!cells[at].empty()) columns[names[at]].push_back(std::stof(cells[at]));
    }
    ASSERT_GT(blocks, 0U);
    const std::size_t per_block = width_() * height_() / blocks;
    const std::string type = ask("weights/tensor?name=" + tensor_name(i))["type"];
    for (const char* value :
         {"scale", "minimum", "super_scale", "scale_factor", "super_minimum", "minimum_factor"}) {
      const std::string path =
          std::format("weights/picture?name={}&value={}", tensor_name(i), value);
      const std::vector<float>& expected = columns[value];
      if (expected.empty()) {
        const bool has_minima = !columns["minimum"].empty();
        EXPECT_EQ(
            ask(path, 400)["detail"],
            has_minima || !std::string_view(value).contains("minimum")
                ? std::format("{}: the type {} has no super-blocks.", tensor_name(i), type)
                : std::format("{}: the blocks of type {} have no minima.", tensor_name(i), type));
        continue;
      }
      ASSERT_EQ(expected.size(), blocks) << value;
      const json picture = ask(path);
      for (std::size_t at = 0; at < width_() * height_(); ++at)
        ASSERT_EQ(picture["cells"][at / width_()][at % width_()].get<float>(),
                  expected[at / per_block])
            << value << " of value " << at;
      // One cell of all values.
      double sum = 0;
      for (const float one : expected) sum += static_cast<double>(one);
      const double mean = sum / static_cast<double>(blocks);
      EXPECT_NEAR(ask(path + "&width=1&height=1")["cells"][0][0].get<double>(), mean,
                  1e-6 * (1 + std::abs(mean)));
    }
    EXPECT_EQ(!columns["super_scale"].empty(), type.ends_with("_K")) << type;
  }
  EXPECT_EQ(ask("weights/picture?value=scale&name=output_norm.weight", 400)["detail"],
            "output_norm.weight: the type f32 has no blocks.");
}

TEST_F(WeightsRoutes, ValueAndItsBlock) {
  const auto index = GgufIndex::open(folder_() / "models/m.gguf");
  const std::string file = contents(folder_() / "models/m.gguf");
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    SCOPED_TRACE(kTypes[i]);
    const std::size_t row = height_() - 2, column = width_() - 31;
    const json value =
        ask(std::format("weights/value?name={}&row={}&column={}", tensor_name(i), row, column));
    EXPECT_NEAR(value["value"].get<float>(), numpy(i, row, column), 1e-6F);
    const double minimum = value["minimum"].is_null() ? 0 : value["minimum"].get<double>();
    EXPECT_NEAR(value["quant"].get<double>() * value["scale"].get<double>() - minimum,
                numpy(i, row, column), 1e-6);
    const json& super = value["super_block"];
    EXPECT_EQ(super.is_object(), std::string_view(kTypes[i]).ends_with("_k"));
    if (super.is_object()) {
      EXPECT_NEAR(super["scale"].get<double>() * super["scale_factor"].get<double>(),
                  value["scale"].get<double>(), 1e-9);
      if (value["minimum"].is_number()) {
        EXPECT_NEAR(super["minimum"].get<double>() * super["minimum_factor"].get<double>(), minimum,
                    1e-9);
      }
    }
    const GgufTensor& tensor = *index->find(tensor_name(i));
    const std::size_t values = value["block"]["values"];
    EXPECT_EQ(value["block"]["first"], column / values * values);
    float least = numpy(i, row, column), most = least;
    int zeros = 0;
    for (std::size_t at = column / values * values; at < (column / values + 1) * values; ++at) {
      least = std::min(least, numpy(i, row, at));
      most = std::max(most, numpy(i, row, at));
      zeros += numpy(i, row, at) == 0 ? 1 : 0;
    }
    EXPECT_NEAR(value["block"]["min"].get<float>(), least, 1e-6F);
    EXPECT_NEAR(value["block"]["max"].get<float>(), most, 1e-6F);
    EXPECT_EQ(value["block"]["zeros"], zeros);
    const std::size_t bytes = tensor.file.length * values / (width_() * height_());
    std::string expected;
    const std::size_t at = tensor.file.offset + (row * width_() + column) / values * bytes;
    for (std::size_t b = 0; b < bytes; ++b)
      expected += std::format("{:02x}", static_cast<unsigned char>(file[at + b]));
    EXPECT_EQ(value["block"]["bytes"], expected);
  }
  // A type without blocks.
  const json norm = ask("weights/value?name=output_norm.weight&column=3");
  EXPECT_EQ(norm["block"]["values"], 1);
  EXPECT_EQ(norm["scale"], nullptr);
  const auto bits = static_cast<std::uint32_t>(
      std::stoul(norm["block"]["bytes"].get<std::string>(), nullptr, 16));
  EXPECT_EQ(std::bit_cast<float>(std::byteswap(bits)), norm["value"].get<float>());
}

// A mean of other values would hide it.
TEST_F(WeightsRoutes, NotFiniteValuesAreNotHidden) {
  std::filesystem::copy_file(folder_() / "f32.gguf", folder_() / "models/nan.gguf");
  const auto index = GgufIndex::open(folder_() / "models/nan.gguf");
  {
    std::fstream file(folder_() / "models/nan.gguf",
                      std::ios::in | std::ios::out | std::ios::binary);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    file.seekp(static_cast<std::streamoff>(index->find(tensor_name(0))->file.offset +
                                           (3 * width_() + 40) * sizeof nan));
    file.write(reinterpret_cast<const char*>(&nan), sizeof nan);
  }
  for (const char* value : {"mean", "max_abs"}) {
    const json picture =
        server
            .get(std::format("/api/v1/models/nan/weights/picture?name={}&width=2&height=2&value={}",
                             tensor_name(0), value))
            .body;
    std::ptrdiff_t nulls = 0;
    for (const json& row : picture["cells"]) nulls += std::ranges::count(row, json());
    EXPECT_EQ(nulls, 1);
    EXPECT_EQ(picture["cells"][0][40 * 2 / width_()], nullptr) << picture;
  }
  const json one = server
                       .get(std::format("/api/v1/models/nan/weights/value?name={}&row=3&column=40",
                                        tensor_name(0)))
                       .body;
  EXPECT_EQ(one["value"], nullptr);
  EXPECT_EQ(one["block"]["bytes"], "0000c07f");
  std::filesystem::remove(folder_() / "models/nan.gguf");
}

// What is lost on the way F32 -> Q8_0 -> Q4_K: the same figures here, by the command and by numpy.
TEST_F(WeightsRoutes, ErrorsAgainstAReferenceEqualTheCommandAndNumpy) {
  const std::string in = std::format("cd {} && ", (folder_() / "models").string());
  ASSERT_EQ(run_tt(folder_(), "model small --layers 1 --quant f32 -q -o models/f32.gguf").code, 0);
  command_output(in + "llama-quantize --pure f32.gguf q8.gguf Q8_0");
  command_output(in + "llama-quantize --pure --allow-requantize q8.gguf q4.gguf Q4_K");
  const auto get = [&](const std::string& path, int status = 200) {
    const TestResponse answer = server.get("/api/v1/models/" + path);
    EXPECT_EQ(answer.status, status) << path << " " << answer.body;
    return answer.body;
  };
  double before = 0;
  for (const std::string model : {"q8", "q4"}) {
    SCOPED_TRACE(model);
    const json errors = get(model + "/weights/errors?reference=f32");
    EXPECT_EQ(errors, run_json(folder_(), std::format("weights models/{}.gguf --reference "
                                                      "models/f32.gguf",
                                                      model)));
    const auto index = GgufIndex::open(folder_().path() / ("models/" + model + ".gguf"));
    const auto reference = GgufIndex::open(folder_() / "models/f32.gguf");
    json tensors = json::array();
    const auto part = [](const GgufTensor& of) {
      return json{{"type", of.type}, {"offset", of.file.offset}, {"bytes", of.file.length}};
    };
    for (const GgufTensor& tensor : index->tensors()) {
      json one = part(tensor);
      one.update({{"name", tensor.name},
                  {"columns", tensor.ne[0]},
                  {"reference", part(*reference->find(tensor.name))}});
      tensors.push_back(std::move(one));
    }
    std::ofstream(folder_() / "pairs.json") << tensors;
    const json numpy = json::parse(
        command_output(in + std::format("python3 {} {}.gguf --reference f32.gguf < ../pairs.json",
                                        source_path("tests/cli/decode_weights.py"), model)));
    ASSERT_EQ(errors["tensors"].size(), tensors.size());
    double squares = 0, values = 0;
    std::map<std::string, std::pair<double, double>> components;  // values, squares of the errors
    for (const json& tensor : errors["tensors"]) {
      const std::string name = tensor["name"];
      const json& theirs = numpy[name];
      for (const char* figure : {"rmse", "relative_error", "cosine", "max_error"})
        EXPECT_NEAR(tensor[figure].get<double>(), theirs[figure].get<double>(),
                    1e-6 * theirs[figure].get<double>() + 1e-9)
            << name << " " << figure;
      double count = 1;
      for (const json& n : tensor["shape"]) count *= n.get<double>();
      const double rmse = tensor["rmse"];
      auto& [of_component, of_error] = components[tensor["component"]];
      of_component += count;
      of_error += count * rmse * rmse;
      if (tensor["type"] == "f32") continue;  // llama-quantize did not change it
      values += count;
      squares += count * std::pow(tensor["relative_error"].get<double>(), 2);
      const json one =
          get(std::format("{}/weights/errors/tensor?reference=f32&name={}", model, name));
      EXPECT_EQ(one["worst_rows"].size(), 10U);
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(one["worst_rows"][i]["row"], theirs["worst_rows"][i]) << name;
      EXPECT_EQ(one["worst_blocks"][0]["row"], theirs["worst_block"][0]) << name;
      EXPECT_EQ(one["worst_blocks"][0]["first"], theirs["worst_block"][1]) << name;
      for (const char* figure : {"rmse", "relative_error", "cosine", "max_error"})
        EXPECT_EQ(one[figure], tensor[figure]);
    }
    EXPECT_NEAR(errors["relative_error"].get<double>(), std::sqrt(squares / values), 1e-9);
    EXPECT_EQ(errors["components"].size(), components.size());
    for (const json& sum : errors["components"]) {
      const auto& [count, error] = components[sum["component"]];
      EXPECT_EQ(sum["values"], count);
      EXPECT_NEAR(sum["rmse"].get<double>(), std::sqrt(error / count), 1e-9) << sum;
    }
    EXPECT_GT(errors["relative_error"], before);
    before = errors["relative_error"];
  }
  const std::uintmax_t bytes = 3 * std::filesystem::file_size(folder_() / "models/q4.gguf") / 2;
  EXPECT_EQ(get(std::format("f32/weights/mix?rows=4&bytes={}", bytes)),
            run_json(folder_(), std::format("weights models/f32.gguf --rows 4 --fit {}", bytes)));

  // Weighed by an importance matrix of llama-imatrix, which is in the same folder.
  std::ofstream text(folder_() / "models/text.txt");
  for (int i = 0; i < 400; ++i) text << "Once upon a time there was a " << i << " and the sea. ";
  text.close();
  command_output(in +
                 "llama-imatrix -m f32.gguf -f text.txt -t 1 -c 64 --chunks 2 --output-format gguf "
                 "-o matrix.gguf");
  const json weighed = get("q4/weights/errors?reference=f32&imatrix=matrix");
  EXPECT_EQ(weighed, run_json(folder_(),
                              "weights models/q4.gguf --reference models/f32.gguf --imatrix "
                              "models/matrix.gguf"));
  EXPECT_NE(weighed["relative_error"], get("q4/weights/errors?reference=f32")["relative_error"]);
  const std::string attention = "blk.0.attn_q.weight";
  EXPECT_EQ(get("q4/weights/errors/tensor?reference=f32&imatrix=matrix&name=" + attention),
            run_json(folder_(), std::format("weights models/q4.gguf {} --reference models/f32.gguf "
                                            "--imatrix models/matrix.gguf",
                                            attention)));
  // Weighed by what a session read.
  ASSERT_EQ(
      run_tt(folder_(), "record -m models/f32.gguf -p 'Once upon a time' -n 3 -q -o s.ttrace").code,
      0);
  std::filesystem::copy_file(folder_() / "s.ttrace", server.data / "s.ttrace");
  const std::string session = server.get("/api/v1/sessions").body["sessions"][0]["id"];
  const json by_reads = get("q4/weights/errors?reference=f32&session=" + session);
  EXPECT_EQ(by_reads, run_json(folder_(),
                               "weights models/q4.gguf --reference models/f32.gguf "
                               "--session s.ttrace"));
  EXPECT_NE(by_reads["relative_error"], weighed["relative_error"]);
  EXPECT_EQ(
      get(std::format("q4/weights/errors/tensor?reference=f32&session={}&name=token_embd.weight",
                      session)),
      run_json(folder_(),
               "weights models/q4.gguf token_embd.weight --reference "
               "models/f32.gguf --session s.ttrace"));
  EXPECT_EQ(
      get(std::format("f32/weights/mix?rows=4&bytes={}&session={}&imatrix=matrix", bytes, session)),
      run_json(folder_(), std::format("weights models/f32.gguf --rows 4 --fit {} --session "
                                      "s.ttrace --imatrix models/matrix.gguf",
                                      bytes)));
  get("q4/weights/errors?reference=f32&session=none", 404);
  const json listed = server.get("/api/v1/models").body["models"];
  for (const json& model : listed)
    EXPECT_EQ(model["importance_matrix"], model["id"] == "matrix") << model;
  // Reading it can be cancelled, and of one tensor only its importances are read: those of another
  // one would be too many.
  const auto matrix = GgufIndex::open(folder_() / "models/matrix.gguf");
  ASSERT_TRUE(matrix.has_value());
  int pieces = 0;
  EXPECT_EQ(read_importance(*matrix, {}, [&] { return ++pieces < 3; }).error(), "cancelled");
  EXPECT_EQ(pieces, 3);
  const auto one = read_importance(*matrix, attention, never_cancel).value();
  ASSERT_EQ(one.size(), 1U);
  const auto all = read_importance(*matrix, {}, never_cancel).value();
  EXPECT_GT(all.size(), 1U);
  EXPECT_EQ(one.at(attention).values, all.at(attention).values);
  write_large_importances(folder_() / "models/large.gguf", attention);
  const auto large = GgufIndex::open(folder_() / "models/large.gguf");
  ASSERT_TRUE(large.has_value()) << large.error();
  EXPECT_GT(importance_bytes(*large, {}), kMaxImportanceBytes);
  EXPECT_LT(importance_bytes(*large, attention), 1U << 20);
  EXPECT_TRUE(get("q4/weights/errors?reference=f32&imatrix=large", 400)["detail"]
                  .get<std::string>()
                  .contains("the maximum"));
  // All of its importances are equal.
  EXPECT_EQ(
      get("q4/weights/errors/tensor?reference=f32&imatrix=large&name=" +
          attention)["worst_rows"][0]["row"],
      get("q4/weights/errors/tensor?reference=f32&name=" + attention)["worst_rows"][0]["row"]);

  EXPECT_TRUE(get("q4/weights/errors?reference=f32&imatrix=none", 404)["detail"]
                  .get<std::string>()
                  .contains("none"));
  EXPECT_TRUE(
      get("q4/weights/errors?reference=f32&imatrix=q8", 400)["detail"].get<std::string>().contains(
          "Give a file that llama-imatrix wrote"));

  EXPECT_TRUE(
      get("q4/weights/errors?reference=f33", 404)["detail"].get<std::string>().contains("f33"));
  get("q4/weights/errors", 400);
  std::filesystem::copy_file(kTestPaths.bundled_model, folder_() / "models/other.gguf");
  get("q4/weights/errors?reference=other", 400);
  EXPECT_TRUE(get("other/weights/errors?reference=other&session=" + session, 400)["detail"]
                  .get<std::string>()
                  .contains("reads no weight of this model"));
  get("q4/weights/errors/tensor?reference=f32&name=none", 404);
  EXPECT_EQ(get(std::format("f32/weights/mix?rows=4&bytes={}&imatrix=matrix", bytes)),
            run_json(folder_(), std::format("weights models/f32.gguf --rows 4 --fit {} --imatrix "
                                            "models/matrix.gguf",
                                            bytes)));
  get("f32/weights/mix", 400);
  get("f32/weights/mix?bytes=1", 400);
  get("f32/weights/mix?bytes=1000000000&rows=0", 400);
  for (const char* model : {"f32", "q8", "q4", "matrix", "large", "other"})
    std::filesystem::remove(folder_().path() / std::format("models/{}.gguf", model));
}

TEST_F(WeightsRoutes, SaysWhatIsWrong) {
  EXPECT_EQ(server.get("/api/v1/models/none/weights").status, 404);
  EXPECT_TRUE(
      ask("weights/tensor?name=blk.0.attn_q.weigth", 404)["detail"].get<std::string>().contains(
          "blk.0.attn_q.weight"));
  const std::string name = tensor_name(0);
  ask(std::format("weights/value?name={}&row={}", name, height_()), 404);
  ask(std::format("weights/value?name={}&column={}", name, width_()), 404);
  ask(std::format("weights/picture?name={}&x_from={}", name, width_()), 404);
  ask(std::format("weights/picture?name={}&y_from=2&y_to=1", name), 400);
  ask(std::format("weights/picture?name={}&width=4097", name), 400);
  ask(std::format("weights/picture?name={}&width=4096&height=4096", name), 400);
  ask(std::format("weights/picture?name={}&value=median", name), 400);
  ask("weights/value", 400);
}

}  // namespace
}  // namespace tt::test
