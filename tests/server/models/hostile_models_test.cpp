// Valid GGUF files with wrong types, shapes, hyper-parameters, tokenizers and weights: each is
// loaded by the real server and gets a prompt, a conversation and some decodes, or is rejected with
// an error. The server keeps running, within its memory.
//
// TT_CASES: number of generated models (default: 20). TT_SEED: the first seed.
#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <format>
#include <functional>
#include <limits>
#include <map>
#include <print>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/support/bystander.h"
#include "tests/server/support/generated_cases.h"
#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"
#include "tests/server/support/server_watch.h"
#include "tests/support/models/model_edit.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/modelgen/model_writer.h"

namespace tt::test {
namespace {

using Set = std::function<void(gguf_context*)>;
using Edit = std::function<void(ggml_tensor&, std::vector<char>&)>;

struct HostileModel {
  std::string name;
  Set set = [](gguf_context*) {};
  Edit edit = [](ggml_tensor&, std::vector<char>&) {};
};

Edit on(std::string part, std::function<void(ggml_tensor&, std::vector<char>&)> edit) {
  return [part = std::move(part), edit = std::move(edit)](ggml_tensor& tensor, auto& data) {
    if (std::string_view(tensor.name).contains(part)) edit(tensor, data);
  };
}
Edit retype(std::string part, ggml_type type) {
  return on(std::move(part), [type](ggml_tensor& tensor, auto&) { tensor.type = type; });
}
Edit transposed(std::string part) {
  return on(std::move(part),
            [](ggml_tensor& tensor, auto&) { std::swap(tensor.ne[0], tensor.ne[1]); });
}
Edit filled(std::string part, float value) {
  return on(std::move(part), [value](ggml_tensor&, std::vector<char>& data) {
    for (std::size_t at = 0; at + sizeof value <= data.size(); at += sizeof value)
      std::memcpy(data.data() + at, &value, sizeof value);
  });
}
Edit random_bytes(std::string part, std::uint32_t seed) {
  return on(std::move(part), [seed](ggml_tensor&, std::vector<char>& data) {
    std::mt19937 rng(seed);
    for (char& byte : data) byte = static_cast<char>(rng());
  });
}
Set number(const char* key, std::uint32_t value) {
  return [=](gguf_context* file) { gguf_set_val_u32(file, key, value); };
}
Set real(const char* key, float value) {
  return [=](gguf_context* file) { gguf_set_val_f32(file, key, value); };
}

// The limit of a model check (docs/limits.md), and 2 s.
constexpr auto kLoadTime = 122s;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Each of these ended the server at the first generation before the check evaluated the model, or
// is a variant of one that did.
std::vector<HostileModel> known_cases() {
  std::vector<HostileModel> cases;
  for (const auto& [type, name] : {std::pair{GGML_TYPE_F16, "f16"},
                                   {GGML_TYPE_BF16, "bf16"},
                                   {GGML_TYPE_I32, "i32"},
                                   {GGML_TYPE_I8, "i8"},
                                   {GGML_TYPE_I64, "i64"},
                                   {GGML_TYPE_F64, "f64"},
                                   {GGML_TYPE_Q8_0, "q8_0"}}) {
    for (const char* part : {"attn_norm", "output_norm", "ffn_down", "token_embd", "attn_q"})
      cases.push_back({.name = std::format("{}-{}", part, name), .edit = retype(part, type)});
  }
  for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_down", "ffn_gate"})
    cases.push_back({.name = std::format("{}-transposed", part), .edit = transposed(part)});
  cases.push_back({.name = "all-random-1", .edit = random_bytes("", 1)});
  cases.push_back({.name = "all-random-2", .edit = random_bytes("", 2)});
  cases.push_back({.name = "embeddings-random", .edit = random_bytes("token_embd", 3)});
  for (const auto& [value, name] : {std::pair{kNan, "nan"}, {kInfinity, "infinity"}}) {
    cases.push_back({.name = std::format("all-{}", name), .edit = filled("", value)});
    cases.push_back({.name = std::format("norms-{}", name), .edit = filled("norm", value)});
    cases.push_back({.name = std::format("output-{}", name), .edit = filled("output", value)});
    cases.push_back({.name = std::format("down-{}", name), .edit = filled("ffn_down", value)});
  }
  for (const float epsilon : {-1.0F, -1e-5F, 0.0F, kNan, kInfinity})
    cases.push_back({.name = std::format("epsilon{}", epsilon),
                     .set = real("llama.attention.layer_norm_rms_epsilon", epsilon)});
  for (const std::uint32_t length : {0U, 1U, 3U, 65'536U, 1U << 20, 0xFFFFFFFFU}) {
    cases.push_back({.name = std::format("key-length-{}", length),
                     .set = number("llama.attention.key_length", length)});
    cases.push_back({.name = std::format("value-length-{}", length),
                     .set = number("llama.attention.value_length", length)});
    cases.push_back({.name = std::format("key-and-value-length-{}", length),
                     .set =
                         [length](gguf_context* file) {
                           number("llama.attention.key_length", length)(file);
                           number("llama.attention.value_length", length)(file);
                         },
                     .edit =
                         [length](ggml_tensor& tensor, auto&) {
                           if (length > 65'536 || length == 0) return;  // too large to write
                           const std::string_view name(tensor.name);
                           if (name.contains("attn_q.") || name.contains("attn_k.") ||
                               name.contains("attn_v."))
                             tensor.ne[1] = 2 * length;
                           if (name.contains("attn_output")) tensor.ne[0] = 2 * length;
                         }});
  }
  return cases;
}

// A model with one to three edits that depend only on the seed.
HostileModel generated_case(std::uint32_t seed) {
  std::mt19937 engine(seed);
  const auto rng = [&engine] { return static_cast<std::uint32_t>(engine()); };
  const auto pick = [&rng](const auto& from) { return from[rng() % std::size(from)]; };
  static constexpr const char* kParts[] = {
      "norm",     "attn_q",     "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_gate",
      "ffn_down", "token_embd", "output", "blk.0",  "blk.1",       ""};
  static constexpr const char* kNumbers[] = {"llama.block_count",
                                             "llama.context_length",
                                             "llama.embedding_length",
                                             "llama.feed_forward_length",
                                             "llama.attention.head_count",
                                             "llama.attention.head_count_kv",
                                             "llama.attention.key_length",
                                             "llama.attention.value_length",
                                             "llama.rope.dimension_count",
                                             "llama.expert_count",
                                             "llama.expert_used_count",
                                             "llama.vocab_size",
                                             "llama.attention.sliding_window",
                                             "tokenizer.ggml.bos_token_id",
                                             "tokenizer.ggml.eos_token_id",
                                             "tokenizer.ggml.unknown_token_id",
                                             "tokenizer.ggml.padding_token_id",
                                             "tokenizer.ggml.eot_token_id",
                                             "general.file_type"};
  static constexpr const char* kReals[] = {"llama.attention.layer_norm_rms_epsilon",
                                           "llama.rope.freq_base",
                                           "llama.rope.scale_linear",
                                           "llama.rope.scaling.factor",
                                           "llama.attention.clamp_kqv",
                                           "llama.logit_scale"};
  static constexpr std::uint32_t kValues[] = {
      0, 1, 2, 3, 7, 64, 1000, 65'536, 1U << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
  static constexpr float kFloats[] = {0.0F,   -1.0F, 1e-38F,    1e38F,
                                      -1e38F, kNan,  kInfinity, -kInfinity};
  static constexpr ggml_type kTypes[] = {
      GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,  GGML_TYPE_I8,   GGML_TYPE_I16,
      GGML_TYPE_I32,  GGML_TYPE_I64,  GGML_TYPE_F64,   GGML_TYPE_Q4_0, GGML_TYPE_Q8_0,
      GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL};
  static constexpr const char* kTokenizers[] = {"llama", "gpt2", "bert",    "t5",
                                                "rwkv",  "none", "no_vocab"};
  HostileModel model{.name = std::format("g{}", seed)};
  std::vector<Set> sets;
  std::vector<Edit> edits;
  for (std::uint32_t n = 1 + rng() % 3; n > 0; --n) {
    switch (rng() % 9) {
      case 0:
        edits.push_back(retype(pick(kParts), pick(kTypes)));
        break;
      case 1:
        edits.push_back(transposed(pick(kParts)));
        break;
      case 2:
        edits.push_back(random_bytes(pick(kParts), rng()));
        break;
      case 3:
        edits.push_back(filled(pick(kParts), pick(kFloats)));
        break;
      case 4: {
        const std::size_t dimension = rng() % 3;
        const std::int64_t size = 1 + static_cast<std::int64_t>(rng() % 300);
        edits.push_back(
            on(pick(kParts), [=](ggml_tensor& tensor, auto&) { tensor.ne[dimension] = size; }));
        break;
      }
      case 5:
        sets.push_back(real(pick(kReals), pick(kFloats)));
        break;
      case 6:
        sets.push_back([tokenizer = pick(kTokenizers)](gguf_context* file) {
          gguf_set_val_str(file, "tokenizer.ggml.model", tokenizer);
        });
        break;
      default:
        sets.push_back(number(pick(kNumbers), pick(kValues)));
        break;
    }
  }
  model.set = [sets](gguf_context* file) {
    for (const Set& set : sets) set(file);
  };
  model.edit = [edits](ggml_tensor& tensor, std::vector<char>& data) {
    for (const Edit& edit : edits) edit(tensor, data);
  };
  return model;
}

std::uint64_t ram_bytes() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

class HostileModels : public ::testing::Test {
 protected:
  void SetUp() override {
    modelgen::ModelSpec spec;
    spec.shape = "small";
    spec.dims = {.layers = 2, .embd = 64, .heads = 2, .kv_heads = 2, .ff = 128, .vocab = 512};
    spec.quant = "f32";
    const auto made = modelgen::write_model(spec, folder_ / "base.gguf");
    ASSERT_TRUE(made.has_value()) << made.error().message;
    base_ = made->files.front();
  }

  // Loads each model and uses it.
  void try_all(const std::vector<HostileModel>& cases, const std::string& context = "4096") {
    RunningServer server(
        data_.path(), {"--no-model", "--models-dir", models_.path().string(), "--models-max", "3",
                       "-t", "2", "-c", context, "-b", "64", "-ub", "32"});
    ASSERT_TRUE(server.url.starts_with("http://")) << server.program.stderr_text();
    std::filesystem::copy_file(kTestPaths.bundled_model, models_ / "other.gguf");
    Bystander other(server, data_.path(), "other");
    ServerWatch watch(server.program.pid(), server.url);
    std::map<std::string, int> ends;
    for (const HostileModel& model : cases) {
      SCOPED_TRACE(model.name);
      const auto path =
          with_edits(base_, models_.path() / (model.name + ".gguf"), model.set, model.edit);
      const std::string error = server.load(model.name, kLoadTime);
      if (HasFatalFailure()) return;
      if (!error.empty()) {
        EXPECT_TRUE(error.contains(model.name)) << error;
        ++ends["rejected"];
      } else {
        ++ends["loaded"];
        json tokens = json::array();
        for (int i = 0; i < 40; ++i) tokens.push_back(1 + i % 3);
        for (const json& body :
             {json{{"tokens", tokens}},
              json{{"messages", {{{"role", "user"}, {"content", "Hello, 2 times"}}}}},
              json{{"prompt", "is it wet"}, {"grammar", "root ::= [a-z ]+"}, {"temperature", 1}}}) {
          generate(server, model.name, body, ends);
          if (HasFatalFailure()) return;
        }
        EXPECT_EQ(server.unload(model.name), 202);
      }
      std::filesystem::remove(path);
    }
    for (const auto& [end, count] : ends) std::println("{:>4} {}", count, end);
    other.expect_undisturbed();
    watch.stop();
    std::println("memory +{} MiB, /health p99 {} ms", watch.memory_growth() >> 20,
                 watch.health_p99().count());
    EXPECT_LT(watch.health_p99(), ServerWatch::kMaxHealthTime);
    EXPECT_LE(watch.memory_growth(), ram_bytes() / 4 * 3 + ServerWatch::kMaxGrowth);
    EXPECT_TRUE(watch.memory_returns(ServerWatch::kCached));
    const auto stopped = Clock::now();
    server.program.signal(SIGTERM);
    EXPECT_EQ(server.program.wait(), 0);
    EXPECT_LT(Clock::now() - stopped, 5s * kTimeFactor);
  }

  const TempFolder data_, folder_, models_;
  std::filesystem::path base_;

 private:
  void generate(RunningServer& server, const std::string& id, json body,
                std::map<std::string, int>& ends) const {
    body["model"] = id;
    body["max_tokens"] = 4;
    body["ignore_eos"] = true;
    const auto started =
        http_client(server.url).Post("/api/v1/generate", body.dump(), "application/json");
    ASSERT_TRUE(started) << "the server is not running: " << server.program.stderr_text();
    if (started->status != 202) {
      EXPECT_LT(started->status, 500) << started->body;
      ++ends["request rejected: " + json::parse(started->body).value("code", "")];
      return;
    }
    const std::string session = json::parse(started->body)["id"];
    const json status = server.wait_for_end(session);
    const std::string state = status.value("state", "unknown");
    EXPECT_TRUE(state == "done" || (state == "failed" && !status["error"].is_null()))
        << status << server.program.stderr_text();
    ++ends["ran: " + state];
    const auto file = data_.path() / (session + ".ttrace");
    const auto faults = check_session(file);
    ASSERT_TRUE(faults.has_value()) << faults.error().message;
    EXPECT_TRUE(faults->empty()) << faults->front();
    std::filesystem::remove(file);
  }
};

TEST_F(HostileModels, KnownCasesDoNotEndTheServer) { try_all(known_cases()); }

// The cache of keys would have 128 GiB; that of the other model 8 MiB.
TEST_F(HostileModels, LongKeysAndALargeContextDoNotEndTheServer) {
  std::vector<HostileModel> cases = known_cases();
  std::erase_if(cases, [](const HostileModel& model) { return !model.name.contains("-length-"); });
  ASSERT_EQ(cases.size(), 18U);
  try_all(cases, "131072");
}

TEST_F(HostileModels, GeneratedCasesDoNotEndTheServer) {
  const GeneratedCases generated(20);
  std::vector<HostileModel> cases;
  for (std::uint32_t n = 0; n < generated.count; ++n)
    cases.push_back(generated_case(generated.first_seed + n));
  try_all(cases);
}

}  // namespace
}  // namespace tt::test
