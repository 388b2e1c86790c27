#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <vector>

#include "tracer/modelgen/model_spec.h"

namespace tt::modelgen {

struct WriteReport {
  std::vector<std::filesystem::path> files;  // more than one when split; load the first
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;  // all files together
  std::chrono::milliseconds took{};
};

// Called on the writing thread some times per megabyte; false cancels. Bytes of
// tensor data, without padding. May be empty.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// What write_model() would make of `path`: that, or its parts where it is split.
std::vector<std::filesystem::path> model_files(const ModelSpec& spec,
                                               const std::filesystem::path& path);

// Writes the model as `path`, or with spec.splits > 1 as llama.cpp's
// stem-00001-of-0000N.gguf beside it. Files grow under a name that ends in
// ".partial" and get theirs when all are complete: what has the name is whole.
// On an error or a cancel the partial files are removed. One thread, a few MB of
// memory; tinyllama-1.1b takes seconds.
std::expected<WriteReport, ModelError> write_model(const ModelSpec& spec,
                                                   const std::filesystem::path& path,
                                                   const Progress& progress = {});

}  // namespace tt::modelgen
