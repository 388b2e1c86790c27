#include "program/tracer_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/arguments.h"

namespace tt {
namespace {

struct Parsed {
  ModelOptions model;
  ContextOptions context;
  std::optional<int> exit_code;
};

Parsed parse_tracer_arguments(std::vector<std::string> arguments) {
  Parsed out;
  CLI::App app("test", "test");
  add_model_options(app, out.model);
  add_context_options(app, out.context);
  out.exit_code = parse(app, expand_arguments(std::move(arguments)));
  return out;
}

TEST(TracerOptions, EveryOptionSetsItsField) {
  const Parsed p = parse_tracer_arguments(
      {"-m", "a b.gguf", "-ngl", "3",    "--no-mmap", "--mlock", "-nr", "--rpc", "h1:1,h2:2",
       "-c", "0",        "-b",   "64",   "-ub",       "32",      "-t",  "3",     "-tb",
       "4",  "-fa",      "off",  "-ctk", "q8_0",      "-ctv",    "bf16"});
  ASSERT_FALSE(p.exit_code.has_value());
  EXPECT_EQ(p.model.path, "a b.gguf");
  EXPECT_EQ(p.model.gpu_layers, 3);
  EXPECT_FALSE(p.model.mmap);
  EXPECT_TRUE(p.model.mlock);
  EXPECT_FALSE(p.model.repack);
  EXPECT_EQ(p.model.rpc_servers, (std::vector<std::string>{"h1:1", "h2:2"}));
  EXPECT_EQ(p.context.context, 0u);
  EXPECT_EQ(p.context.batch, 64u);
  EXPECT_EQ(p.context.ubatch, 32u);
  EXPECT_EQ(p.context.threads, 3);
  EXPECT_EQ(p.context.threads_batch, 4);
  EXPECT_EQ(p.context.flash_attention, FlashAttention::Off);
  EXPECT_EQ(p.context.cache_type_k, "q8_0");
  EXPECT_EQ(p.context.cache_type_v, "bf16");
}

TEST(TracerOptions, LoadModesAreThoseOfLlamaCpp) {
  const struct {
    const char* mode;
    bool mmap, mlock, direct_io;
  } cases[] = {{"auto", true, false, false},      {"none", false, false, false},
               {"mmap", true, false, false},      {"mlock", false, true, false},
               {"mmap+mlock", true, true, false}, {"dio", false, false, true}};
  for (const auto& c : cases) {
    for (const char* option : {"--load-mode", "-lm"}) {
      const Parsed p = parse_tracer_arguments({option, c.mode});
      ASSERT_FALSE(p.exit_code.has_value()) << c.mode;
      EXPECT_EQ(p.model.mmap, c.mmap) << c.mode;
      EXPECT_EQ(p.model.mlock, c.mlock) << c.mode;
      EXPECT_EQ(p.model.direct_io, c.direct_io) << c.mode;
    }
  }
}

TEST(TracerOptions, PlacementOptionsAreThoseOfLlamaCpp) {
  const Parsed p = parse_tracer_arguments(
      {"-ot", "exps=CPU,ffn=CPU", "-ncmoe", "3", "-lzm", "on", "--moe-cache-mib", "64"});
  ASSERT_FALSE(p.exit_code.has_value());
  EXPECT_EQ(p.model.tensor_overrides, (std::vector<std::string>{"exps=CPU", "ffn=CPU"}));
  EXPECT_EQ(p.model.cpu_moe_layers, 3);
  EXPECT_EQ(p.model.lazy_mode, LazyMode::On);
  EXPECT_EQ(p.context.moe_cache_mib, 64u);
  EXPECT_EQ(parse_tracer_arguments({"-cmoe"}).model.cpu_moe_layers, INT32_MAX);
  EXPECT_EQ(parse_tracer_arguments({"--lazy-mode", "off"}).model.lazy_mode, LazyMode::Off);
}

TEST(TracerOptions, InvalidOptionsExitWithTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--nope"},
                                             {"-c"},
                                             {"-c", "-1"},
                                             {"-c", "x"},
                                             {"-ub", "0"},
                                             {"-fa", "si"},
                                             {"-ctk", "q9"},
                                             {"--rpc", ":1"},
                                             {"--rpc", "h:"},
                                             {"--rpc", "h:0"},
                                             {"--rpc", "h:65536"},
                                             {"-t", "513"},
                                             {"-tb", "513"},
                                             {"-c", "16777217"},
                                             {"surplus"}}) {
    SCOPED_TRACE(arguments.front());
    EXPECT_EQ(parse_tracer_arguments(arguments).exit_code, 2);
  }
}

}  // namespace
}  // namespace tt
