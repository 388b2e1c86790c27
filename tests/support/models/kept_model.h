// Models that all test programs generate alike: the first one keeps its files in the build folder,
// and each gets a copy of its own. (Random weights and their quantization take ten times as long
// as a copy.) The build removes kept models when the generator changes.
#pragma once

#include <ggml.h>
#include <unistd.h>

#include <expected>
#include <filesystem>
#include <format>
#include <string>
#include <system_error>
#include <vector>

#include "tests/support/test_paths.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {

// The name of a kept model. Of each field: a new one does not compile until it is here, too.
inline std::string kept_name(const modelgen::ModelSpec& spec) {
  const auto& [shape, dims, quant, class_type, seed, splits, router_skew, tied, pieces] = spec;
  const auto& [layers, embd, heads, kv_heads, ff, vocab, context, experts, experts_used] = dims;
  std::string name =
      std::format("{}-{}-{}-{}-{}-{}", shape, quant, seed, splits, router_skew, tied);
  for (const auto& size :
       {layers, embd, heads, kv_heads, ff, vocab, context, experts, experts_used})
    name += size ? std::format("-{}", *size) : "-";
  for (const auto& [tensors, type] : class_type)
    name += std::format("-{}={}", static_cast<int>(tensors), ggml_type_name(type));
  return name;
}

// Like modelgen::write_model(): the files of the model at `path`.
inline std::expected<std::vector<std::filesystem::path>, modelgen::ModelError> write_kept_model(
    const modelgen::ModelSpec& spec, const std::filesystem::path& path) {
  if (!spec.pieces.empty())  // too long for a name
    return modelgen::write_model(spec, path).transform([](const modelgen::WriteReport& report) {
      return report.files;
    });
  const std::filesystem::path kept = built_program("../test_models/" + kept_name(spec));
  if (!std::filesystem::exists(kept)) {
    const std::filesystem::path made = std::format("{}.{}", kept.string(), ::getpid());
    std::filesystem::create_directories(made);
    const auto report = modelgen::write_model(spec, made / "model.gguf");
    std::error_code kept_by_another;
    if (report) std::filesystem::rename(made, kept, kept_by_another);
    if (!report || kept_by_another) std::filesystem::remove_all(made);
    if (!report) return std::unexpected(report.error());
  }
  const auto from = modelgen::model_files(spec, kept / "model.gguf");
  const auto files = modelgen::model_files(spec, path);
  for (std::size_t i = 0; i < files.size(); ++i)
    std::filesystem::copy_file(from[i], files[i],
                               std::filesystem::copy_options::overwrite_existing);
  return files;
}

}  // namespace tt::test
