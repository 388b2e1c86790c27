// What llama.cpp's own program llama-eval-callback prints of the evaluation of a prompt: each node,
// in order, with its values. An independent list of what a graph computes.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tracer/request/model_options.h"

namespace tt::test {

struct PrintedNode {
  std::string name, type, op, shape;
  std::array<std::string, 2> sources;  // "name{shape}"; empty: none
  friend bool operator==(const PrintedNode&, const PrintedNode&) = default;
};
std::ostream& operator<<(std::ostream& out, const PrintedNode& node);

struct EvalCallbackRun {
  // With four decimals: of each dimension the first three and the last three elements, if it has
  // more than six.
  struct Values {
    std::vector<float> printed;
    double sum = 0;  // of all elements
  };
  std::vector<std::int32_t> tokens;
  std::vector<PrintedNode> nodes;
  std::vector<Values> values;  // of `nodes`
};

// A failure of the program is a failure of the test.
EvalCallbackRun run_eval_callback(const std::filesystem::path& model, const std::string& prompt,
                                  const ContextOptions& context);

// Without spaces around it: llama.cpp pads names.
std::string_view trimmed(std::string_view text);

}  // namespace tt::test
