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
  std::uint64_t bytes = 0;  // total of all files
  std::chrono::milliseconds took{};
};

// Called on the writing thread several times per megabyte; return false to cancel. Counts bytes
// of tensor data, without padding. May be empty.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// The files that write_model() would write: `path`, or its parts if split.
std::vector<std::filesystem::path> model_files(const ModelSpec& spec,
                                               const std::filesystem::path& path);

// Writes the model to `path`, or with spec.splits > 1 to stem-00001-of-0000N.gguf in the same
// folder, as llama.cpp names split files. Files are written with the suffix ".partial" and
// renamed when all are complete. On an error or a cancel the partial files are removed. Uses
// one thread and a few MB of memory; tinyllama-1.1b takes seconds.
std::expected<WriteReport, ModelError> write_model(const ModelSpec& spec,
                                                   const std::filesystem::path& path,
                                                   const Progress& progress = {});

}  // namespace tt::modelgen
