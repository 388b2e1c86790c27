// A tiny model written by llama.cpp's own test-llama-archs: real architecture, random weights,
// no vocabulary.
#pragma once

#include <filesystem>
#include <string>

namespace tt::test {

// `file` is that program's file name: "gemma3-dense", "jamba-dense". Written once per test
// program.
std::filesystem::path arch_model(const std::string& file);

}  // namespace tt::test
