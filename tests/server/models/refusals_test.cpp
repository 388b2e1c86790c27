// A model that is refused, is refused with its reason: the same words in tt record, tt gguf, the
// list of models and the answer to a load; the messages of llama.cpp are in the log.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <format>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/server/models/damaged_model.h"
#include "tests/server/models/gguf_bytes.h"
#include "tests/server/models/model_files.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/llama_server.h"
#include "tests/server/support/program.h"
#include "tests/support/command_output.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/models/tensor_entry.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_paths.h"
#include "tests/support/wait.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;

fs::path write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string small_model() { return contents(model_files("small").front()); }

std::string record(const fs::path& model, const std::string& more = "") {
  const CommandResult result =
      run_command(std::format("'{}' record -m '{}' -p x -n 1 -c 256 -q --level off {}",
                              kTestPaths.tt, model.string(), more));
  EXPECT_NE(result.status, 0) << model;
  return result.output;
}

json entry_of(RunningServer& server, const std::string& id) {
  return server.get("/api/v1/models/" + id);
}

using Change = std::function<void(gguf_context*)>;

// Files that their headers show to be no models for this llama.cpp.
TEST(Refusals, HeaderFaultsAreTheSameEverywhere) {
  const TempFolder folder, data;
  std::vector<std::pair<std::string, std::string>> says;  // id, words
  const auto with = [&](const std::string& id, const std::string& words, const Change& change) {
    with_changes(model_files("small").front(), folder.path() / (id + ".gguf"), change);
    says.emplace_back(id, words);
  };
  const auto set = [](const char* key, const char* value) {
    return [=](gguf_context* file) { gguf_set_val_str(file, key, value); };
  };
  const auto raw = [&](const std::string& id, const std::string& words, const std::string& bytes) {
    write(folder.path() / (id + ".gguf"), bytes);
    says.emplace_back(id, words);
  };
  with("newarch", "unknown model architecture: 'newarch9'",
       set("general.architecture", "newarch9"));
  with("flux", "It is an image or video model", set("general.architecture", "flux"));
  with("vector", "not a model: it is a control vector",
       set("general.architecture", "controlvector"));
  with("mmproj", "not a model: it is an image projector", set("general.type", "mmproj"));
  with("matrix", "not a model: it is an importance matrix", set("general.type", "imatrix"));
  raw("lora", "Adapters are not supported",
      GgufBytes()
          .text("general.architecture", "llama")
          .text("general.type", "adapter")
          .tensor("blk.0.attn_q.weight.lora_a", 64)
          .bytes());
  raw("vocabulary", "it has no tensors", GgufBytes().text("general.architecture", "llama").bytes());
  std::string fork = small_model();
  TensorEntry(fork, "blk.0.attn_q.weight").set_type(144);
  raw("fork", "tensor blk.0.attn_q.weight has the type 144", fork);
  std::string twice = small_model();
  TensorEntry(twice, "blk.1.attn_q.weight").set_name("blk.0.attn_q.weight");
  raw("twice", "tensor blk.0.attn_q.weight is listed twice", twice);
  std::string overlap = small_model();
  TensorEntry(overlap, "blk.1.attn_q.weight")
      .set_offset(TensorEntry(overlap, "blk.0.attn_q.weight").offset());
  raw("overlap", "they overlap", overlap);
  std::string big = small_model();
  std::swap(big[4], big[7]);
  raw("big", "a big-endian GGUF file", big);
  raw("lfs", "a Git LFS pointer", "version https://git-lfs.github.com/spec/v1\noid x\nsize 5\n");
  raw("page", "a web page (HTML)", "<!doctype html><html>");
  raw("cut", "truncated", small_model().substr(0, 200'000));
  std::string joined;
  for (const fs::path& part : model_files("small", 3)) joined += contents(part);
  raw("joined", "the parts of a split model were joined with cat", joined);

  RunningServer server(data.path(), {"--no-model", "--models-dir", folder.path().string()});
  for (const auto& [id, words] : says) {
    SCOPED_TRACE(id);
    const fs::path path = folder.path() / (id + ".gguf");
    const json entry = entry_of(server, id);
    EXPECT_EQ(entry["state"], "failed");
    ASSERT_TRUE(entry["error"].is_string()) << entry;
    const std::string error = entry["error"];
    EXPECT_TRUE(error.contains(words)) << error;
    EXPECT_TRUE(error.contains(path.string())) << error;
    const auto load =
        http_client(server.url).Post("/api/v1/models/" + id + "/load", "", "application/json");
    ASSERT_TRUE(load);
    EXPECT_EQ(load->status, 422);
    EXPECT_FALSE(load->has_header("Retry-After"));
    EXPECT_EQ(json::parse(load->body)["detail"], error);
    EXPECT_EQ(record(path), "tt record: " + error + "\n");
    const CommandResult listed =
        run_command(std::format("'{}' gguf '{}'", kTestPaths.tt, path.string()));
    EXPECT_TRUE(listed.output.contains("tt gguf: " + error)) << listed.output;
    EXPECT_NE(listed.status, 0) << listed.output;
  }
}

// What only llama.cpp knows: `tt gguf` lets it load the metadata, and says the same as a load.
TEST(Refusals, FaultsOfTheMetadataAreSaidByTtGguf) {
  const TempFolder folder;
  const fs::path path = folder.path() / "m.gguf";
  for (const auto& [words, change] :
       {std::pair<const char*, Change>{
            "unknown tokenizer",
            [](gguf_context* file) { gguf_set_val_str(file, "tokenizer.ggml.model", "newtok"); }},
        {"key not found in model: llama.embedding_length",
         [](gguf_context* file) { gguf_remove_key(file, "llama.embedding_length"); }},
        {"attn_norm.weight' not found",
         [](gguf_context* file) { gguf_set_val_u32(file, "llama.block_count", 14); }},
        {"wrong shape",
         [](gguf_context* file) { gguf_set_val_u32(file, "llama.feed_forward_length", 96); }}}) {
    SCOPED_TRACE(words);
    with_changes(model_files("small").front(), path, change);
    const std::string recorded = record(path);
    EXPECT_TRUE(recorded.contains(words)) << recorded;
    const CommandResult listed =
        run_command(std::format("'{}' gguf '{}'", kTestPaths.tt, path.string()));
    EXPECT_NE(listed.status, 0);
    EXPECT_TRUE(listed.output.contains("tt gguf: " + recorded.substr(std::size("tt record: ") - 1)))
        << listed.output << recorded;
    EXPECT_TRUE(listed.output.contains("output.weight")) << "what can be read is listed";
  }
}

TEST(Refusals, PartsWithSwappedNamesAreRecognised) {
  const TempFolder folder;
  const std::vector<fs::path> parts = model_files("small", 3);
  const auto name = [&](int number) {
    return folder.path() / std::format("m-0000{}-of-00003.gguf", number);
  };
  fs::copy(parts[0], name(1));
  fs::copy(parts[1], name(3));
  fs::copy(parts[2], name(2));
  const auto swapped = GgufIndex::inspect(name(1));
  ASSERT_FALSE(swapped.faults().empty());
  EXPECT_EQ(swapped.faults()[0].kind, GgufFault::Kind::WrongPart);
  EXPECT_TRUE(swapped.faults()[0].message.contains("part 3 of 3, but its name says part 2"))
      << swapped.faults()[0].message;
  const CommandResult listed =
      run_command(std::format("'{}' gguf '{}'", kTestPaths.tt, name(1).string()));
  EXPECT_NE(listed.status, 0);
  EXPECT_TRUE(listed.output.contains("parts have swapped names")) << listed.output;
  // The same part twice.
  fs::copy(parts[1], name(2), fs::copy_options::overwrite_existing);
  EXPECT_TRUE(GgufIndex::open(name(1)).error().contains("part 2 of 3, but its name says part 3"))
      << GgufIndex::open(name(1)).error();
}

// What llama.cpp finds itself: the first error is in the answer, all are in the log.
TEST(Refusals, FirstErrorOfLlamaCppIsTheReason) {
  const TempFolder folder, data;
  struct Case {
    const char* id;
    std::string words;
  };
  std::vector<Case> cases;
  const fs::path model = model_files("small").front();
  const auto path_of = [&](const char* id) { return folder.path() / std::format("{}.gguf", id); };
  const auto with = [&](const char* id, const char* words, const Change& change) {
    with_changes(model, path_of(id), change);
    cases.push_back({id, words});
  };
  const auto edited = [&](const char* id, const char* words, auto edit) {
    with_edits(model, path_of(id), [](gguf_context*) {}, edit);
    cases.push_back({id, words});
  };
  with("key", "key not found in model: llama.block_count",
       [](gguf_context* file) { gguf_remove_key(file, "llama.block_count"); });
  with("type", "llama.block_count has wrong type",
       [](gguf_context* file) { gguf_set_val_str(file, "llama.block_count", "two"); });
  with("layers", "tensor 'blk.2.attn_norm.weight' not found",
       [](gguf_context* file) { gguf_set_val_u32(file, "llama.block_count", 3); });
  with("fewer", "wrong number of tensors; expected",
       [](gguf_context* file) { gguf_set_val_u32(file, "llama.block_count", 1); });
  with("tokenizer", "unknown tokenizer: 'newtok'",
       [](gguf_context* file) { gguf_set_val_str(file, "tokenizer.ggml.model", "newtok"); });
  with("no-tokenizer", "key not found in model: tokenizer.ggml.model",
       [](gguf_context* file) { gguf_remove_key(file, "tokenizer.ggml.model"); });
  with("pre", "unknown pre-tokenizer type: 'newpre'", [](gguf_context* file) {
    gguf_set_val_str(file, "tokenizer.ggml.model", "gpt2");
    gguf_set_val_str(file, "tokenizer.ggml.pre", "newpre");
    const char* merges[] = {"a b"};
    gguf_set_arr_str(file, "tokenizer.ggml.merges", merges, 1);
  });
  with("heads", "tensor 'blk.0.attn_q.weight' has wrong shape",
       [](gguf_context* file) { gguf_remove_key(file, "llama.attention.head_count"); });
  edited("shape", "tensor 'blk.0.ffn_down.weight' has wrong shape",
         [](ggml_tensor& tensor, std::vector<char>&) {
           if (std::string_view(tensor.name) == "blk.0.ffn_down.weight") tensor.ne[1] *= 2;
         });
  edited("missing", "tensor 'blk.0.ffn_down.weight' not found",
         [](ggml_tensor& tensor, std::vector<char>&) {
           if (std::string_view(tensor.name) == "blk.0.ffn_down.weight")
             ggml_set_name(&tensor, "blk.0.other.weight");
         });

  RunningServer server(data.path(), {"--no-model", "--models-dir", folder.path().string(),
                                     "--log-level", "trace", "-c", "256"});
  // Each is in the list before anybody loads it.
  const auto listed = [&](const char* id) { return entry_of(server, id); };
  std::vector<std::string> errors;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.id);
    EXPECT_TRUE(wait_until([&] { return listed(c.id)["state"] == "failed"; })) << listed(c.id);
    errors.push_back(listed(c.id).value("error", ""));
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    SCOPED_TRACE(c.id);
    const std::string error = server.load(c.id);
    EXPECT_EQ(errors[i], error);
    EXPECT_TRUE(error.contains(c.words)) << error;
    EXPECT_TRUE(error.contains(path_of(c.id).string())) << error;
    EXPECT_FALSE(error.contains("Download")) << error;
    EXPECT_EQ(entry_of(server, c.id)["error"], error);
    const auto again = http_client(server.url)
                           .Post("/api/v1/generate",
                                 json{{"model", c.id}, {"tokens", {1}}, {"max_tokens", 1}}.dump(),
                                 "application/json");
    ASSERT_TRUE(again);
    EXPECT_EQ(again->status, 422) << again->body;
    EXPECT_TRUE(again->body.contains("model_failed")) << again->body;
  }
  const std::string log = server.program.stderr_text();
  EXPECT_TRUE(log.contains("error loading model: ")) << "the line as llama.cpp wrote it";
  EXPECT_TRUE(log.contains("llama_model_loader: loaded meta data")) << "lines of every level";

  const std::string verbose = record(path_of("key"), "--verbose");
  EXPECT_TRUE(verbose.contains("llama_model_loader: loaded meta data")) << verbose;
  EXPECT_TRUE(verbose.contains("error loading model: error loading model hyperparameters"))
      << verbose;
  const std::string brief = record(path_of("key"));
  EXPECT_TRUE(brief.contains("key not found in model: llama.block_count")) << brief;
  EXPECT_FALSE(brief.contains("llama_model_loader")) << brief;
}

// The check of the models folder: not of models that llama.cpp accepts, again if a file is
// replaced, not while another model runs.
TEST(Refusals, TheModelsFolderIsCheckedInTheBackground) {
  const TempFolder folder, data;
  const fs::path model = model_files("small").front(), changing = folder.path() / "changing.gguf";
  const Change break_it = [](gguf_context* file) { gguf_remove_key(file, "tokenizer.ggml.model"); };
  const std::string words = "key not found in model: tokenizer.ggml.model";
  fs::copy_file(model, folder.path() / "good.gguf");
  with_changes(model, changing, break_it);
  RunningServer server(data.path(), {"--no-model", "--models-dir", folder.path().string()});
  const auto state = [&](const std::string& id) {
    for (const json& entry : server.get("/api/v1/models")["models"])
      if (entry["id"] == id) return entry["state"].get<std::string>();
    return std::string();
  };
  ASSERT_TRUE(wait_until([&] { return state("changing") == "failed"; }));
  EXPECT_TRUE(wait_until([&] { return server.program.stderr_text().contains(words); }));
  // Sorted by path: all models before the last one are checked.
  fs::copy_file(model, changing, fs::copy_options::overwrite_existing);
  with_changes(model, folder.path() / "last.gguf", break_it);
  ASSERT_TRUE(wait_until([&] { return state("last") == "failed"; }));
  EXPECT_EQ(state("changing"), "available");
  EXPECT_EQ(state("good"), "available");

  ASSERT_EQ(server.load("good"), "");
  const std::string session = server.start_long_request();
  ASSERT_NE(session, "");
  with_changes(model, changing, break_it);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < until) EXPECT_EQ(state("changing"), "available");
  (void)http_client(server.url).Delete("/api/v1/generate/" + session);
  EXPECT_TRUE(wait_until([&] { return state("changing") == "failed"; }))
      << "checked when nothing runs any more";
}

// --model, not only the models folder: the same words in the list of models; all lines in the log.
TEST(Refusals, ModelOfTheCommandLineIsRefusedWithItsReason) {
  const TempFolder folder;
  const fs::path lora =
      write(folder.path() / "lora.gguf", GgufBytes()
                                             .text("general.architecture", "llama")
                                             .text("general.type", "adapter")
                                             .tensor("blk.0.attn_q.weight.lora_a", 64)
                                             .bytes());
  const fs::path newer = folder.path() / "newer.gguf";
  with_changes(model_files("small").front(), newer, [](gguf_context* file) {
    gguf_set_val_str(file, "general.architecture", "newarch9");
  });
  struct Case {
    fs::path path;
    const char *words, *of_library;  // of_library: llama.cpp's own line
  };
  const Case cases[] = {
      {lora, "not a model: its type is \"adapter\"", ""},
      {newer, "unknown model architecture: 'newarch9'",
       "error loading model: unknown model architecture: 'newarch9'"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.path);
    const TempFolder data;
    RunningServer server(data.path(), {"--model", c.path.string(), "--log-level", "trace"});
    json entry;
    EXPECT_TRUE(wait_until([&] {
      entry = server.get("/api/v1/models")["models"].at(0);
      return entry["state"] == "failed";
    })) << entry;
    const std::string error = entry["error"];
    EXPECT_TRUE(error.contains(c.words)) << error;
    EXPECT_EQ(record(c.path), "tt record: " + error + "\n");
    EXPECT_TRUE(wait_until([&] { return server.program.stderr_text().contains(c.words); }))
        << server.program.stderr_text();
    EXPECT_TRUE(server.program.stderr_text().contains(c.of_library))
        << server.program.stderr_text();
    EXPECT_TRUE(record(c.path, "--verbose").contains(c.of_library));
  }
}

// A download of several models into one folder.
TEST(Refusals, PartOfAnotherModelIsRecognised) {
  const TempFolder folder;
  const std::vector<fs::path> parts = model_files("small", 3), others = model_files("moe", 3),
                              fewer = model_files("small", 2);
  const auto name = [&](int number) {
    return folder.path() / std::format("m-0000{}-of-00003.gguf", number);
  };
  for (std::size_t i = 0; i < 3; ++i) fs::copy(parts[i], name(static_cast<int>(i) + 1));
  ASSERT_TRUE(GgufIndex::open(name(1)).has_value());
  struct Case {
    fs::path part;
    const char* words;
  };
  for (const Case& c : {Case{fewer[1], "not part 2 of 3 of this model, but part 2 of 2 of another"},
                        Case{others[1], "of another model"}}) {
    SCOPED_TRACE(c.part);
    fs::copy(c.part, name(2), fs::copy_options::overwrite_existing);
    const auto index = GgufIndex::open(name(1));
    ASSERT_FALSE(index.has_value());
    EXPECT_TRUE(index.error().contains(c.words)) << index.error();
    EXPECT_EQ(record(name(1)), "tt record: " + index.error() + "\n");
    const CommandResult listed =
        run_command(std::format("'{}' gguf '{}'", kTestPaths.tt, name(1).string()));
    EXPECT_NE(listed.status, 0);
    EXPECT_TRUE(listed.output.contains("tt gguf: " + index.error())) << listed.output;
  }
}

// llama.cpp does not look at the type of a file whose architecture it knows.
TEST(Refusals, TypesThatLlamaCppDoesNotKnowAreNotRefused) {
  const TempFolder folder;
  for (const char* type : {"finetune", "vocab", ""}) {
    SCOPED_TRACE(type);
    const fs::path path =
        with_changes(model_files("small").front(), folder.path() / "typed.gguf",
                     [&](gguf_context* file) { gguf_set_val_str(file, "general.type", type); });
    const CommandResult recorded = run_command(std::format(
        "'{}' record -m '{}' -p x -n 1 -c 256 -q --level off", kTestPaths.tt, path.string()));
    EXPECT_EQ(recorded.status, 0) << recorded.output;
    const LlamaServer llama_server(path, {"-c", "256", "--no-warmup"});
    EXPECT_TRUE(llama_server.started()) << llama_server.log();
  }
}

// Two whole models joined: the first one is used, with a warning.
TEST(Refusals, SecondFileBehindAModelIsAWarningOfTheLoad) {
  const TempFolder folder, data;
  const fs::path path = write(folder.path() / "two.GGUF", small_model() + small_model());
  RunningServer server(data.path(),
                       {"--no-model", "--models-dir", folder.path().string(), "-c", "256"});
  EXPECT_EQ(entry_of(server, "two")["state"], "available");
  EXPECT_EQ(server.load("two"), "");
  const json entry = entry_of(server, "two");
  ASSERT_TRUE(entry["warning"].is_string()) << entry;
  const std::string warning = entry["warning"];
  EXPECT_TRUE(warning.contains("another GGUF file begins after the last tensor, at byte " +
                               std::to_string(small_model().size())))
      << warning;
  EXPECT_TRUE(warning.contains(path.string())) << warning;
  const CommandResult listed =
      run_command(std::format("'{}' gguf '{}'", kTestPaths.tt, path.string()));
  EXPECT_EQ(listed.status, 0);
  EXPECT_TRUE(listed.output.contains("another GGUF file begins")) << listed.output;
}

// Names in files may contain escape sequences for the terminal.
TEST(Refusals, ControlCharactersInNamesArePrintedEscaped) {
  const TempFolder folder;
  const fs::path path = folder.path() / "escape.gguf";
  with_changes(model_files("small").front(), path, [](gguf_context* file) {
    gguf_set_val_str(file, "general.architecture", "new\x1b[31m");
  });
  for (const std::string& output :
       {record(path, "--verbose"),
        run_command(std::format("'{}' gguf '{}'", kTestPaths.tt, path.string())).output}) {
    EXPECT_TRUE(output.contains("new\\x1b[31m")) << output;
    EXPECT_FALSE(output.contains('\x1b')) << output;
  }
}

// Each allocation of a load may fail. The model is refused, and a smaller one is loaded.
TEST(Refusals, ModelThatDoesNotFitIntoTheMemoryLimitIsRefused) {
  const TempFolder folder, data;
  copy_model(folder.path(), "small", "small", 1);
  copy_model(folder.path(), "large", "small", 24);
  RunningServer server(
      data.path(), {"--no-model", "--models-dir", folder.path().string(), "-c", "65536", "-t", "1"},
      {}, "ulimit -d 700000");
  const std::string error = server.load("large");
  EXPECT_TRUE(error.contains("-c")) << error;
  EXPECT_TRUE(error.contains("llama.cpp cannot create a context of") || error.contains("memory"))
      << error;
  // The file is not refused: with more memory, the next try succeeds.
  const auto request =
      http_client(server.url)
          .Post("/api/v1/generate",
                json{{"model", "large"}, {"tokens", {1}}, {"max_tokens", 1}}.dump(),
                "application/json");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->status, 503) << request->body;
  EXPECT_TRUE(request->has_header("Retry-After"));
  EXPECT_TRUE(request->body.contains("model_failed")) << request->body;
  EXPECT_EQ(server.load("small"), "");
  EXPECT_EQ(server.get("/api/v1/health")["model_state"], "loaded");
}

// The private memory of a process, in KiB, as RLIMIT_DATA counts it.
std::uint64_t data_kib(pid_t pid) {
  std::ifstream status(std::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) return std::stoull(line.substr(7));
  return 0;
}

// Whatever a limit leaves to a load, the server answers, and says what to do.
TEST(Refusals, NoMemoryLimitEndsTheServerOrItsAnswers) {
  const TempFolder folder;
  copy_model(folder.path(), "small", "small", 24);
  const std::vector<std::string> more = {
      "--no-model", "--models-dir", folder.path().string(), "-c", "8192", "-t", "1"};
  std::uint64_t idle = 0;
  {
    const TempFolder data;
    RunningServer server(data.path(), more);
    ASSERT_EQ(server.get("/api/v1/health")["status"], "ok");
    idle = data_kib(server.program.pid());
  }
  std::size_t refused = 0, loaded = 0;
  for (const std::uint64_t mib :
       {24U, 40U, 60U, 68U, 80U, 100U, 120U, 140U, 170U, 200U, 250U, 1000U}) {
    SCOPED_TRACE(std::format("{} MiB more than the idle server has", mib));
    const TempFolder data;
    RunningServer server(data.path(), more, {}, std::format("ulimit -d {}", idle + mib * 1024));
    const std::string error = server.load("small");
    EXPECT_EQ(server.get("/api/v1/health")["status"], "ok");
    if (error.empty()) {
      ++loaded;
      const auto answer =
          http_client(server.url)
              .Post("/api/v1/generate",
                    json{{"tokens", {1}}, {"max_tokens", 2}, {"ignore_eos", true}}.dump(),
                    "application/json");
      ASSERT_TRUE(answer) << server.program.stderr_text();
      ASSERT_EQ(answer->status, 202) << answer->body;
      const json ended = server.wait_for_end(json::parse(answer->body)["id"]);
      EXPECT_EQ(ended["generated"], 2) << ended;
    } else {
      ++refused;
      EXPECT_TRUE(error.contains("raise the") || error.contains("less memory")) << error;
      EXPECT_FALSE(error.contains("checksum")) << error;
    }
  }
  EXPECT_GE(refused, 3U);
  EXPECT_GE(loaded, 1U);
}

}  // namespace
}  // namespace tt::test
