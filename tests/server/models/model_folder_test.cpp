// Scanning a folder for models.
#include "server/models/model_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "tests/server/models/gguf_bytes.h"
#include "tests/server/models/model_files.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
std::map<std::string, FoundModel> by_name(ModelFolder& folder) {
  std::map<std::string, FoundModel> out;
  for (FoundModel& model : folder.scan())
    out.emplace(model.path.lexically_relative(folder.path()).string(), std::move(model));
  return out;
}

TEST(ModelFolder, FindsModelsRecursivelyAndGroupsSplits) {
  const TempFolder folder;
  copy_model(folder.path(), "dense", "small");
  copy_model(folder.path() / "more" / "deeper", "state", "mamba");
  fs::create_directories(folder.path() / "split");
  const std::vector<fs::path> parts = model_files("small", 3);
  for (const fs::path& part : parts) fs::copy(part, folder.path() / "split");
  std::ofstream(folder.path() / "notes.txt") << "not a model";

  ModelFolder models(folder.path());
  const auto found = by_name(models);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found.at("dense.gguf").stem, "dense");
  EXPECT_EQ(found.at("dense.gguf").error, "");
  EXPECT_EQ(found.at("dense.gguf").bytes(), fs::file_size(folder.path() / "dense.gguf"));
  EXPECT_EQ(found.at("more/deeper/state.gguf").error, "");
  const FoundModel& split = found.at("split/" + parts[0].filename().string());
  EXPECT_EQ(split.stem, "small-3-2");
  EXPECT_EQ(split.files.size(), 3U);
  EXPECT_EQ(split.bytes(),
            fs::file_size(parts[0]) + fs::file_size(parts[1]) + fs::file_size(parts[2]));
  EXPECT_EQ(split.error, "");
}

TEST(ModelFolder, ReportsWhyFileIsNotAModel) {
  const TempFolder folder;
  const auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder.path() / name, std::ios::binary) << bytes;
  };
  write("text.gguf", "Once upon a time");
  write("empty.gguf", "");
  write("mmproj.gguf", GgufBytes().text("general.architecture", "clip").tensor("a", 4).bytes());
  write("lora.gguf", GgufBytes()
                         .text("general.architecture", "llama")
                         .text("general.type", "adapter")
                         .tensor("a", 4)
                         .bytes());
  write("vocabulary.gguf", GgufBytes().text("general.architecture", "llama").bytes());
  write("nameless.gguf", GgufBytes().tensor("a", 4).bytes());
  write("vector.gguf",
        GgufBytes().text("general.architecture", "controlvector").tensor("direction.1", 4).bytes());
  write("image.GGUF", GgufBytes().text("general.architecture", "flux").tensor("a", 4).bytes());
  write("new.Gguf", GgufBytes().text("general.architecture", "newarch9").tensor("a", 4).bytes());
  copy_model(folder.path(), "cut", "small");
  fs::resize_file(folder.path() / "cut.gguf", fs::file_size(folder.path() / "cut.gguf") / 2);
  const std::vector<fs::path> parts = model_files("small", 3);
  fs::copy(parts[1], folder.path());  // part 2 alone
  fs::create_directories(folder.path() / "incomplete");
  fs::copy(parts[0], folder.path() / "incomplete");
  fs::copy(parts[2], folder.path() / "incomplete");

  ModelFolder models(folder.path());
  const auto found = by_name(models);
  const std::map<std::string, std::string> says = {
      {"text.gguf", "not a GGUF file"},
      {"empty.gguf", "not a GGUF file"},
      {"mmproj.gguf", "image projector"},
      {"lora.gguf", "its type is \"adapter\""},
      {"vocabulary.gguf", "no tensors"},
      {"nameless.gguf", "general.architecture"},
      {"vector.gguf", "it is a control vector"},
      {"image.GGUF", "image or video model"},
      {"new.Gguf", "unknown model architecture: 'newarch9'"},
      {"cut.gguf", "truncated"},
      {parts[1].filename().string(), "00001-of-00003.gguf, which does not exist"},
      {"incomplete/" + parts[0].filename().string(), "00002-of-00003.gguf: No such file"}};
  EXPECT_EQ(found.size(), says.size());
  for (const auto& [name, reason] : says) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_NE(found.at(name).error.find(reason), std::string::npos) << found.at(name).error;
    EXPECT_NE(found.at(name).error.find(folder.path().string()), std::string::npos);
  }
}

TEST(ModelFolder, ListsLinksThatLeadOutsideWithoutFollowingThem) {
  const TempFolder folder, outside;
  const fs::path secret = copy_model(outside.path(), "secret", "small");
  copy_model(folder.path() / "blobs", "blob", "small");
  fs::rename(folder.path() / "blobs" / "blob.gguf", folder.path() / "blobs" / "sha256-1");
  fs::create_symlink(secret, folder.path() / "leak.gguf");
  fs::create_symlink("../" + outside.path().filename().string() + "/secret.gguf",
                     folder.path() / "relative.gguf");
  fs::create_directory_symlink(outside.path(), folder.path() / "leaks");
  fs::create_directory_symlink(folder.path(), folder.path() / "round");
  fs::create_symlink("/nonexistent", folder.path() / "dangling.gguf");
  fs::create_symlink("blobs/sha256-1",
                     folder.path() / "named.gguf");  // as in the Hugging Face cache
  fs::create_symlink("named.gguf", folder.path() / "twice.gguf");
  EXPECT_EQ(::mkfifo((folder.path() / "pipe.gguf").c_str(), 0600), 0);
  fs::create_symlink("pipe.gguf", folder.path() / "pipes.gguf");
  fs::create_directory(folder.path() / "folder.gguf");
  // A split of which all parts, or one part, link outside.
  const std::vector<fs::path> away = model_files("small", 2);
  for (const fs::path& part : away) fs::create_symlink(part, folder.path() / part.filename());
  const std::vector<fs::path> parts = model_files("small", 3);
  fs::copy(parts[0], folder.path());
  fs::copy(parts[1], folder.path());
  fs::create_symlink(parts[2], folder.path() / parts[2].filename());

  ModelFolder models(folder.path());
  const auto found = by_name(models);
  std::string names;
  for (const auto& [name, model] : found) names += name + " ";
  EXPECT_EQ(names, "dangling.gguf leak.gguf leaks named.gguf pipes.gguf relative.gguf round " +
                       away[0].filename().string() + " " + parts[0].filename().string() + " ");
  for (const char* name : {"leaks", "round"}) {
    EXPECT_EQ(found.at(name).error,
              (folder.path() / name).string() +
                  ": links to folders are not followed. Move the models into the models folder, or "
                  "start the server with --models-dir.");
    EXPECT_EQ(found.at(name).files, std::vector{FileStamp{.path = folder.path() / name}});
  }
  EXPECT_EQ(found.at("named.gguf").error, "");
  for (const std::string name : {"dangling.gguf", "leak.gguf", "pipes.gguf", "relative.gguf",
                                 away[0].filename().string().c_str()}) {
    const FoundModel& model = found.at(name);
    EXPECT_TRUE(model.is_outside) << name;
    EXPECT_EQ(model.error, (folder.path() / name).string() +
                               ": this link does not lead to a file in the models folder. Move the "
                               "file into the folder, or start the server with --model.");
    // Whether the target exists, and its size, are not shown.
    EXPECT_EQ(model.name, model.stem) << name;
    EXPECT_EQ(model.files, std::vector{FileStamp{.path = folder.path() / name}}) << name;
  }
  const FoundModel& leaky = found.at(parts[0].filename().string());
  EXPECT_TRUE(leaky.is_outside);
  EXPECT_NE(leaky.error.find("is outside the models folder"), std::string::npos) << leaky.error;
}

TEST(ModelFolder, DetectsAddedRemovedAndChangedFiles) {
  const TempFolder folder;
  ModelFolder models(folder.path());
  EXPECT_TRUE(models.scan().empty());
  const fs::path path = copy_model(folder.path(), "a", "small");
  EXPECT_EQ(by_name(models).at("a.gguf").error, "");
  const auto size = fs::file_size(path);
  fs::resize_file(path, size / 2);
  EXPECT_NE(by_name(models).at("a.gguf").error, "");
  copy_model(folder.path(), "a", "small");
  EXPECT_EQ(by_name(models).at("a.gguf").error, "");
  // The last part of a split is added later.
  const std::vector<fs::path> parts = model_files("small", 3);
  fs::copy(parts[0], folder.path());
  fs::copy(parts[1], folder.path());
  const std::string first = parts[0].filename().string();
  EXPECT_NE(by_name(models).at(first).error, "");
  fs::copy(parts[2], folder.path());
  EXPECT_EQ(by_name(models).at(first).error, "");
  fs::remove_all(folder.path());
  EXPECT_TRUE(models.scan().empty()) << "the folder does not exist";
  EXPECT_TRUE(ModelFolder("").scan().empty());
}

}  // namespace
}  // namespace tt::test
