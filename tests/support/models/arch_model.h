// One of the tiny models that llama.cpp's own test-llama-archs can write: real
// architectures, random weights, no vocabulary.
#pragma once

#include <filesystem>
#include <string>

namespace tt::test {

// `file` as that program names it: "gemma3-dense", "jamba-dense". Written once per test program.
std::filesystem::path arch_model(const std::string& file);

}  // namespace tt::test
