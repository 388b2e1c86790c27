// A tiny model written by llama.cpp's own test-llama-archs: real architecture, random weights,
// no vocabulary.
#pragma once

#include <filesystem>
#include <string>

namespace tt::test {

// `file` is that program's file name: "gemma3-dense", "jamba-dense". Written once per test
// program.
std::filesystem::path arch_model(const std::string& file);
// Whether it is such a name, and not that of a shape of generated_model().
bool is_arch_model(const std::string& name);
// The same with a vocabulary: a token for a space and for each lower-case letter, for programs
// whose prompt is a text.
std::filesystem::path arch_model_with_letters(const std::string& file);

}  // namespace tt::test
