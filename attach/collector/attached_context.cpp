#include "attach/collector/attached_context.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <format>
#include <set>
#include <sstream>
#include <utility>

#include "tracer/engine/host_facts.h"
#include "tracer/engine/machine_rate.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/request/generation.h"
#include "tracer/text/recorded_answer.h"
#include "tracer/text/utf8.h"

namespace tt::attach {

namespace fs = std::filesystem;

namespace {

std::string text_of(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& argument : command) {
    const bool plain = !argument.empty() && argument.find_first_of(" \t\n'\"\\$") == argument.npos;
    text += (text.empty() ? "" : " ") + (plain ? argument : "'" + argument + "'");
  }
  return to_valid_utf8(text);
}

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool is_weight(const RawGraph& graph, const RawTensor& tensor) {
  return tensor.buffer != kNone && tensor.view_of == kNone && tensor.op == "NONE" &&
         graph.buffers[tensor.buffer].usage == RawBuffer::Usage::Weights;
}

// The mapped files that contain weights, by their number.
std::vector<std::string> files_of_weights(const RawGraph& graph, const std::string& maps) {
  std::map<std::string, std::uint32_t> found;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    std::uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2 || !line.contains('/')) continue;
    for (const RawTensor& tensor : graph.tensors)
      if (is_weight(graph, tensor) && tensor.address >= begin && tensor.address < end)
        ++found[line.substr(line.find('/'))];
  }
  std::vector<std::string> files;
  for (const auto& [file, count] : found) files.push_back(file);
  std::ranges::sort(files, std::greater{}, [&](const std::string& file) { return found[file]; });
  return files;
}

// How many weights of the graph the file has, with the same shapes.
std::size_t matching_weights(const GgufIndex& index, const RawGraph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(graph.tensors, [&](const RawTensor& t) {
    if (!is_weight(graph, t)) return false;
    const GgufTensor* in_file = index.find(t.name);
    return in_file != nullptr && in_file->ne == t.ne;
  }));
}

// The architecture of a model that makes embeddings of images or sound for another one.
constexpr const char* kProjector = "clip";

// Where its metadata has the shape of the model: "llama."; of a projector, that of its encoder.
std::string prefix_of(const GgufIndex& index) {
  const std::string name =
      value_of<std::string>(index.metadata(), "general.architecture").value_or("");
  if (name != kProjector) return name + ".";
  const bool sees = value_of<bool>(index.metadata(), "clip.has_vision_encoder").value_or(false);
  return name + (sees ? ".vision." : ".audio.");
}

std::uint32_t number_of(const GgufIndex& index, const std::string& key) {
  return static_cast<std::uint32_t>(
      value_of<std::uint64_t>(index.metadata(), prefix_of(index) + key).value_or(0));
}

// The argument of the first of these options; empty: there is none.
std::string argument_of(const std::vector<std::string>& command,
                        std::initializer_list<std::string_view> options) {
  const auto at = std::ranges::find_first_of(command, options);
  return at == command.end() || at + 1 == command.end() ? "" : *(at + 1);
}

// What the context is for others of llama.cpp's programs: draft, target, projector; empty: nothing.
struct Role {
  std::string name;
  bool drafts_by_layers = false;  // those of the target's model that predict further tokens (MTP)
};
Role role_of(const std::vector<std::string>& command, const GgufIndex& index,
             const RawGraph& graph) {
  if (index.files().empty()) return {};
  if (value_of<std::string>(index.metadata(), "general.architecture") == kProjector)
    return {.name = "projector"};
  const std::string model = argument_of(command, {"-md", "--model-draft", "--spec-draft-model"});
  const bool by_layers = argument_of(command, {"--spec-type"}).contains("draft-mtp");
  if (by_layers && std::ranges::any_of(graph.tensors, [&](const RawTensor& tensor) {
        return is_weight(graph, tensor) && tensor.name.contains(".nextn.");
      }))
    return {.name = "draft", .drafts_by_layers = true};
  if (model.empty()) return {.name = by_layers ? "target" : ""};
  std::error_code none;
  return {.name = fs::equivalent(model, index.files().front().path, none) ? "draft" : "target"};
}

const std::vector<std::int64_t>* ints_of(const GraphTemplate& graph, const RunStep& step,
                                         const std::map<std::uint32_t, std::uint32_t>& slots,
                                         SlotKind kind) {
  for (const CopiedList& list : step.lists) {
    const auto slot = slots.find(list.tensor);
    if (slot != slots.end() && !list.first_cells && graph.slots[slot->second].kind == kind &&
        !list.values.ints.empty())
      return &list.values.ints;
  }
  return nullptr;
}

}  // namespace

AttachedContext::AttachedContext(const ProgramFacts& program, const ListedGraph& graph)
    : machine_folder_(program.machine_folder), counts_faults_(program.faults != "perf") {
  find_model(program, graph.graph);
  describe(program, graph.graph);
}

void AttachedContext::find_model(const ProgramFacts& program, const RawGraph& graph) {
  // A split model is opened by its first file, which the program has opened, too.
  std::vector<std::string> candidates = program.models;
  const std::vector<std::string> mapped = files_of_weights(graph, program.maps);
  candidates.insert(candidates.end(), mapped.begin(), mapped.end());
  std::size_t best = 0;
  std::set<std::string> tried;
  for (const std::string& path : candidates) {
    if (!tried.insert(path).second) continue;
    auto index = GgufIndex::open(path);
    if (!index) continue;
    const bool has_mapping =
        !mapped.empty() && std::ranges::any_of(index->files(), [&](const ModelFile& file) {
          std::error_code none;
          return fs::equivalent(file.path, mapped.front(), none);
        });
    const std::size_t score =
        matching_weights(*index, graph) + (has_mapping ? graph.tensors.size() : 0);
    if (score <= best) continue;
    best = score;
    index_ = *std::move(index);
  }
  std::istringstream maps(program.maps);
  mapped_ = MappedFiles::of_maps(maps, index_.files());
  if (index_.files().empty()) return;
  model_ = fs::path(index_.files().front().path).filename();
  if (auto vocabulary = Vocabulary::open(index_.files().front().path))
    vocabulary_ = *std::move(vocabulary);
}

void AttachedContext::describe(const ProgramFacts& program, const RawGraph& graph) {
  info_.id = new_session_id();
  info_.title = text_of(program.command);
  info_.level = Level::Detailed;
  info_.model_files = index_.files();
  info_.n_layers = number_of(index_, "block_count");
  info_.n_heads = number_of(index_, "attention.head_count");
  info_.n_heads_kv = number_of(index_, "attention.head_count_kv");
  if (info_.n_heads_kv == 0) info_.n_heads_kv = info_.n_heads;
  info_.n_embd = number_of(index_, "embedding_length");
  info_.n_experts = number_of(index_, "expert_count");
  info_.n_experts_used = number_of(index_, "expert_used_count");
  const std::string prefix =
      value_of<std::string>(index_.metadata(), "general.architecture").value_or("");
  encodes_ =
      std::ranges::contains(index_.metadata(), prefix + ".decoder_start_token_id", &GgufEntry::key);
  const auto add = [&](std::string name, std::string value) {
    info_.facts.emplace_back(std::move(name), std::move(value));
  };
  if (const auto name = value_of<std::string>(index_.metadata(), "general.name"))
    add("model.name", *name);
  if (const auto architecture = value_of<std::string>(index_.metadata(), "general.architecture"))
    add("model.architecture", *architecture);
  for (const GgufEntry& entry : index_.metadata()) {
    if (entry.key == "tokenizer.ggml.tokens") {
      if (const auto* list = std::get_if<GgufArray>(&entry.value))
        info_.n_vocab = static_cast<std::uint32_t>(list->length);
    }
    if (entry.key.starts_with("tokenizer.") || entry.key.starts_with("general.")) continue;
    if (info_.facts.size() < kMaxSessionFacts / 2) add("model." + entry.key, value_text(entry));
  }
  // As llama-server leaves them out of its answers.
  const bool shows_control = std::ranges::any_of(program.command, [](const std::string& option) {
    return option == "--special" || option == "-sp";
  });
  if (vocabulary_ && !shows_control) {
    std::vector<std::int32_t> silent;
    for (std::int32_t id = 0; std::cmp_less(id, info_.n_vocab); ++id)
      if (vocabulary_->is_control(id)) silent.push_back(id);
    if (!silent.empty()) add("request.silent", format_ranges(silent));
  }
  add("attach.command", text_of(program.command));
  add("attach.program", to_valid_utf8(program.name));
  add("attach.pid", std::to_string(program.pid));
  add("attach.context", std::to_string(program.context));
  const Role role = role_of(program.command, index_, graph);
  draft_ = role.name == "draft";
  if (!role.name.empty()) add("attach.role", role.name);
  if (role.drafts_by_layers) add("attach.draft", "mtp");
  // The layers that draft are of a context of their own.
  if (!role.drafts_by_layers)
    info_.n_layers -= std::min(info_.n_layers, number_of(index_, "nextn_predict_layers"));
  const fs::path model = index_.files().empty() ? "." : index_.files().front().path;
  for (auto& [name, value] : host_facts(model)) {
    if (!name.starts_with("library.") && name != "host.devices") add(name, value);
  }
  add("library.ggml", program.library.version);
  add("library.ggml_path", program.library.path);
  add("trace.page_faults", program.faults);
}

void AttachedContext::Session::keep(std::expected<void, TraceError> done) {
  if (!done && error.empty()) error = done.error().message;
}

void AttachedContext::add(const ListedGraph& listed) {
  BuiltGraph built = build_template(listed.graph, listed.ops, {.index = index_, .mapped = mapped_});
  if (built.coverage.weights >= coverage_.weights) coverage_ = built.coverage;
  if (built.buffers.kv >= buffers_.kv) {
    buffers_.kv = built.buffers.kv;
    buffers_.layers_by_cells = std::move(built.buffers.layers_by_cells);
  }
  buffers_.compute = std::max(buffers_.compute, built.buffers.compute);

  Known known;
  for (const RawTensor& tensor : listed.graph.tensors) known.addresses.push_back(tensor.address);
  known.backends = listed.backends;
  for (std::uint32_t s = 0; s < built.graph.slots.size(); ++s)
    known.slots.emplace(built.graph.slots[s].tensor.v, s);
  known.has_cache = std::ranges::any_of(
      built.graph.tensors, [](const Tensor& tensor) { return tensor.kind == TensorKind::Kv; });
  known.cache = cache_lists(built.graph);
  // The same template at other addresses, or the same allocation.
  for (const auto& [number, other] : graphs_) {
    if (other.graph->fingerprint != built.graph.fingerprint || *other.graph != built.graph)
      continue;
    known.graph = other.graph;
    if (other.addresses != known.addresses) continue;
    known.allocation = other.allocation;
    break;
  }
  if (known.graph == nullptr)
    known.graph = std::make_shared<const GraphTemplate>(std::move(built.graph));
  if (known.allocation == 0) known.allocation = ++allocations_;
  graphs_.insert_or_assign(listed.head.graph, std::move(known));
}

const AttachedContext::Known* AttachedContext::graph_of(const RunStep& step) const {
  const auto found = graphs_.find(step.head.graph);
  return found == graphs_.end() ? nullptr : &found->second;
}

// Of the largest cache: the mask of one with a sliding window, or with attention in chunks, may
// hide all cells of a sequence but the last ones.
std::optional<AttachedContext::Known::CacheLists> AttachedContext::cache_lists(
    const GraphTemplate& graph) {
  std::optional<Known::CacheLists> found;
  for (const Slot& slot : graph.slots) {
    if (slot.kind != SlotKind::CachePositions) continue;
    const Tensor& cache =
        graph.tensor(graph.root(graph.node(graph.op(slot.read_at).last()).output));
    if (found && cache.ne[1] < found->per_stream) continue;
    const auto mask = std::ranges::find_if(graph.slots, [&](const Slot& other) {
      return other.kind == SlotKind::AttendedCells && other.layer == slot.layer;
    });
    // The lists of the keys and of the values of a layer are of the same cells.
    if (found && mask == graph.slots.end()) continue;
    found = {.own = slot.tensor.v,
             .mask = mask == graph.slots.end() ? kNone : mask->tensor.v,
             .per_stream = cache.ne[1],
             .streams = cache.ne[2]};
  }
  return found;
}

void AttachedContext::add_cells(const RunStep& step, const Known& known, StepTokens& tokens) const {
  if (!known.cache) return;
  const CopiedList* own = nullptr;
  for (const CopiedList& list : step.lists) {
    if (list.tensor == known.cache->own && !list.first_cells) own = &list;
    if (list.tensor != known.cache->mask || !list.first_cells) continue;
    for (std::size_t i = 0; i + 1 < list.values.ints.size(); i += 2)
      if (list.values.ints[i] >= 0)  // else the row fills up the mask
        tokens.attended.push_back({list.values.ints[i], list.values.ints[i + 1]});
  }
  if (own == nullptr || own->values.ints.size() != tokens.batch.size()) return;
  tokens.cells = {.own = own->values.ints,
                  .attended = tokens.attended,
                  .per_stream = known.cache->per_stream,
                  .streams = known.cache->streams};
  tokens.in_cache = cache_.of(tokens.cells);
  for (std::size_t i = 0; i < tokens.in_cache.size(); ++i)
    tokens.batch[i].in_cache = tokens.in_cache[i];
}

StepTokens AttachedContext::tokens_of(const RunStep& step, const Known& known) const {
  const auto ints = [&](SlotKind kind) { return ints_of(*known.graph, step, known.slots, kind); };
  StepTokens tokens;
  tokens.ids = ints(SlotKind::TokenIds);
  if (tokens.ids == nullptr) return tokens;
  const auto* positions = ints(SlotKind::Positions);
  const auto* outputs = ints(SlotKind::OutputIds);
  // A recurrent model reads no positions: then the context is taken for one sequence.
  const std::int32_t first = known.has_cache ? evaluated_ : 0;
  for (std::size_t i = 0; i < tokens.ids->size(); ++i)
    tokens.batch.push_back({.position = positions != nullptr && i < positions->size()
                                            ? static_cast<std::int32_t>((*positions)[i])
                                            : first + static_cast<std::int32_t>(i),
                            .output = outputs == nullptr});
  if (outputs != nullptr) {
    for (const std::int64_t at : *outputs)
      if (at >= 0 && std::cmp_less(at, tokens.batch.size()))
        tokens.batch[static_cast<std::size_t>(at)].output = true;
  }
  add_cells(step, known, tokens);
  tokens.runs = requests_.runs_of(tokens.batch);
  return tokens;
}

AttachedContext::EndsBefore AttachedContext::ends_before(const RunStep& step) const {
  const Known* known = graph_of(step);
  if (known == nullptr) return EndsBefore::No;
  const StepTokens tokens = tokens_of(step, *known);
  if (!requests_.ends_before(tokens.runs)) return EndsBefore::No;
  // Only the streams of a cache make llama.cpp evaluate requests of a batch one after the other.
  const bool streams = known->cache && known->cache->streams > 1;
  return streams && requests_.may_go_on(tokens.batch, tokens.runs) ? EndsBefore::Unknown
                                                                   : EndsBefore::Yes;
}

// A batch has a token of each request that generates. So a request is over that has none between
// two generated tokens of another one.
AttachedContext::EndsBefore AttachedContext::ends_before(std::span<const RunStep> waiting,
                                                         const RunStep& next) const {
  constexpr std::size_t kMaxWaiting = 64;  // steps: a long prompt is evaluated in many
  if (waiting.size() >= kMaxWaiting) return EndsBefore::Yes;
  std::map<std::uint32_t, int> outputs;  // by stream: steps whose last token has one
  const auto add = [&](const StepTokens& tokens) {
    for (const TokenRun& run : tokens.runs)
      if (const auto stream = tokens.batch[run.begin].in_cache)
        outputs[*stream] += tokens.batch[run.end - 1].output ? 1 : 0;
  };
  for (const RunStep& step : waiting)
    if (const Known* known = graph_of(step)) add(tokens_of(step, *known));
  const Known* known = graph_of(next);
  if (known == nullptr) return EndsBefore::Unknown;
  const StepTokens tokens = tokens_of(next, *known);
  for (const TokenRun& run : tokens.runs) {
    const auto stream = tokens.batch[run.begin].in_cache;
    if (run.sequence && (!stream || !outputs.contains(*stream))) return EndsBefore::No;
  }
  add(tokens);
  // The end of the prompt, and two generated tokens.
  const bool is_over = std::ranges::any_of(outputs, [](const auto& of) { return of.second > 2; });
  return is_over ? EndsBefore::Yes : EndsBefore::Unknown;
}

bool AttachedContext::is_warm_up(const RunStep& step) const {
  constexpr std::size_t kMaxWarmUpTokens = 2;
  const Known* known = graph_of(step);
  if (known == nullptr || any_request_) return false;
  const StepTokens tokens = tokens_of(step, *known);
  return tokens.ids != nullptr && tokens.ids->size() <= kMaxWarmUpTokens &&
         tokens.batch.front().position == 0 &&
         std::ranges::all_of(*tokens.ids, [&](std::int64_t id) {
           return id == 0 ||
                  (vocabulary_ && vocabulary_->is_control(static_cast<std::int32_t>(id)));
         });
}

std::string AttachedContext::text_of_tokens(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) text += vocabulary_ ? vocabulary_->piece(id) : "";
  return to_valid_utf8(text);
}

// The begin of the text that the step evaluates.
std::string AttachedContext::title_of(const StepTokens& tokens) const {
  constexpr std::size_t kLength = 80;
  std::string text;
  for (std::size_t i = 0; tokens.ids != nullptr && i < tokens.ids->size(); ++i) {
    const auto id = static_cast<std::int32_t>((*tokens.ids)[i]);
    if (!vocabulary_ || vocabulary_->is_control(id)) continue;
    const std::string piece = vocabulary_->piece(id);
    if (text.size() + piece.size() > kLength) break;
    text += piece;
  }
  std::ranges::replace(text, '\n', ' ');
  return to_valid_utf8(text.substr(std::min(text.size(), text.find_first_not_of(' '))));
}

std::expected<void, std::string> AttachedContext::open(const fs::path& folder, const RunStep& first,
                                                       std::optional<std::uint32_t> request) {
  Session& session = session_.emplace();
  session.info = info_;
  session.epoch_ns = first.head.begin;
  session.info.start_utc_ns = now_ns(CLOCK_REALTIME) - (now_ns(CLOCK_MONOTONIC) - session.epoch_ns);
  if (request) {
    session.info.id += std::format("-{}", *request);
    session.info.facts.emplace_back("attach.request", std::to_string(*request));
    const Known* known = graph_of(first);
    const std::string text = known != nullptr ? title_of(tokens_of(first, *known)) : "";
    if (!text.empty()) session.info.title = text;
  }
  fs::path file = folder / (session.info.id + ".ttrace");
  auto writer = SessionWriter::create(file, session.info);
  if (!writer) {
    session.error = writer.error().message;
    return std::unexpected(session.error);
  }
  session.writer = *std::move(writer);
  session.file = std::move(file);
  return {};
}

// A template and an allocation are in the file before the first step that uses them.
void AttachedContext::write_graph(const Known& known, Step& step) {
  Session& session = *session_;
  const auto [graph, new_graph] = session.templates.try_emplace(
      known.graph.get(), TemplateId{static_cast<std::uint32_t>(session.templates.size() + 1)});
  const auto [allocation, new_allocation] = session.allocations.try_emplace(
      known.allocation, AllocationId{static_cast<std::uint32_t>(session.allocations.size() + 1)});
  step.graph = graph->second;
  step.allocation = allocation->second;
  if (new_graph && session.writing())
    session.keep(session.writer->add_template(step.graph, *known.graph));
  if (new_allocation && session.writing())
    session.keep(session.writer->add_allocation(
        {.id = step.allocation, .graph = step.graph, .addresses = known.addresses}));
}

// What became of the draft that the last batch of the request checked: `run` is the first one of
// the next batch.
void AttachedContext::settle_draft(const TokenRun& run) {
  Session& session = *session_;
  std::vector<Token>& batch = session.last_batch[run.request];
  if (run.same_batch || batch.empty()) return;
  const bool goes_on = run.goes_back || run.position == batch.back().position + 1;
  std::vector<Token> settled;
  for (Token& token : batch) {
    const Draft before = token.draft;
    if (run.goes_back && token.position >= run.position) {
      token.draft = Draft::Rejected;
    } else if (token.draft == Draft::Unknown && goes_on && run.generated) {
      token.draft = Draft::Accepted;
    }
    if (token.draft != before) settled.push_back(token);
  }
  batch.clear();
  if (!settled.empty() && session.writing()) session.keep(session.writer->replace_tokens(settled));
}

// The tokens of a request that begins which are in the cache already, before those of its first
// step: as in a session of the server.
void AttachedContext::add_reused(const TokenRun& run, std::uint32_t sequence) {
  Session& session = *session_;
  const std::span<const std::int32_t> reused = prompts_.reused(run.request);
  // Each request of a long conversation has all of it: then only their number is known, by the
  // position of the first token.
  if (reused.size() > kMaxReused - session.reused) return;
  std::vector<Token> added;
  for (const std::int32_t id : reused)
    added.push_back({.index = session.added.tokens++,
                     .id = id,
                     .position = static_cast<std::int32_t>(added.size()),
                     .generated = false,
                     .reused = true,
                     .text = vocabulary_ ? vocabulary_->piece(id) : "",
                     .sequence = sequence,
                     .draft = Draft::None});
  session.reused += added.size();
  if (!added.empty() && session.writing()) session.keep(session.writer->add_tokens(added));
}

void AttachedContext::add_tokens(const StepTokens& tokens, bool has_sequences, Step& step) {
  Session& session = *session_;
  const auto sequence_of = [&](const TokenRun& run) {
    return session.sequences
        .try_emplace(run.request, static_cast<std::uint32_t>(session.sequences.size() + 1))
        .first->second;
  };
  if (has_sequences)
    for (const TokenRun& run : tokens.runs)
      if (!run.sequence) add_reused(run, sequence_of(run));
  step.first_token = session.added.tokens;
  if (tokens.ids == nullptr) return;
  step.n_tokens = static_cast<std::uint32_t>(tokens.batch.size());
  std::vector<Token> added;
  bool any_prompt = false;
  for (const TokenRun& run : tokens.runs) {
    any_prompt = any_prompt || !run.generated;
    std::optional<std::uint32_t> sequence;
    if (has_sequences) {
      sequence = sequence_of(run);
      settle_draft(run);
      // llama-server numbers the sequences of its slots as these, and a cache with a stream per
      // sequence its streams.
      if (tokens.cells.streams > 1 && *sequence <= kMaxServerSlots) {
        session.slots.resize(std::max<std::size_t>(session.slots.size(), *sequence));
        session.slots[*sequence - 1] = tokens.batch[run.begin].in_cache;
      }
    }
    for (std::size_t i = run.begin; i < run.end; ++i) {
      const auto id = static_cast<std::int32_t>((*tokens.ids)[i]);
      // The first token of a run was sampled.
      const bool proposed = sequence && run.generated && i > run.begin;
      added.push_back({.index = session.added.tokens++,
                       .id = id,
                       .position = tokens.batch[i].position,
                       .generated = run.generated,
                       .reused = false,
                       .text = vocabulary_ ? vocabulary_->piece(id) : "",
                       .sequence = sequence,
                       .draft = proposed ? Draft::Unknown : Draft::None});
      session.added.generated += run.generated ? 1 : 0;
      if (sequence && run.generated) session.last_batch[run.request].push_back(added.back());
    }
  }
  if (step.phase == Phase::Other) step.phase = any_prompt ? Phase::Prompt : Phase::Generate;
  if (any_prompt) session.prompt_end = step.end;
  if (session.writing()) session.keep(session.writer->add_tokens(added));
}

// Without those that do not belong to the graph: a record may have any numbers.
StepSplits AttachedContext::splits_of(const RunStep& run, const Known& known, StepId id) const {
  StepSplits out{.step = id, .backends = known.backends, .splits = {}};
  if (out.backends.size() > kMaxBackends) return out;
  const auto since = [&](std::int64_t at) { return Ns{at - session_->epoch_ns}; };
  const auto is_backend = [&](std::uint32_t index) { return index < known.backends.size(); };
  auto copy = run.copies.begin();
  for (const SplitRecord& record : run.splits) {
    const auto end = copy + record.copies;
    BackendSplit split{.backend = record.backend,
                       .first = OpId{record.first_op},
                       .ops = record.ops,
                       .begin = since(record.begin),
                       .end = since(record.end),
                       .done = record.done == 0 ? std::nullopt : std::optional(since(record.done))};
    for (; copy != end; ++copy)
      split.copies.push_back({.tensor = TensorId{copy->tensor},
                              .from = is_backend(copy->from) ? copy->from : kNone,
                              .bytes = copy->bytes,
                              .begin = since(copy->begin),
                              .end = since(copy->end),
                              .wait = Ns{copy->wait},
                              .complete = copy->complete != 0});
    if (is_backend(split.backend)) out.splits.push_back(std::move(split));
  }
  if (!are_of_graph(out, known.graph->ops.size(), known.graph->tensors.size())) out.splits.clear();
  return out;
}

void AttachedContext::take_conditions(const StepRecord& record, Step& step) {
  std::optional<StepRecord>& last = session_->last_record;
  const auto ns = [&](std::int64_t from, std::int64_t to) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, to - from));
  };
  step.conditions.evaluate_ns = ns(record.first_op, record.end);
  if (last) {
    step.conditions.interval_ns = ns(last->end, record.end);
    step.conditions.voluntary_switches = record.voluntary - last->voluntary;
    step.conditions.involuntary_switches = record.involuntary - last->involuntary;
    step.conditions.minor_faults = record.minor - last->minor;
    step.conditions.major_faults = record.major - last->major;
  }
  last = record;
}

void AttachedContext::add(const RunStep& run, std::vector<PageFault>& faults) {
  Session& session = *session_;
  last_end_ = run.head.end;
  const Known* known = graph_of(run);
  if (known == nullptr) {
    ++session.losses.steps_not_written;
    return;
  }
  const auto since = [&](std::int64_t at) { return Ns{at - session.epoch_ns}; };
  Step step;
  step.id = StepId{session.added.steps};
  step.begin = since(run.head.begin);
  step.first_op = since(run.head.first_op);
  step.end = since(run.head.end);
  step.threads = session.threads = run.head.threads;
  step.aborted = run.head.aborted != 0;
  step.dropped = run.head.dropped != 0;
  step.timing = run.head.timing == StepTiming::Fast      ? Timing::Fast
                : run.head.timing == StepTiming::Learned ? Timing::Learned
                : run.head.timing == StepTiming::Exact   ? Timing::Exact
                                                         : Timing::None;
  for (const std::int64_t time : run.times) step.op_ends.push_back(since(time));
  if (step.op_ends.size() > known->graph->ops.size()) step.op_ends.resize(known->graph->ops.size());
  if (!step.dropped) {  // else the graph only names the lists
    write_graph(*known, step);
    step.slots.resize(known->graph->slots.size());
    for (const CopiedList& list : run.lists) {
      if (list.first_cells) continue;
      const auto slot = known->slots.find(list.tensor);
      if (slot != known->slots.end()) step.slots[slot->second] = list.values;
    }
  }
  step.phase = known->has_cache ? Phase::Other : encodes_ ? Phase::Encode : Phase::Embed;
  const StepTokens tokens = tokens_of(run, *known);
  const bool warm_up = is_warm_up(run);
  if (tokens.ids != nullptr && known->has_cache)
    prompts_.add(*tokens.ids, tokens.batch, tokens.runs);
  // Accepted tokens are a prompt for a draft model: its steps are not told apart.
  add_tokens(tokens, known->has_cache && !draft_ && !warm_up, step);
  if (step.n_tokens == 0) {
    step.phase = Phase::Other;
    requests_.add_other();
    forget_cache();
  } else if (known->has_cache) {
    requests_.add(tokens.batch, tokens.runs, run.head.begin, run.head.end);
    cache_.add(tokens.cells, tokens.in_cache);
    evaluated_ += static_cast<std::int32_t>(step.n_tokens);
  }
  any_request_ = any_request_ || (step.n_tokens > 0 && !warm_up);
  take_conditions(run.head, step);
  session.losses.count_mismatches += run.head.mismatch != 0 ? 1 : 0;
  session.losses.slot_values_dropped += run.head.slots_lost;
  session.losses.steps_without_times += step.dropped ? 1 : 0;
  if (session.writing()) session.keep(session.writer->add_step(step));
  if (const StepSplits splits = splits_of(run, *known, step.id);
      !splits.splits.empty() && session.writing()) {
    session.keep(session.writer->add_splits(splits, step.begin));
    ++session.by_splits;
  }
  StepFaults of_step{.step = step.id, .count = 0, .faults = {}};
  std::erase_if(faults, [&](const PageFault& fault) {
    if (fault.at.v > run.head.end) return false;
    if (fault.at.v >= run.head.begin)
      of_step.faults.push_back({.at = since(fault.at.v), .address = fault.address});
    return fault.at.v >= run.head.begin;
  });
  of_step.count = counts_faults_ ? step.conditions.major_faults.value_or(0) : of_step.faults.size();
  if (of_step.count > 0 && session.writing())
    session.keep(session.writer->add_faults(of_step, step.begin));
  ++session.added.steps;
}

// An error takes back the steps since the last commit.
void AttachedContext::commit() {
  if (!session_) return;
  if (session_->writing()) session_->keep(session_->writer->commit());
  if (session_->writing()) session_->committed = session_->added;
}

void AttachedContext::set_draft_session(const std::string& id) {
  session_->info.facts.emplace_back("attach.draft_session", id);
}

EndedSession AttachedContext::finish(SessionState state, const std::string& error,
                                     std::uint64_t steps_lost, std::uint64_t faults_lost) {
  commit();
  Session session = *std::move(session_);
  session_.reset();
  session.losses.steps_not_written += steps_lost + (session.added.steps - session.committed.steps);
  session.losses.page_faults_lost += faults_lost;
  SessionInfo& info = session.info;
  info.state = session.error.empty() ? state : SessionState::Failed;
  info.error = session.error.empty() ? error : session.error;
  const auto add = [&](const char* name, auto value) {
    info.facts.emplace_back(name, std::format("{}", value));
  };
  for (auto& fact : machine_rate_facts(
           stored_rate(read_bandwidth_file(machine_folder_), session.threads),
           stored_rate(compute_peak_file(machine_folder_), session.threads), session.threads))
    info.facts.push_back(std::move(fact));
  const std::uint32_t requests = draft_ ? 0 : requests_.requests();
  if (requests > 0 && !info.fact("attach.request").empty()) add("attach.requests", requests);
  const auto compared = prompts_.end(
      info.id,
      {.text_of = [&](std::span<const std::int32_t> some) { return text_of_tokens(some); },
       .is_control = [&](std::int32_t id) { return vocabulary_ && vocabulary_->is_control(id); }});
  const bool alone = requests == 1 && compared && !info.fact("attach.request").empty();
  add("result.prompt_tokens",
      alone ? compared->prompt_tokens : session.added.tokens - session.added.generated);
  if (alone) {
    add_reuse_facts(info, compared->reused, compared->cached);
    add("result.prompt_ns", session.prompt_end.v);
  }
  add("result.generated_tokens",
      session.added.generated - std::min(session.added.generated, requests_.rejected()));
  if (requests_.rejected() > 0) add("result.rejected_tokens", requests_.rejected());
  if (!session.slots.empty()) add("attach.server_slots", format_server_slots(session.slots));
  if (session.by_splits > 0) add("attach.splits", session.by_splits);
  if (buffers_.compute > 0) {
    add("result.kv_bytes", buffers_.kv);
    add("result.compute_bytes", buffers_.compute);
  }
  add("trace.weights", coverage_.weights);
  add("trace.offsets_by_name", coverage_.by_name);
  add("trace.offsets_by_address", coverage_.by_address);
  add("trace.offsets_agree", coverage_.agree);
  if (session.writer != nullptr) session.keep(session.writer->finish(info, session.losses));
  EndedSession ended{.file = session.file,
                     .start_utc_ns = info.start_utc_ns,
                     .steps = session.committed.steps,
                     .tokens = session.committed.tokens,
                     .generated = session.committed.generated -
                                  std::min(session.committed.generated, requests_.rejected()),
                     .requests = requests,
                     .slowest_ns_per_token = requests_.slowest_ns_per_token(),
                     .losses = session.losses,
                     .error = session.error};
  requests_.end();
  return ended;
}

}  // namespace tt::attach
