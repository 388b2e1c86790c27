#include "tracer/text/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tt {
namespace {

using Names = std::vector<std::string>;

TEST(NearestNames, AreSimilarOnesTheBestFirst) {
  const Names verbs = {"record", "show", "hot", "parse", "pattern", "report", "export", "import"};
  const std::pair<const char*, Names> cases[] = {
      {"hott", {"hot"}},     {"prase", {"parse"}}, {"SHOW", {"show"}}, {"reprot", {"report"}},
      {"impor", {"import"}}, {"frobnicate", {}},   {"", {}},           {"x", {}},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(nearest_names(text, verbs), expected) << text;
}

TEST(NearestNames, MatchAPartOfAName) {
  const Names tensors = {"token_embd.weight", "blk.0.attn_q.weight", "blk.0.ffn_down.weight",
                         "blk.1.attn_q.weight", "blk.1.ffn_down.weight"};
  EXPECT_EQ(nearest_names("atn_q", tensors), Names{"blk.0.attn_q.weight"});
  EXPECT_EQ(nearest_names("blk.7.ffn_dwn.weight", tensors), Names{"blk.0.ffn_down.weight"});
}

TEST(NearestNames, ArePartsOfTheText) {
  EXPECT_EQ(nearest_names("--grammar-file", {"--file", "--grammar"}), Names{"--grammar"});
}

// Only where the name exists, and also if another name is similar to the text.
TEST(NearestNames, AreTranslatedFromOtherPrograms) {
  EXPECT_EQ(nearest_names("Decode", {"prompt", "generate", "encode"}), Names{"generate"});
  EXPECT_EQ(nearest_names("decode", {"prompt", "encode"}), Names{"encode"});
  EXPECT_EQ(nearest_names("matmul", {"RMS_NORM+MUL", "MUL_MAT"}), Names{"MUL_MAT"});
}

TEST(NearestNames, LongTextIsCut) {
  EXPECT_TRUE(nearest_names(std::string(1'000'000, 'a'), {std::string(1'000'000, 'b')}).empty());
}

TEST(DidYouMean, IsASentence) {
  EXPECT_EQ(did_you_mean("hott", {"show"}), "");
  EXPECT_EQ(did_you_mean("hott", {"hot"}), ". Did you mean hot?");
  EXPECT_EQ(did_you_mean("step", {"steps", "stop"}), ". Did you mean steps or stop?");
  EXPECT_EQ(did_you_mean("cat", {"cap", "car", "can", "cab"}), ". Did you mean cap, car or can?");
}

}  // namespace
}  // namespace tt
