// tt attach on a program that looks at an image: the projector's graphs are a session of their own,
// and the model evaluates the embeddings that it makes.
#include <ggml.h>
#include <gguf.h>

#include <map>
#include <numeric>

#include "tests/attach/attach_fixture.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"

namespace tt {
namespace {

constexpr std::int64_t kWide = 64, kTextWide = 256, kPatches = 4, kPatch = 8, kLayers = 2;

// A projector as of LLaVA, with two layers, of which it uses all but the last one, for images of
// 32 x 32 pixels.
void write_projector(const fs::path& file) {
  const GgmlContext tensors(ggml_init({std::size_t{4} << 20U, nullptr, false}));
  const GgufContext gguf(gguf_init_empty());
  const auto number = [&](const char* name, std::uint32_t value) {
    gguf_set_val_u32(gguf.get(), std::format("clip.vision.{}", name).c_str(), value);
  };
  gguf_set_val_str(gguf.get(), "general.architecture", "clip");
  gguf_set_val_str(gguf.get(), "general.name", "eye");
  gguf_set_val_bool(gguf.get(), "clip.has_vision_encoder", true);
  gguf_set_val_bool(gguf.get(), "clip.use_gelu", true);
  gguf_set_val_str(gguf.get(), "clip.projector_type", "mlp");
  number("image_size", kPatches * kPatch);
  number("patch_size", kPatch);
  number("embedding_length", kWide);
  number("feed_forward_length", 2 * kWide);
  number("projection_dim", kTextWide);
  number("block_count", kLayers);
  number("attention.head_count", 4);
  gguf_set_val_f32(gguf.get(), "clip.vision.attention.layer_norm_epsilon", 1e-5F);
  const float half[] = {0.5F, 0.5F, 0.5F};
  gguf_set_arr_data(gguf.get(), "clip.vision.image_mean", GGUF_TYPE_FLOAT32, half, 3);
  gguf_set_arr_data(gguf.get(), "clip.vision.image_std", GGUF_TYPE_FLOAT32, half, 3);
  int seed = 0;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> ne) {
    ggml_tensor* const one =
        ggml_new_tensor(tensors.get(), GGML_TYPE_F32, static_cast<int>(ne.size()), ne.data());
    ggml_set_name(one, name.c_str());
    for (std::int64_t i = 0; i < ggml_nelements(one); ++i)
      ggml_get_data_f32(one)[i] = static_cast<float>((i * 37 + ++seed) % 101 - 50) / 400;
    gguf_add_tensor(gguf.get(), one);
  };
  const auto linear = [&](const std::string& name, std::int64_t columns, std::int64_t rows) {
    add(name + ".weight", {columns, rows});
    add(name + ".bias", {rows});
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {kWide});
    add(name + ".bias", {kWide});
  };
  add("v.patch_embd.weight", {kPatch, kPatch, 3, kWide});
  add("v.class_embd", {kWide});
  add("v.position_embd.weight", {kWide, kPatches * kPatches + 1});
  norm("v.pre_ln");
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string block = std::format("v.blk.{}.", layer);
    for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_out"})
      linear(block + part, kWide, kWide);
    norm(block + "ln1");
    norm(block + "ln2");
    linear(block + "ffn_up", kWide, 2 * kWide);
    linear(block + "ffn_down", 2 * kWide, kWide);
  }
  linear("mm.0", kWide, kTextWide);
  linear("mm.2", kTextWide, kTextWide);
  ASSERT_TRUE(gguf_write_to_file(gguf.get(), file.c_str(), false));
}

void write_image(const fs::path& file) {
  std::ofstream out(file, std::ios::binary);
  out << std::format("P6 {0} {0} 255\n", kPatches * kPatch);
  for (int i = 0; i < kPatches * kPatch * kPatches * kPatch * 3; ++i)
    out.put(static_cast<char>(i * 7 % 256));
}

std::string stripped(const std::string& text) {
  const auto first = text.find_first_not_of(" \n");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \n") - first + 1);
}

using AttachProjector = Attach;

TEST_F(AttachProjector, GraphsAreRecordedAndNamed) {
  make_model("small");
  write_projector(folder / "mmproj.gguf");
  write_image(folder / "image.ppm");
  const std::string command =
      "llama-mtmd-cli -m model.gguf --mmproj mmproj.gguf --image image.ppm -p 'What is it' -n 6 "
      "--chat-template chatml -t 1 -c 512 --temp 0";
  const Result without = plain(command);
  ASSERT_EQ(without.code, 0) << without.err;
  const Result with = attached(command);
  ASSERT_EQ(with.code, 0) << with.err;
  std::map<std::string, fs::path> by_model;
  for (const fs::path& file : sessions()) {
    expect_valid(file);
    by_model[fs::path(open(file).info()->model_files.at(0).path).filename()] = file;
  }
  ASSERT_EQ(by_model.size(), 2U) << with.err;

  // The projector: one step, which reads each of its weights once, as large as in the file.
  const SessionReader projector = open(by_model.at("mmproj.gguf"));
  const SessionInfo info = *projector.info();
  EXPECT_EQ(info.fact("attach.role"), "projector");
  EXPECT_EQ(info.fact("model.name"), "eye");
  EXPECT_EQ(info.fact("model.architecture"), "clip");
  EXPECT_EQ(info.n_layers, kLayers);
  EXPECT_EQ(info.n_embd, kWide);
  EXPECT_EQ(info.n_heads, 4U);
  ASSERT_EQ(*projector.step_count(), 1U);
  EXPECT_EQ(projector.step(StepId{0})->phase, Phase::Other);
  EXPECT_EQ(*projector.token_count(), 0U);
  std::string expected = "tensor_name,size_bytes\n";
  std::map<std::string, std::uint64_t> in_file;
  const auto index = GgufIndex::open(folder / "mmproj.gguf");
  ASSERT_TRUE(index.has_value());
  for (const auto& tensor : index->tensors())
    if (!tensor.name.starts_with("v.blk.1.")) in_file[tensor.name] = tensor.file.length;
  for (const auto& [name, bytes] : in_file) expected += std::format("{},{}\n", name, bytes);
  EXPECT_GT(in_file.size(), 20U);
  const Result read = run_tt(
      folder, std::format("sql {} --csv \"SELECT replace(tensor_name, ' (reshaped)', '') AS "
                          "tensor_name, sum(size_bytes) AS size_bytes FROM "
                          "access WHERE tensor_kind = 'weight' AND NOT write GROUP BY 1 ORDER BY "
                          "1\"",
                          by_model.at("mmproj.gguf").string()));
  EXPECT_EQ(read.out, expected) << read.err;

  // The model: text, the image's embeddings as a step without tokens, and text.
  const SessionReader model = open(by_model.at("model.gguf"));
  EXPECT_EQ(model.info()->fact("attach.role"), "");
  std::uint32_t images = 0;
  for (std::uint32_t i = 0; i < *model.step_count(); ++i) {
    const Step step = *model.step(StepId{i});
    if (step.n_tokens > 0) continue;
    ++images;
    EXPECT_EQ(step.phase, Phase::Other);
    const auto graph = *model.graph(step.graph);
    for (std::size_t s = 0; s < graph->slots.size(); ++s)
      if (graph->slots[s].kind == SlotKind::Positions) {
        EXPECT_EQ(step.slots[s].ints.size(), std::size_t{kPatches * kPatches});
      }
  }
  EXPECT_EQ(images, 1U);
  // Its cells are in the cache: the text goes on behind it.
  const std::vector<Token> tokens = *model.tokens(0, 1000);
  std::string answer;  // without its last token, which is not evaluated
  for (const Token& token : tokens) answer += token.generated ? token.text : "";
  // The program does not wait for its log when it ends: the end of the output may be missing.
  for (const Result& result : {without, with}) {
    const std::string said = stripped(result.out), text = stripped(answer);
    const std::size_t both = std::min(said.size(), text.size());
    EXPECT_EQ(said.substr(0, both), text.substr(0, both));
  }
  EXPECT_GT(answer.size(), 5U);
  std::int32_t gap = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    gap = std::max(gap, tokens[i].position - tokens[i - 1].position);
  EXPECT_EQ(gap, kPatches * kPatches + 1);
}

}  // namespace
}  // namespace tt
