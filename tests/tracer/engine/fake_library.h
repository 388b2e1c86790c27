// A fake libllama that deviates from the tested versions. The functions in odd_library.cpp
// override the library's own in this program and forward to them, except for the deviations
// requested here.
#pragma once

#include <limits>

namespace tt::test {

struct FakeLibrary {
  static constexpr int kNever = std::numeric_limits<int>::max();

  const char* llama = nullptr;  // reported version; null: the real one
  const char* ggml = nullptr;

  // In the context created first (the self-check times it fast), one tick of this decode,
  // counted from 0, is lost.
  int tick_lost_in = kNever;
  // The context created second (the self-check runs it op by op) uses another cache type, or
  // gets other tokens.
  bool other_graph = false;
  bool other_tokens = false;
  // No graph equals an earlier one.
  bool new_graph_each_time = false;
};

// Applies from now on. Call it before any context is created.
void configure_library(const FakeLibrary& library);

}  // namespace tt::test
