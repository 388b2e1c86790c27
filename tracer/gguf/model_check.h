// Loads a model in a child process first, because a damaged file can make the library abort.
#pragma once

#include <chrono>
#include <expected>
#include <filesystem>
#include <stop_token>
#include <string>

namespace tt {

// Timeout for check_model(): a fixed time plus the time to read all files of the model from a
// slow disk.
std::chrono::milliseconds model_check_timeout(const std::filesystem::path& model);

// Runs `checker` (tt-check-model), which loads `model`, creates a small context and tokenizes
// a text and a conversation. The error says why the model cannot be used and what to do.
// Any thread. The child is killed when it exceeds `timeout` or when `stop` is requested.
std::expected<void, std::string> check_model(
    const std::filesystem::path& checker, const std::filesystem::path& model,
    std::chrono::milliseconds timeout = std::chrono::minutes(2), const std::stop_token& stop = {});

}  // namespace tt
