// A libllama that behaves otherwise than ours was tested with. The functions in
// odd_library.cpp stand before the library's own in this program, and do what those do
// but for what is asked for here.
#pragma once

#include <limits>

namespace tt::test {

struct OddLibrary {
  static constexpr int kNever = std::numeric_limits<int>::max();

  const char* llama = nullptr;  // version that it says; null: the real one
  const char* ggml = nullptr;

  // In the context that is made first (of the self-check: the one that runs fast) one tick
  // is lost in this decode, counted from 0.
  int tick_lost_in = kNever;
  // The context that is made second (the one that is cut after every op) has another type
  // of cache; is given other tokens.
  bool other_graph = false;
  bool other_tokens = false;
  // No graph is ever the one before.
  bool restless = false;
};

// From now on, with nothing made yet.
void behave(const OddLibrary& odd);

}  // namespace tt::test
