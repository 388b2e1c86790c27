// Small models of any shape for the server's tests: written once per process, then copied.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/models/kept_model.h"
#include "tests/support/temp_folder.h"

namespace tt::test {

// All files of the model with `layers` layers.
inline const std::vector<std::filesystem::path>& model_files(const std::string& shape,
                                                             int splits = 1, int layers = 2) {
  static const TempFolder folder;
  static std::map<std::string, std::vector<std::filesystem::path>> generated;
  const std::string key = shape + "-" + std::to_string(splits) + "-" + std::to_string(layers);
  if (const auto known = generated.find(key); known != generated.end()) return known->second;
  modelgen::ModelSpec spec;
  spec.shape = shape;
  spec.splits = splits;
  spec.dims.layers = layers;
  const auto files = write_kept_model(spec, folder.path() / (key + ".gguf"));
  if (!files) ADD_FAILURE() << files.error().message;
  return generated.emplace(key, files.value_or(std::vector<std::filesystem::path>(1)))
      .first->second;
}

// Copies the model to folder/NAME.gguf.
inline std::filesystem::path copy_model(const std::filesystem::path& folder,
                                        const std::string& name, const std::string& shape,
                                        int layers = 2) {
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(model_files(shape, 1, layers).front(), folder / (name + ".gguf"),
                             std::filesystem::copy_options::overwrite_existing);
  return folder / (name + ".gguf");
}

}  // namespace tt::test
