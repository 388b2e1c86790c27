// The structure of model files over HTTP, compared with llama.cpp's reader.
#include <gtest/gtest.h>
#include <httplib.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/server/models/gguf_bytes.h"
#include "tests/server/models/model_files.h"
#include "tests/server/support/test_server.h"
#include "tracer/gguf/llama_handles.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
TestServerOptions of(const TempFolder& folder) { return {.model = {}, .models = folder.path()}; }

// Rows of fields; fails for anything that is not RFC 4180.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string field;
  std::size_t at = 0;
  const auto end_field = [&] {
    rows.back().push_back(field);
    field.clear();
  };
  while (at < text.size()) {
    if (text[at] == '"') {
      EXPECT_TRUE(field.empty());
      for (++at;; ++at) {
        if (at >= text.size()) {
          ADD_FAILURE() << "unterminated quote";
          return rows;
        }
        if (text[at] == '"' && text.substr(at, 2) != "\"\"") break;
        if (text[at] == '"') ++at;
        field += text[at];
      }
      ++at;
    }
    if (text[at] == ',') {
      end_field();
      ++at;
    } else if (text.compare(at, 2, "\r\n") == 0) {
      end_field();
      at += 2;
      rows.emplace_back();
    } else {
      EXPECT_NE(text[at], '\n');
      EXPECT_NE(text[at], '"');
      field += text[at++];
    }
  }
  EXPECT_TRUE(rows.back().empty()) << "no line end after the last row";
  rows.pop_back();
  return rows;
}

std::string csv_of(TestServer& server, const std::string& id) {
  const auto result = server.client().Get("/api/v1/models/" + id + "/gguf?format=csv");
  EXPECT_TRUE(static_cast<bool>(result));
  if (!result) return "";
  EXPECT_EQ(result->status, 200);
  EXPECT_EQ(result->get_header_value("Content-Type"), "text/csv; charset=utf-8");
  return result->body;
}

TEST(GgufRoutes, MatchLlamaCppReader) {
  const TempFolder folder;
  for (const char* shape : {"small", "moe", "mamba", "t5", "bert"})
    copy_model(folder.path(), shape, shape);
  for (const fs::path& part : model_files("small", 3)) fs::copy(part, folder.path());
  TestServer server(of(folder));
  const json list = server.get("/api/v1/models").body["models"];
  ASSERT_EQ(list.size(), 6U);
  for (const json& model : list) {
    const std::string id = model["id"];
    SCOPED_TRACE(id);
    const TestResponse answer = server.get("/api/v1/models/" + id + "/gguf");
    ASSERT_EQ(answer.status, 200) << answer.body;
    const auto csv = parse_csv(csv_of(server, id));
    ASSERT_FALSE(csv.empty());
    EXPECT_EQ(csv[0],
              (std::vector<std::string>{"tensor_name", "file_offset", "size_bytes", "layer_id",
                                        "component_type", "model_file", "tensor_type", "shape"}));
    std::size_t row = 0;
    for (std::size_t file = 0; file < answer.body["files"].size(); ++file) {
      const std::string path = answer.body["files"][file]["path"];
      EXPECT_EQ(answer.body["files"][file]["size"], fs::file_size(path));
      const GgufContext theirs(
          gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
      ASSERT_NE(theirs, nullptr);
      if (file == 0) {
        EXPECT_EQ(std::ssize(answer.body["metadata"]), gguf_get_n_kv(theirs.get()));
      }
      for (std::int64_t i = 0; i < gguf_get_n_tensors(theirs.get()); ++i, ++row) {
        const json& tensor = answer.body["tensors"][row];
        const std::int64_t* ne = gguf_get_tensor_ne(theirs.get(), i);
        EXPECT_EQ(tensor["name"], gguf_get_tensor_name(theirs.get(), i));
        EXPECT_EQ(tensor["model_file"], file);
        EXPECT_EQ(tensor["type"], ggml_type_name(gguf_get_tensor_type(theirs.get(), i)));
        EXPECT_EQ(tensor["file_bytes"], gguf_get_tensor_size(theirs.get(), i));
        EXPECT_EQ(tensor["file_offset"],
                  gguf_get_data_offset(theirs.get()) + gguf_get_tensor_offset(theirs.get(), i));
        EXPECT_EQ(tensor["shape"], json::array({ne[0], ne[1], ne[2], ne[3]}));
        ASSERT_LT(row + 1, csv.size());
        const auto& line = csv[row + 1];
        ASSERT_EQ(line.size(), 8U);
        EXPECT_EQ(line[0], tensor["name"].get<std::string>());
        EXPECT_EQ(line[1], tensor["file_offset"].dump());
        EXPECT_EQ(line[2], tensor["file_bytes"].dump());
        EXPECT_EQ(line[3], tensor["layer"].is_null() ? "" : tensor["layer"].dump());
        EXPECT_EQ(line[4], tensor["component"].get<std::string>());
        EXPECT_EQ(line[5], tensor["model_file"].dump());
        EXPECT_EQ(line[6], tensor["type"].get<std::string>());
        EXPECT_EQ(line[7], std::format("{}x{}x{}x{}", ne[0], ne[1], ne[2], ne[3]));
      }
    }
    EXPECT_EQ(row, answer.body["tensors"].size());
    EXPECT_EQ(row + 1, csv.size());
  }
  const json dense = server.get("/api/v1/models/small/gguf").body;
  for (const json& tensor : dense["tensors"]) {
    if (tensor["name"] != "blk.1.ffn_down.weight") continue;
    EXPECT_EQ(tensor["layer"], 1);
    EXPECT_EQ(tensor["component"], "ffn");
  }
  for (const json& entry : dense["metadata"]) {
    if (entry["key"] == "general.architecture") {
      EXPECT_EQ(entry,
                (json{{"key", "general.architecture"}, {"type", "str"}, {"value", "llama"}}));
    }
    if (entry["key"] == "tokenizer.ggml.tokens") {
      EXPECT_EQ(entry["type"], "str[]");
      EXPECT_EQ(entry["value"].size(), 16U) << "shortened";
      EXPECT_GT(entry["length"], 16);
    }
  }
  EXPECT_EQ(server.get("/api/v1/models/small").body["state"], "available")
      << "the model must not be loaded";
}

TEST(GgufRoutes, CsvQuotesSpecialNames) {
  const TempFolder folder;
  const std::vector<std::string> names = {"plain", "with, comma", "a \"quote\"",    "two\r\nlines",
                                          "=1+1",  "\"",          "not utf-8: \xff"};
  GgufBytes bytes;
  bytes.text("general.architecture", "llama");
  for (const std::string& name : names) bytes.tensor(name, 4);
  std::ofstream(folder.path() / "names.gguf", std::ios::binary) << bytes.bytes();
  TestServer server(of(folder));
  const auto rows = parse_csv(csv_of(server, "names"));
  ASSERT_EQ(rows.size(), names.size() + 1);
  for (std::size_t i = 0; i + 1 < names.size(); ++i) EXPECT_EQ(rows[i + 1][0], names[i]);
  EXPECT_EQ(rows.back()[0], "not utf-8: \uFFFD");
  EXPECT_EQ(server.get("/api/v1/models/names/gguf").body["tensors"][6]["name"],
            "not utf-8: \uFFFD");
}

TEST(GgufRoutes, DamagedFileReturnsProblem) {
  const TempFolder folder;
  const std::string valid = GgufBytes()
                                .text("general.architecture", "llama")
                                .text("general.name", "valid")
                                .tensor("token_embd.weight", 64)
                                .tensor("blk.0.attn_q.weight", 64)
                                .bytes();
  const auto write = [&](const std::string& bytes) {
    std::ofstream(folder.path() / "a.gguf", std::ios::binary) << bytes;
  };
  write(valid);
  TestServer server(of(folder));
  EXPECT_EQ(server.get("/api/v1/models/a/gguf").status, 200);
  EXPECT_EQ(server.get("/api/v1/models/a/gguf?format=json").status, 200);
  const TestResponse xml = server.get("/api/v1/models/a/gguf?format=xml");
  EXPECT_EQ(xml.status, 400);
  EXPECT_EQ(xml.body["code"], "bad_request");
  EXPECT_EQ(server.get("/api/v1/models/b/gguf").status, 404);

  int rejected = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    std::string bytes = valid;
    for (int i = 0; i < 3; ++i) bytes[rng() % (valid.size() - 512)] = static_cast<char>(rng());
    write(bytes);
    const TestResponse answer = server.get("/api/v1/models/a/gguf");
    if (answer.status == 200) continue;
    ++rejected;
    EXPECT_EQ(answer.status, 422);
    EXPECT_EQ(answer.type, "application/problem+json");
    EXPECT_EQ(answer.body["code"], "model_damaged");
    EXPECT_NE(answer.body["detail"].get<std::string>().find("a.gguf"), std::string::npos);
  }
  EXPECT_GT(rejected, 30);
  EXPECT_EQ(server.get("/api/v1/health").status, 200);
}

}  // namespace
}  // namespace tt::test
