// What if an op had computed something else: a change of its output at a stop, as a line of text
// that the terminal, REST and the page share.
//
//   zero [WHICH] | scale [WHICH] NUMBER | set [WHICH] NUMBER
//
// WHICH is [indices] (Selection), `head N` or `expert N`; without it, everything. docs/debug.md
// describes this for users.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <variant>
#include <vector>

#include "tracer/debug/selection.h"
#include "tracer/request/debug_state.h"

struct ggml_tensor;

namespace tt {

class Change {
 public:
  // The error text is a sentence.
  static std::expected<Change, std::string> parse(const std::string& text);
  // Changes the output of an op that has run, of a model with `n_heads` attention heads. Returns
  // the number of elements that were chosen. The error text is a sentence; then nothing is changed.
  std::expected<std::uint64_t, std::string> apply(ggml_tensor& output, std::uint32_t n_heads) const;
  // What apply() returns, without changing the output.
  std::expected<std::uint64_t, std::string> count(const ggml_tensor& output,
                                                  std::uint32_t n_heads) const;
  const std::string& text() const { return text_; }

 private:
  // Calls `visit(offset, elements)` with the chosen part of each row, and returns the number of all
  // elements.
  template <class Visit>
  std::expected<std::uint64_t, std::string> for_each_row(const ggml_tensor& output,
                                                         std::uint32_t n_heads, Visit visit) const;
  struct Head {
    std::uint64_t index = 0;
  };
  struct Expert {
    std::int32_t index = 0;
  };
  std::string text_;
  std::variant<Selection, Head, Expert> which_;
  bool scales_ = false;  // else sets
  float number_ = 0;
};

// The parts of an output that has been computed which a change can choose, as in
// DebugStop::changeable.
std::vector<std::string> changeable_parts(const ggml_tensor& output, std::uint32_t n_heads);

// "step 0, op 57, layer 3: MUL_MAT Qcur-3: zero head 2 (128 elements)", and of a kept change "steps
// 1 to 7, op 57, ...: zero head 2 (16 elements each)", with "; ended at step 8: ..." if it ended.
std::string to_text(const MadeChange& made);

}  // namespace tt
