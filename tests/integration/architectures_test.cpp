// Every architecture that the installed libllama can build a test model of, plus our generated
// models for those that its generator lacks. Each runs a prompt and three decodes through the
// engine, the recorder and the file. The recorded session is then checked: every query of
// analysis/ against its reference implementation (tests/analysis/*_check.h), every layer
// extracted from its graph, each kind of layer laid out by Graphviz, every export and
// re-import, every row of SQL, and equal totals from all sources (tests/api/exchange; by HTTP:
// tests/server).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/attention/heads.h"
#include "analysis/common/op_info.h"
#include "analysis/graph/graph_part.h"
#include "analysis/report/validation.h"
#include "api/json/gguf_weights.h"
#include "api/json/trace_json.h"
#include "api/text/graph_dot.h"
#include "tests/analysis/accesses/access_check.h"
#include "tests/analysis/aggregate/raster_check.h"
#include "tests/analysis/aggregate/statistics_check.h"
#include "tests/analysis/experts/expert_check.h"
#include "tests/analysis/graph/layer_check.h"
#include "tests/analysis/report/comparison_check.h"
#include "tests/analysis/report/report_check.h"
#include "tests/analysis/sql/sql_check.h"
#include "tests/analysis/tables/order_check.h"
#include "tests/analysis/weights/weight_check.h"
#include "tests/api/exchange/export_check.h"
#include "tests/api/exchange/round_trip_check.h"
#include "tests/api/exchange/timeline_check.h"
#include "tests/api/exchange/totals_check.h"
#include "tests/integration/label_check.h"
#include "tests/integration/served_sessions_check.h"
#include "tests/support/command_output.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/test_paths.h"
#include "tests/tracer/format/access/op_coverage.h"
#include "tracer/format/access/access.h"
#include "tracer/gguf/llama_handles.h"

namespace tt::test {
namespace {

// A layer as DOT, and as REST returns it.
struct LayerKind {
  std::string dot, json;
};

struct Counts {
  int models = 0, layers = 0;
  // By their best timing: a template that is timed fast was learned first.
  std::map<Timing, int> templates, steps;
  int reallocated = 0;           // models that allocate a known graph at new addresses
  int followed = 0;              // models that learn no graph of a prompt of another length
  int mixtures = 0;              // models that routed experts
  int divided = 0;               // weights that are divided into heads
  int undivided = 0;             // weights of layers without attention
  int caching = 0;               // models that read data of earlier steps from a cache
  std::vector<std::string> dot;  // of each model's last graph, and the first one collapsed
  // One layer of each kind, keyed by the set of its ops.
  std::map<std::set<std::string>, LayerKind> kinds_of_layers;
  TempFolder sessions;  // a copy of each session
};

void expect_valid_accesses(const TracedModel::Run& run, const Step& step,
                           std::set<std::int32_t>& layers) {
  const SessionReader reader = run.reader();
  const auto graph = graph_of(reader, step);
  ASSERT_EQ(step.op_ends.size(), graph->ops.size()) << "executed ops differ from the template's";
  EXPECT_TRUE(std::ranges::is_sorted(step.op_ends, {}, &Ns::v));
  for (std::size_t i = 0; i < graph->slots.size(); ++i) {
    const Tensor& tensor = graph->tensor(graph->slots[i].tensor);
    const bool empty = std::ranges::contains(tensor.ne, 0);  // gathers nothing in this step
    EXPECT_EQ(step.slots[i].ints.empty() && step.slots[i].floats.empty(), empty)
        << to_text(graph->slots[i].kind) << " of " << tensor.name;
  }
  const auto accesses = accesses_of(*graph);
  for_each_access(*graph, accesses, step, [&](const StepAccess& access) {
    const Tensor& tensor = graph->tensor(access.tensor);
    if (tensor.kind != TensorKind::Weight) return;
    ASSERT_LT(access.range.file, run.info.model_files.size());
    ASSERT_FALSE(access.range.empty()) << tensor.name << " has no file range";
    ASSERT_LE(access.range.offset + access.range.length,
              run.info.model_files[access.range.file].size)
        << tensor.name << " ends beyond the end of the file";
    if (tensor.layer != kNoLayer) layers.insert(tensor.layer.v);
  });
}

// A graph is learned once: each later evaluation at the same addresses is recognized and timed
// fast. At other addresses, and with other shapes, its structure is recognized and also timed fast.
class Learned {
 public:
  void add(const SessionReader& reader, const Step& step) {
    const std::uint64_t graph = graph_of(reader, step)->fingerprint;
    const auto allocation = reader.allocation(step.allocation);
    ASSERT_TRUE(allocation.has_value()) << allocation.error().message;
    EXPECT_NE(step.timing, Timing::Exact) << "op counts differ from the learned graph";
    const bool same_memory = !seen_.emplace(graph, allocation->addresses).second;
    if (same_memory || steps_.empty()) {
      EXPECT_EQ(step.timing, same_memory ? Timing::Fast : Timing::Learned)
          << "step " << step.id.v << ", template " << step.graph.v;
    }
    const auto [best, is_new] = best_.try_emplace(graph, step.timing);
    anew_ = anew_ || (!is_new && !same_memory);
    if (step.timing == Timing::Fast) best->second = Timing::Fast;
    steps_.push_back(step.timing);
  }
  void tell(Counts& counts) const {
    for (const auto& [id, timing] : best_) ++counts.templates[timing];
    for (const Timing timing : steps_) ++counts.steps[timing];
    counts.reallocated += anew_;
  }

 private:
  std::set<std::pair<std::uint64_t, std::vector<std::uint64_t>>> seen_;  // graph, addresses
  std::map<std::uint64_t, Timing> best_;                                 // by graph
  std::vector<Timing> steps_;
  bool anew_ = false;
};

void print(const Counts& counts) {
  const auto of = [](const std::map<Timing, int>& by_timing) {
    const auto count = [&](Timing timing) {
      const auto found = by_timing.find(timing);
      return found == by_timing.end() ? 0 : found->second;
    };
    return std::format("{} fast, {} learned, {} exact", count(Timing::Fast), count(Timing::Learned),
                       count(Timing::Exact));
  };
  std::printf(
      "%d models, %d with experts; %d layers whole\ntemplates: %s\nsteps: %s\n"
      "%d models lay a known graph out anew, %d learn nothing of another length\n",
      counts.models, counts.mixtures, counts.layers, of(counts.templates).c_str(),
      of(counts.steps).c_str(), counts.reallocated, counts.followed);
}

// Runs each query once against its reference implementation; the axes of rasters and breakdowns
// vary from model to model.
void expect_queries_match(const TracedModel::Run& run, const SessionReader& reader, int model) {
  const auto index = SessionIndex::build(reader);
  ASSERT_TRUE(index.has_value()) << index.error().message;
  Dice dice(static_cast<std::uint64_t>(model));
  for (int i = 0; i < 5; ++i) expect_raster(reader, *index, random_raster_query(dice, *index));
  constexpr Axis kAxes[] = {Axis::Token,  Axis::Layer,  Axis::Component, Axis::OpKind,
                            Axis::Tensor, Axis::Expert, Axis::Op};
  const Axis by = kAxes[static_cast<std::size_t>(model) % std::size(kAxes)];
  expect_breakdown(reader, *index, by);
  expect_hot_cold(*index, {.by = by, .value = Value::Touched});
  expect_statistics(reader, *index);
  expect_statistics(reader, *index, {.steps = {1, 3}, .layers = LayerSet::one(LayerId{0})});
  expect_read_order(reader, *index, {}, kDefaultGap);
  expect_pattern(reader);
  expect_reuse(reader, 3);
  expect_accesses(reader, static_cast<std::uint64_t>(model), 1);
  const ComparedSession self{.index = *index, .reader = reader};
  expect_comparison(self, self);
  expect_report(run.file, *index, reader);
  expect_totals_agree(run.file);
  EXPECT_GT(expect_tables(run.file), 0U);
  EXPECT_GT(expect_views(run.file), 0U);
}

// Keeps a drawing of each layer whose set of ops has not been seen before.
void collect_layer_kinds(const SessionReader& reader, TemplateId id, Counts& counts) {
  const auto graph = reader.graph(id).value();
  std::map<LayerId, std::set<std::string>> kinds;
  for (const Op& op : graph->ops)
    if (op.layer != kNoLayer) kinds[op.layer].insert(op_name(*graph, op));
  for (const auto& [layer, kind] : kinds) {
    LayerKind& drawn = counts.kinds_of_layers[kind];
    if (!drawn.dot.empty()) continue;
    const auto part = part_of_template(reader, id, LayerSet::one(layer));
    ASSERT_TRUE(part.has_value()) << part.error().message;
    drawn.dot = to_dot(*part);
    Json json = to_json(*part);
    json["layer"] = layer.v;
    drawn.json = text_of(json);
  }
}

// The byte rules of all ops in the graph are verified against the kernels (op_cases.h).
void expect_ops_have_cases(const SessionReader& reader) {
  for (const TemplateId id : reader.template_ids().value())
    EXPECT_EQ(ops_without_a_case(**reader.graph(id)), std::set<std::string>{});
}

// Attention without flash attention uses other ops.
void expect_ops_without_flash_attention_have_cases(const std::filesystem::path& model) {
  ContextOptions context = TracedModel::small_context();
  context.flash_attention = FlashAttention::Off;
  TracedModel traced(model, context);
  const auto run = traced.run(greedy_tokens(17, 2));
  ASSERT_NE(run.result.reason, StopReason::Error) << run.result.error;
  expect_ops_have_cases(run.reader());
}

// The value of the key in the model's metadata: one number for all layers, or an array with one
// per layer.
std::optional<std::uint32_t> number_of_layer(const gguf_context* file, const std::string& key,
                                             LayerId layer) {
  const std::int64_t id = gguf_find_key(file, key.c_str());
  if (id < 0) return std::nullopt;
  if (gguf_get_kv_type(file, id) == GGUF_TYPE_UINT32) return gguf_get_val_u32(file, id);
  if (gguf_get_kv_type(file, id) != GGUF_TYPE_ARRAY ||
      std::cmp_greater_equal(layer.v, gguf_get_arr_n(file, id)))
    return std::nullopt;
  // 32-bit, signed or unsigned.
  return static_cast<const std::uint32_t*>(gguf_get_arr_data(file, id))[layer.v];
}

// A prompt of another length has new graphs with a known structure. They are recorded as a fresh
// probe does that learns them by splitting. Returns whether none was split.
bool expect_same_structure(TracedModel& traced, const std::filesystem::path& model,
                           std::size_t prompt) {
  TracedModel fresh(model, TracedModel::small_context());
  const auto followed = traced.run(greedy_tokens(prompt, 1)),
             learned = fresh.run(greedy_tokens(prompt, 1));
  EXPECT_EQ(followed.recording.losses, LossCounters{});
  const auto steps = followed.steps(), expected = learned.steps();
  EXPECT_EQ(expected.at(0).timing, Timing::Learned);
  EXPECT_EQ(steps.size(), expected.size());
  bool fast = true;
  for (std::size_t i = 0; i < std::min(steps.size(), expected.size()); ++i) {
    EXPECT_EQ(*graph_of(followed.reader(), steps[i]), *graph_of(learned.reader(), expected[i]));
    EXPECT_EQ(steps[i].slots, expected[i].slots);
    EXPECT_EQ(steps[i].op_ends.size(), expected[i].op_ends.size());
    fast = fast && steps[i].timing == Timing::Fast;
  }
  return fast;
}

// Compares the head counts derived from graph shapes with the model's metadata. Returns the
// number of weights in layers without attention; none of them is divided.
int expect_heads_match_metadata(const std::filesystem::path& model, const ModelFacts& facts,
                                const SessionReader& reader) {
  const GgufContext file(gguf_init_from_file(model.c_str(), {.no_alloc = true, .ctx = nullptr}));
  const std::string prefix = facts.architecture + ".attention.";
  int undivided = 0;
  for (const HeadWeight& weight : head_table(reader).value().weights) {
    const bool keys = weight.role == Role::K || weight.role == Role::V;
    // MLA's slices (attn_k_b) have as many heads as the queries.
    if (weight.name.contains("_b.")) continue;
    const auto head_count =
        number_of_layer(file.get(), prefix + (keys ? "head_count_kv" : "head_count"), weight.layer);
    if (!head_count || (weight.heads.empty() && *head_count > 0)) continue;
    EXPECT_EQ(weight.heads.size(), *head_count) << weight.name;
    undivided += *head_count == 0;
  }
  return undivided;
}

void trace(const std::filesystem::path& model, std::size_t prompt, Counts& counts) {
  SCOPED_TRACE(model.filename().string());
  ContextOptions context = TracedModel::small_context();
  context.threads = 2;  // one of them delivers the ticks
  TracedModel traced(model, context);
  const ModelFacts& facts = traced.engine().facts();
  // Models without memory (BERT, diffusion) evaluate the whole input each time.
  const int runs = facts.embedding_only ? 4 : 1;
  std::set<std::int32_t> layers;
  std::vector<Step> steps;
  Learned learned;
  for (int i = 0; i < runs; ++i) {
    const auto run = traced.run(greedy_tokens(prompt, 4));
    ASSERT_NE(run.result.reason, StopReason::Error) << run.result.error;
    ASSERT_TRUE(run.recording.error.empty()) << run.recording.error;
    EXPECT_EQ(run.recording.losses, LossCounters{});
    const auto validation = validate(run.file);
    ASSERT_TRUE(validation.has_value()) << validation.error().message;
    for (const CheckResult& check : validation->checks)
      EXPECT_NE(check.status, CheckStatus::Failed)
          << to_text(check.check) << ": " << check.evidence.front();
    for (const Step& step : run.steps()) {
      expect_valid_accesses(run, step, layers);
      learned.add(run.reader(), step);
      steps.push_back(step);
    }
    std::filesystem::copy_file(
        run.file, counts.sessions.path() / std::format("{}-{}.ttrace", model.stem().string(), i));
    const SessionReader reader = run.reader();
    expect_ops_have_cases(reader);
    if (i == 0) {
      const bool chose = expect_experts(reader) > 0;
      EXPECT_TRUE(!chose ||
                  facts.n_experts > 0);  // some start with dense layers, and have only those here
      counts.mixtures += chose;
      expect_compression(reader, weights_of(traced.engine().gguf()));
      counts.divided += expect_heads(reader);
      counts.undivided += expect_heads_match_metadata(model, facts, reader);
      counts.caching += expect_kv_use(reader) > 0;
      expect_queries_match(run, reader, counts.models);
      expect_exports_agree(reader);
      EXPECT_GT(expect_timelines(reader), 0U);
      expect_round_trips(reader);
    }
    for (const TemplateId id : reader.template_ids().value()) {
      counts.layers += expect_layer_subgraphs(**reader.graph(id));
      EXPECT_GT(expect_labels(**reader.graph(id), facts.n_experts > 0), 10);
      if (i > 0 || id != TemplateId{1}) continue;
      collect_layer_kinds(reader, id, counts);
      const auto part = part_of_template(reader, id, LayerSet::all());
      ASSERT_TRUE(part.has_value()) << part.error().message;
      counts.dot.push_back(export_text(reader, {.format = exchange::Format::Dot}));
      counts.dot.push_back(collapsed_dot(*part));
    }
    for (const auto& [name, value] : run.info.facts) {
      // Mapped weights are also found by address; both methods agree.
      if (name == "trace.offsets_agree" || name == "trace.offsets_by_address") {
        EXPECT_NE(value, "0") << name;
      }
    }
    const auto& coverage = traced.engine().probe().coverage();
    EXPECT_EQ(coverage.by_name, coverage.weights);
    EXPECT_EQ(coverage.agree, coverage.by_address);
  }
  const std::size_t expected = facts.has_encoder ? 5 : 4;  // encoder, prompt, three decodes
  EXPECT_EQ(steps.size(), expected);
  for (std::uint32_t layer = 0; layer < facts.n_layers; ++layer) {
    EXPECT_TRUE(layers.contains(static_cast<std::int32_t>(layer))) << "layer " << layer;
  }
  expect_ops_without_flash_attention_have_cases(model);
  counts.followed += expect_same_structure(traced, model, prompt + 6);
  learned.tell(counts);
  ++counts.models;
}

// Graphviz parses each graph without a warning. (Graphviz 14.1 crashes on several in one run.)
void expect_drawable(const TempFolder& folder, const std::vector<std::string>& graphs) {
  for (std::size_t i = 0; i < graphs.size(); ++i)
    std::ofstream(folder.path() / std::format("{}.dot", i)) << graphs[i];
  const std::string command = std::format(
      "cd {} && for graph in *.dot; do {} -Tcanon $graph; done "
      ">canonical 2>complaints",
      folder.path().string(), kTestPaths.dot);
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(std::filesystem::file_size(folder / "complaints"), 0U);
  std::ifstream canonical(folder / "canonical");
  std::size_t drawn = 0;
  for (std::string line; std::getline(canonical, line);) drawn += line.starts_with("digraph ");
  EXPECT_EQ(drawn, graphs.size());
}

// Graphviz lays out every node and edge of each graph, one process per graph, without a warning.
void expect_laid_out(const TempFolder& folder,
                     const std::map<std::set<std::string>, LayerKind>& layers) {
  const auto count = [](const std::string& text, std::string_view what) {
    std::size_t lines = 0;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines += line.contains(what);
    return lines;
  };
  for (const auto& [kinds, layer] : layers) {
    const std::string& dot = layer.dot;
    std::ofstream(folder / "layer.dot") << dot;
    const std::string command =
        std::format("cd {} && {} -Tplain layer.dot >layer.plain 2>layer.complaints",
                    folder.path().string(), kTestPaths.dot);
    ASSERT_EQ(std::system(command.c_str()), 0) << dot;
    EXPECT_EQ(std::filesystem::file_size(folder / "layer.complaints"), 0U) << dot;
    std::stringstream plain;
    plain << std::ifstream(folder / "layer.plain").rdbuf();
    const std::string laid_out = '\n' + plain.str();
    EXPECT_TRUE(laid_out.starts_with("\ngraph ")) << laid_out.substr(0, 80);
    EXPECT_TRUE(laid_out.ends_with("\nstop\n")) << dot;
    EXPECT_GT(count(dot, " -> "), 0U) << dot;
    EXPECT_EQ(count(plain.str(), "edge "), count(dot, " -> ")) << dot;
  }
}

// The page lays out each layer without overlaps (webui/test/layers).
void expect_laid_out_by_page(const TempFolder& folder,
                             const std::map<std::set<std::string>, LayerKind>& layers) {
  std::size_t number = 0;
  for (const auto& [kinds, layer] : layers)
    std::ofstream(folder.path() / std::format("{}.json", number++)) << layer.json;
  const std::string output =
      command_output(std::format("TT_LAYERS={} npm --prefix {} run --silent test:layers",
                                 folder.path().string(), source_path("webui")));
  EXPECT_TRUE(output.contains(std::format("{} passed", layers.size()))) << output;
}

// Parts of the models, so that they run beside each other.
constexpr int kParts = 4;
class ArchitecturesPart : public ::testing::TestWithParam<int> {};

TEST_P(ArchitecturesPart, TracesEveryModelWithVerifiedCounts) {
  const TempFolder folder;
  const std::string command = std::format("{} -o {} > {}/log 2>&1", kTestPaths.llama_archs,
                                          folder.path().string(), folder.path().string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::vector<std::filesystem::path> models;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".gguf") models.push_back(entry.path());
  }
  std::ranges::sort(models);
  ASSERT_GE(models.size(), 131U);  // the number of models that Debian's program writes
  Counts counts;
  int number = 0;
  for (const auto& model : models) {
    if (number++ % kParts == GetParam()) trace(model, 17, counts);
    std::filesystem::remove(model);
  }
  expect_drawable(folder, counts.dot);
  expect_laid_out(folder, counts.kinds_of_layers);
  expect_laid_out_by_page(TempFolder(), counts.kinds_of_layers);
  std::printf("%zu kinds of layers laid out\n", counts.kinds_of_layers.size());
  EXPECT_GT(counts.kinds_of_layers.size(), 10U);
  EXPECT_GE(expect_served_sessions(counts.sessions.path()), counts.models);
  print(counts);
  EXPECT_GE(counts.models, static_cast<int>(models.size()) / kParts);
  EXPECT_GE(counts.layers, 2 * counts.models);
  EXPECT_GT(counts.mixtures, 20 / kParts - 2);
  EXPECT_GT(counts.divided, 4 * counts.models);
  EXPECT_GT(counts.undivided, 0);
  EXPECT_GT(counts.caching, counts.models / 2);
  // At most the first of three decodes is learned.
  EXPECT_GE(counts.steps[Timing::Fast], 2 * counts.models);
  EXPECT_GE(counts.followed, counts.models * 9 / 10);
  EXPECT_EQ(counts.steps[Timing::Exact] + counts.steps[Timing::None], 0);
  EXPECT_LT(counts.reallocated, counts.models / 4);
}
INSTANTIATE_TEST_SUITE_P(Parts, ArchitecturesPart, ::testing::Range(0, kParts));

TEST(Architectures, TracesGeneratedShapesMissingFromTheSet) {
  Counts counts;
  for (const char* shape : {"t5", "bert", "rwkv"}) {
    trace(generated_model({.shape = shape}), 17, counts);
  }
  print(counts);
  EXPECT_GE(expect_served_sessions(counts.sessions.path()), 3);
  EXPECT_EQ(counts.models, 3);
}

}  // namespace
}  // namespace tt::test
