// Tries a model in a child process first: a damaged file can make the library
// abort, and then it is the child that dies.
#pragma once

#include <chrono>
#include <expected>
#include <filesystem>
#include <stop_token>
#include <string>

namespace tt {

// How long a model may take to load before it counts as damaged: some time for its
// tables, and the bytes of all its files from a slow disk. Loading can be cancelled meanwhile.
std::chrono::milliseconds check_patience(const std::filesystem::path& model);

// Runs `checker` (the program tt-check-model), which loads `model`, makes a small context
// and reads a text and a conversation. The error says why the model cannot be used and what to do.
// Any thread; the child is ended when it exceeds `timeout` or a stop is asked for.
std::expected<void, std::string> check_model(
    const std::filesystem::path& checker, const std::filesystem::path& model,
    std::chrono::milliseconds timeout = std::chrono::minutes(2), const std::stop_token& stop = {});

}  // namespace tt
