// The memory information of a session, compared with what llama.cpp was observed to do: the
// address of every tensor, the bytes at a weight's address, and the cells that a batch occupied
// (detected by changed bytes of the caches).
#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <format>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/models/traced_model.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/llama_handles.h"
#include "tracer/probe/probe.h"
#include "tracer/recorder/recorder.h"

namespace tt::test {
namespace {

using Numbers = std::vector<std::int64_t>;

std::uint64_t address_of(const ggml_tensor* tensor) {
  return reinterpret_cast<std::uint64_t>(tensor->data);
}

// A node's addresses when llama.cpp listed it.
struct ListedNode {
  std::uint64_t address = 0;
  std::uint64_t viewed = 0;  // address of the viewed tensor; 0: not a view
  std::vector<std::uint64_t> sources;
};

// One token of a batch.
struct BatchToken {
  llama_token id;
  llama_pos position;
  llama_seq_id sequence = 0;
};

// llama.cpp with the probe, a recorder and an additional observer.
class ObservedLlama {
 public:
  explicit ObservedLlama(const std::filesystem::path& file, bool sequences = false)
      : index_(*GgufIndex::open(file)),
        recorder_(8192, 1U << 20, [](const std::string&, const Step&, const KnownGraphPtr&) {}) {
    ensure_backends_loaded();
    llama_model_params of_model = llama_model_default_params();
    std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
    of_model.devices = no_devices.data();
    of_model.use_extra_bufts = false;  // every weight is in the mapped file
    model_.reset(llama_model_load_from_file(file.c_str(), of_model));
    layout_ = std::make_unique<ModelLayout>(
        ModelLayout{index_, MappedFiles::of_this_process(index_.files())});
    probe_ = std::make_unique<Probe>(*layout_);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_batch = params.n_ubatch = 64;
    params.n_threads = params.n_threads_batch = 1;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    if (sequences) {
      params.n_seq_max = 2;
      params.kv_unified = true;
    }
    probe_->attach(params);
    eval_ = params.cb_eval;
    params.cb_eval = [](ggml_tensor* node, bool ask, void* self) {
      auto& observed = *static_cast<ObservedLlama*>(self);
      if (ask) observed.observe(*node);
      return observed.eval_(node, ask, observed.probe_.get());
    };
    params.cb_eval_user_data = this;
    context_.reset(llama_init_from_model(model_.get(), params));
    info_.id = "watched";
    info_.model_files = index_.files();
  }

  void begin() { recorder_.begin(info_, file_); }
  SessionReader finish() {
    const RecordingResult result = recorder_.finish(info_);
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.losses, LossCounters{});
    return *SessionReader::open(file_);
  }

  void decode(const std::vector<BatchToken>& tokens) {
    llama_batch batch = llama_batch_init(static_cast<std::int32_t>(tokens.size()), 0, 1);
    for (const BatchToken& token : tokens) {
      const auto at = static_cast<std::size_t>(batch.n_tokens++);
      batch.token[at] = token.id;
      batch.pos[at] = token.position;
      batch.n_seq_id[at] = 1;
      batch.seq_id[at][0] = token.sequence;
      batch.logits[at] = at + 1 == tokens.size();
    }
    listed_.emplace_back();
    StepBuffer* buffer = recorder_.acquire();
    ASSERT_NE(buffer, nullptr);
    buffer->header.id = StepId{steps_++};
    buffer->header.phase = tokens.size() > 1 ? Phase::Prompt : Phase::Generate;
    buffer->header.n_tokens = static_cast<std::uint32_t>(tokens.size());
    buffer->header.first_token = tokens_;
    probe_->begin_step(
        buffer, {.exact = false, .stats_filter = nullptr, .capture = nullptr, .epoch = epoch_});
    EXPECT_EQ(llama_decode(context_.get(), batch), 0);
    probe_->end_step(false);
    recorder_.submit(buffer);
    std::vector<Token> recorded_tokens;
    for (const BatchToken& token : tokens)
      recorded_tokens.push_back(
          {.index = tokens_++, .id = token.id, .position = token.position, .text = {}});
    recorder_.tokens(std::move(recorded_tokens));
    llama_batch_free(batch);
  }

  llama_memory_t memory() { return llama_get_memory(context_.get()); }
  const std::vector<std::vector<ListedNode>>& listed() const { return listed_; }  // by step
  // The caches whose rows nodes were observed to write.
  const std::set<const ggml_tensor*>& caches() const { return caches_; }

 private:
  void observe(const ggml_tensor& node) {
    if (listed_.empty()) return;  // llama.cpp builds trial graphs when it creates a context
    ListedNode& listed = listed_.back().emplace_back();
    listed.address = address_of(&node);
    if (node.view_src != nullptr) listed.viewed = address_of(node.view_src);
    for (const ggml_tensor* source : node.src)
      listed.sources.push_back(source == nullptr ? 0 : address_of(source));
    if (node.op == GGML_OP_SET_ROWS && std::string_view(node.view_src->name).starts_with("cache_"))
      caches_.insert(node.view_src);
  }

  TempFolder folder_;
  const std::filesystem::path file_ = folder_ / "watched.ttrace";
  GgufIndex index_;
  LlamaModel model_;
  std::unique_ptr<ModelLayout> layout_;
  std::unique_ptr<Probe> probe_;
  ggml_backend_sched_eval_callback eval_ = nullptr;
  LlamaContext context_;
  Recorder recorder_;
  SessionInfo info_;
  const std::chrono::steady_clock::time_point epoch_ = std::chrono::steady_clock::now();
  std::uint32_t steps_ = 0, tokens_ = 0;
  std::vector<std::vector<ListedNode>> listed_;
  std::set<const ggml_tensor*> caches_;
};

std::string bytes_of(const ModelFile& file, const FileRange& range) {
  std::ifstream in(file.path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(range.offset));
  std::string bytes(range.length, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

class Allocations : public ::testing::TestWithParam<const char*> {};

TEST_P(Allocations, MatchAddressesOfLlamaCpp) {
  ObservedLlama observed(generated_model({.shape = GetParam()}));
  observed.begin();
  std::vector<BatchToken> prompt;
  for (int i = 0; i < 20; ++i) prompt.push_back({.id = i + 1, .position = i});
  observed.decode(prompt);
  for (int i = 20; i < 25; ++i) observed.decode({{.id = i, .position = i}});
  const SessionReader reader = observed.finish();

  std::set<std::uint32_t> allocations;
  std::size_t weights = 0;
  for (std::uint32_t id = 0; id < 6; ++id) {
    SCOPED_TRACE(id);
    const auto step = reader.step(StepId{id});
    ASSERT_TRUE(step.has_value()) << step.error().message;
    const auto graph = graph_of(reader, *step);
    const auto allocation = reader.allocation(step->allocation);
    ASSERT_TRUE(allocation.has_value()) << allocation.error().message;
    ASSERT_EQ(allocation->addresses.size(), graph->tensors.size());
    const std::vector<ListedNode>& listed = observed.listed()[id];
    ASSERT_EQ(listed.size(), graph->nodes.size());
    std::vector<bool> compared(graph->tensors.size(), false);
    const auto expect_at = [&](TensorId tensor, std::uint64_t address) {
      ASSERT_NE(address, 0U);
      EXPECT_EQ(allocation->addresses[tensor.v], address) << graph->tensor(tensor).name;
      compared[tensor.v] = true;
    };
    for (std::size_t i = 0; i < listed.size(); ++i) {
      const Node& node = graph->nodes[i];
      expect_at(node.output, listed[i].address);
      const TensorId root = graph->tensor(node.output).view_of;
      ASSERT_EQ(root == kNoTensor, listed[i].viewed == 0);
      if (root != kNoTensor) expect_at(root, listed[i].viewed);
      for (std::size_t s = 0; s < listed[i].sources.size(); ++s) {
        const TensorId source = s < node.src.size() ? node.src[s] : kNoTensor;
        ASSERT_EQ(source == kNoTensor, listed[i].sources[s] == 0);
        if (source != kNoTensor) expect_at(source, listed[i].sources[s]);
      }
    }
    EXPECT_EQ(std::ranges::count(compared, false), 0);

    if (!allocations.insert(step->allocation.v).second) continue;
    const auto files = reader.info()->model_files;
    for (std::uint32_t t = 0; t < graph->tensors.size(); ++t) {
      const Tensor& tensor = graph->tensors[t];
      if (tensor.kind != TensorKind::Weight || tensor.view_of != kNoTensor) continue;
      const std::string in_file = bytes_of(files.at(tensor.file.file), tensor.file);
      const auto* in_memory = std::bit_cast<const char*>(allocation->addresses[t]);
      EXPECT_EQ(std::memcmp(in_memory, in_file.data(), in_file.size()), 0) << tensor.name;
      ++weights;
    }
  }
  EXPECT_GT(allocations.size(), 1U);
  EXPECT_GT(weights, 20U);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Allocations,
                         ::testing::Values("small", "moe", "gpt-oss-like", "mamba"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// ---------------------------------------------------------------- cells

using Copies = std::map<const ggml_tensor*, std::string>;

Copies copy_data(const std::set<const ggml_tensor*>& caches) {
  Copies copies;
  for (const ggml_tensor* cache : caches)
    copies[cache].assign(static_cast<const char*>(cache->data), ggml_nbytes(cache));
  return copies;
}

Numbers changed_cells(const ggml_tensor& cache, const std::string& before) {
  Numbers cells;
  for (std::int64_t cell = 0; cell < cache.ne[1]; ++cell) {
    const std::size_t at = static_cast<std::size_t>(cell) * cache.nb[1];
    if (std::memcmp(static_cast<const char*>(cache.data) + at, before.data() + at, cache.nb[1]) !=
        0) {
      cells.push_back(cell);
    }
  }
  return cells;
}

// Two sequences share the cache, and one of them loses part of its tokens: cell numbers and
// positions then differ.
TEST(Cells, MatchChangedBytesAndAttendedSequence) {
  ObservedLlama observed(generated_model({.shape = "small"}), /*sequences=*/true);
  observed.begin();
  observed.decode({{.id = 9, .position = 0}});  // shows where the caches are
  ASSERT_EQ(observed.caches().size(), 2U * 12);
  llama_memory_clear(observed.memory(), true);

  struct Batch {
    const char* name;
    std::vector<BatchToken> tokens;
    std::vector<llama_pos> lost{};  // positions removed from sequence 0 before it
  };
  std::vector<Batch> batches;
  for (int i = 0; i < 5; ++i) batches.push_back({"one by one", {{.id = 10 + i, .position = i}}});
  batches.push_back({"the other", {{20, 0, 1}, {21, 1, 1}, {22, 2, 1}, {23, 3, 1}}});
  batches.push_back({"after a gap", {{30, 5}, {31, 6}, {32, 7}, {33, 8}}, {1, 2}});
  batches.push_back({"the other goes on", {{24, 4, 1}}});
  batches.push_back({"one goes on", {{34, 9}}});
  // The last batch: the owner of each cell is not needed any more.
  batches.push_back({"both", {{35, 10}, {25, 5, 1}}});

  std::vector<Numbers> written;                           // by batch
  std::map<std::int64_t, llama_seq_id> sequence_of_cell;  // derived from changed bytes
  std::vector<Numbers> attended;
  std::map<llama_pos, std::int64_t> cell_of_position;  // of sequence 0, if known
  for (const Batch& batch : batches) {
    SCOPED_TRACE(batch.name);
    for (const llama_pos position : batch.lost) {
      ASSERT_TRUE(llama_memory_seq_rm(observed.memory(), 0, position, position + 1));
      sequence_of_cell.erase(cell_of_position.at(position));
    }
    const Copies before = copy_data(observed.caches());
    observed.decode(batch.tokens);
    for (const auto& [cache, bytes] : before) {
      const Numbers changed = changed_cells(*cache, bytes);
      ASSERT_EQ(changed.size(), batch.tokens.size()) << cache->name;
      if (cache == before.begin()->first) written.push_back(changed);
      EXPECT_EQ(changed, written.back()) << cache->name;
    }
    std::set<llama_seq_id> sequences;
    for (const BatchToken& token : batch.tokens) sequences.insert(token.sequence);
    for (const std::int64_t cell : written.back()) {
      EXPECT_FALSE(sequence_of_cell.contains(cell)) << "cell used twice";
      sequence_of_cell[cell] = *sequences.begin();
    }
    if (batch.tokens.size() == 1 && batch.tokens[0].sequence == 0)
      cell_of_position[batch.tokens[0].position] = written.back()[0];
    Numbers& cells = attended.emplace_back();
    for (const auto& [cell, sequence] : sequence_of_cell) {
      if (sequences.contains(sequence)) cells.push_back(cell);
    }
  }
  const SessionReader reader = observed.finish();

  bool elsewhere = false;  // some cell number differs from its token's position
  std::map<SlotKind, int> compared;
  for (std::uint32_t i = 0; i < batches.size(); ++i) {
    SCOPED_TRACE(std::format("{}: {}", i, batches[i].name));
    const auto step = reader.step(StepId{i + 1});
    ASSERT_TRUE(step.has_value()) << step.error().message;
    const auto graph = graph_of(reader, *step);
    Numbers ids, positions;
    for (const BatchToken& token : batches[i].tokens) {
      ids.push_back(token.id);
      positions.push_back(token.position);
    }
    for (std::size_t s = 0; s < graph->slots.size(); ++s) {
      const Numbers& values = step->slots[s].ints;
      Numbers ascending = values;
      std::ranges::sort(ascending);
      switch (graph->slots[s].kind) {
        case SlotKind::TokenIds:
          EXPECT_EQ(values, ids);
          break;
        case SlotKind::Positions:
          EXPECT_EQ(values, positions);
          break;
        case SlotKind::CachePositions:
          EXPECT_EQ(ascending, written[i]);
          elsewhere = elsewhere || ascending != positions;
          break;
        case SlotKind::AttendedCells:
          EXPECT_EQ(values, attended[i]);
          break;
        default:
          continue;
      }
      ++compared[graph->slots[s].kind];
    }
  }
  EXPECT_TRUE(elsewhere);
  const int each = static_cast<int>(batches.size());
  EXPECT_EQ(compared[SlotKind::TokenIds], each);
  EXPECT_EQ(compared[SlotKind::Positions], each);
  EXPECT_GE(compared[SlotKind::CachePositions], each);
  EXPECT_GE(compared[SlotKind::AttendedCells], each);
}

}  // namespace
}  // namespace tt::test
