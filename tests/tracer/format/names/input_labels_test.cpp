// The meaning of inputs in recorded steps, verified by a second method: the names that the
// library gives to most of them, and their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "tests/support/models/arch_model.h"
#include "tests/support/models/traced_model.h"

namespace tt::test {
namespace {

// The label that the name implies; null if it does not imply one.
std::optional<InputLabel> label_from_name(std::string_view name) {
  if (name.ends_with("_tokens")) return InputLabel::TokenIds;
  if (name == "inp_pos") return InputLabel::RopePositions;
  if (name.ends_with("k_idxs") || name.ends_with("v_idxs")) return InputLabel::CachePositions;
  if (name.ends_with("out_ids")) return InputLabel::OutputIds;
  if (name.ends_with("_mask")) return InputLabel::Mask;
  if (name.ends_with("s_copy")) return InputLabel::StateCopy;
  return std::nullopt;
}

// `tokens`: the tokens that the step evaluates.
int expect_list(std::string_view name, const std::vector<std::int64_t>& list,
                const std::vector<Token>& tokens) {
  const auto of_tokens = [&](auto member) {
    std::vector<std::int64_t> out;
    for (const Token& token : tokens) out.push_back(token.*member);
    return out;
  };
  if (name == "inp_tokens") {
    EXPECT_EQ(list, of_tokens(&Token::id));
  } else if (name == "inp_pos") {  // several sections: for text, the first one is the position
    EXPECT_GE(list.size(), tokens.size());
    const auto end =
        list.begin() + static_cast<std::ptrdiff_t>(std::min(list.size(), tokens.size()));
    EXPECT_EQ(std::vector(list.begin(), end), of_tokens(&Token::position));
  } else if (name.ends_with("k_idxs")) {
    EXPECT_EQ(list.size(), tokens.size());
    EXPECT_EQ(std::set(list.begin(), list.end()).size(), list.size()) << "two tokens in one cell";
  } else if (name.ends_with("out_ids")) {
    EXPECT_FALSE(list.empty());
    for (const std::int64_t row : list) EXPECT_LT(row, static_cast<std::int64_t>(tokens.size()));
  } else {
    return 0;
  }
  return 1;
}

// The labels of inputs must match their names; the lists of steps must match the session's
// tokens, positions, cells and rows. Returns the number of comparisons made.
int expect_input_labels(const SessionReader& reader) {
  int checked = 0;
  for (const TemplateId id : reader.template_ids().value()) {
    const auto graph = reader.graph(id).value();
    for (const Tensor& tensor : graph->tensors) {
      if (tensor.kind != TensorKind::Input || tensor.view_of != kNoTensor) continue;
      EXPECT_NE(tensor.input, InputLabel::None) << tensor.name;
      if (const auto label = label_from_name(tensor.name)) {
        EXPECT_EQ(to_text(tensor.input), to_text(*label)) << tensor.name;
        ++checked;
      }
    }
  }
  const auto read = reader.for_each_step(StepId{0}, 1'000'000, [&](const Step& step) {
    const auto graph = graph_of(reader, step);
    const auto tokens = reader.tokens(step.first_token, step.n_tokens).value();
    for (std::size_t i = 0; i < step.slots.size(); ++i) {
      const Tensor& list = graph->tensor(graph->root(graph->slots[i].tensor));
      if (list.kind == TensorKind::Input)
        checked += expect_list(list.name, step.slots[i].ints, tokens);
    }
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return checked;
}

void expect_labels_of_model(const std::filesystem::path& model) {
  SCOPED_TRACE(model.stem().string());
  TracedModel traced(model);
  const auto run = traced.run(greedy_tokens(17, 3));
  ASSERT_NE(run.result.reason, StopReason::Error) << run.result.error;
  EXPECT_GT(expect_input_labels(run.reader()), 2);
}

TEST(InputLabels, MatchNamesAndValues) {
  for (const modelgen::NamedShape& shape : modelgen::named_shapes()) {
    if (shape.name == "tinyllama-1.1b") continue;  // same kinds as `small`, but large
    expect_labels_of_model(generated_model({.shape = std::string(shape.name)}));
  }
  // Sliding windows, hybrid models, positions of several sections, several caches.
  for (const char* model : {"gemma3-dense", "jamba-dense", "qwen2vl-dense", "deepseek4-moe"})
    expect_labels_of_model(arch_model(model));
}

}  // namespace
}  // namespace tt::test
