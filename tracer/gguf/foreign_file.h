// Recognises what users give instead of a GGUF file, by its first bytes and its name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "tracer/gguf/gguf_fault.h"

namespace tt {

constexpr std::size_t kForeignBytes = 1024;  // that are examined

// `begin`: the first kForeignBytes of the file, or all of it. They do not start with "GGUF".
GgufFault foreign_file(const std::filesystem::path& path, std::string_view begin);

// A folder instead of a file: what is in it, and what to give instead.
GgufFault folder_instead_of_file(const std::filesystem::path& path);

// What to do about a file that ends too early.
std::string truncated_advice(const std::filesystem::path& path);

}  // namespace tt
