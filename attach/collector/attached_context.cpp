#include "attach/collector/attached_context.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <format>
#include <set>
#include <sstream>
#include <utility>

#include "tracer/engine/host_facts.h"
#include "tracer/request/generation.h"
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

// A draft has fewer tokens than this; a longer run with outputs is a prompt whose outputs are asked
// for.
constexpr std::size_t kMaxChecked = 64;

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

std::uint32_t number_of(const GgufIndex& index, const std::string& key) {
  const auto architecture = value_of<std::string>(index.metadata(), "general.architecture");
  if (!architecture) return 0;
  for (const GgufEntry& entry : index.metadata()) {
    if (entry.key != *architecture + "." + key) continue;
    if (const auto* scalar = std::get_if<GgufScalar>(&entry.value)) {
      if (const auto* number = std::get_if<std::uint64_t>(scalar))
        return static_cast<std::uint32_t>(*number);
    }
  }
  return 0;
}

// The option of llama.cpp's programs for a draft model.
bool is_draft_option(const std::string& option) {
  return option == "-md" || option == "--model-draft" || option == "--spec-draft-model";
}

bool has_draft(const std::vector<std::string>& command) {
  return std::ranges::any_of(command, is_draft_option);
}

// The program was told to use this file for drafts.
bool is_draft(const std::vector<std::string>& command, const fs::path& model) {
  const auto option = std::ranges::find_if(command, is_draft_option);
  std::error_code none;
  return option != command.end() && option + 1 != command.end() &&
         fs::equivalent(*(option + 1), model, none);
}

const std::vector<std::int64_t>* ints_of(const GraphTemplate& graph, const Step& step,
                                         SlotKind kind) {
  for (std::size_t i = 0; i < graph.slots.size() && i < step.slots.size(); ++i)
    if (graph.slots[i].kind == kind && !step.slots[i].ints.empty()) return &step.slots[i].ints;
  return nullptr;
}

}  // namespace

std::expected<std::unique_ptr<AttachedContext>, std::string> AttachedContext::create(
    const fs::path& folder, const ProgramFacts& program, const ListedGraph& graph) {
  std::unique_ptr<AttachedContext> context(new AttachedContext);
  context->find_model(program, graph.graph);
  context->describe(program);
  context->file_ = folder / (context->info_.id + ".ttrace");
  auto writer = SessionWriter::create(context->file_, context->info_);
  if (!writer) return std::unexpected(writer.error().message);
  context->writer_ = *std::move(writer);
  return context;
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

void AttachedContext::describe(const ProgramFacts& program) {
  const std::int64_t utc = now_ns(CLOCK_REALTIME);
  epoch_ns_ = now_ns(CLOCK_MONOTONIC);
  info_.id = new_session_id();
  info_.title = text_of(program.command);
  info_.start_utc_ns = utc;
  info_.level = Level::Detailed;
  info_.model_files = index_.files();
  info_.n_layers = number_of(index_, "block_count");
  info_.n_heads = number_of(index_, "attention.head_count");
  info_.n_heads_kv = number_of(index_, "attention.head_count_kv");
  if (info_.n_heads_kv == 0) info_.n_heads_kv = info_.n_heads;
  info_.n_embd = number_of(index_, "embedding_length");
  info_.n_experts = number_of(index_, "expert_count");
  info_.n_experts_used = number_of(index_, "expert_used_count");
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
  add("attach.command", text_of(program.command));
  add("attach.pid", std::to_string(program.pid));
  add("attach.context", std::to_string(program.context));
  if (has_draft(program.command) && !index_.files().empty())
    add("attach.role", is_draft(program.command, index_.files().front().path) ? "draft" : "target");
  const fs::path model = index_.files().empty() ? "." : index_.files().front().path;
  for (auto& [name, value] : host_facts(model)) {
    if (!name.starts_with("library.") && name != "host.devices") add(name, value);
  }
  add("library.ggml", program.library.version);
  add("library.ggml_path", program.library.path);
  add("trace.faults", program.faults);
}

void AttachedContext::keep(std::expected<void, TraceError> done) {
  if (!done && error_.empty()) error_ = done.error().message;
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
  for (std::uint32_t s = 0; s < built.graph.slots.size(); ++s)
    known.slots.emplace(built.graph.slots[s].tensor.v, s);
  // The same template at other addresses, or the same allocation.
  for (const auto& [number, other] : graphs_) {
    if (other.graph->fingerprint != built.graph.fingerprint || *other.graph != built.graph)
      continue;
    known.graph = other.graph;
    known.id = other.id;
    if (other.addresses != known.addresses) continue;
    known.allocation = other.allocation;
    known.in_file = other.in_file;
    break;
  }
  if (known.graph == nullptr) {
    known.graph = std::make_shared<const GraphTemplate>(std::move(built.graph));
    known.id = TemplateId{++templates_};
    if (writing()) keep(writer_->add_template(known.id, *known.graph));
  }
  if (!known.in_file) {
    known.allocation = AllocationId{++allocations_};
    if (writing())
      keep(writer_->add_allocation(
          {.id = known.allocation, .graph = known.id, .addresses = known.addresses}));
    known.in_file = true;
  }
  graphs_.insert_or_assign(listed.head.graph, std::move(known));
}

// A run of consecutive positions is a part of one sequence. One token, or several that all have an
// output (a checked draft), follow earlier output; the others are a prompt.
void AttachedContext::add_tokens(const GraphTemplate& graph, Step& step) {
  const auto* ids = ints_of(graph, step, SlotKind::TokenIds);
  if (ids == nullptr) return;
  const auto* positions = ints_of(graph, step, SlotKind::Positions);
  const auto* outputs = ints_of(graph, step, SlotKind::OutputIds);
  const std::size_t count = ids->size();
  std::vector<bool> has_output(count, outputs == nullptr);
  if (outputs != nullptr) {
    for (const std::int64_t at : *outputs)
      if (at >= 0 && std::cmp_less(at, count)) has_output[static_cast<std::size_t>(at)] = true;
  }
  // A recurrent model reads no positions: then the context is taken for one sequence.
  const std::size_t first_position = step.phase == Phase::Embed ? 0 : next_token_;
  const auto position = [&](std::size_t i) {
    return positions != nullptr && i < positions->size()
               ? static_cast<std::int32_t>((*positions)[i])
               : static_cast<std::int32_t>(first_position + i);
  };
  step.first_token = next_token_;
  step.n_tokens = static_cast<std::uint32_t>(count);
  std::vector<Token> tokens;
  bool any_prompt = false;
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin + 1;
    bool all_output = has_output[begin];
    while (end < count && position(end) == position(end - 1) + 1) {
      all_output = all_output && has_output[end];
      ++end;
    }
    const bool generated = all_output && position(begin) > 0 && step.phase != Phase::Embed &&
                           end - begin <= kMaxChecked;
    any_prompt = any_prompt || !generated;
    for (std::size_t i = begin; i < end; ++i) {
      const auto id = static_cast<std::int32_t>((*ids)[i]);
      tokens.push_back({.index = next_token_++,
                        .id = id,
                        .position = position(i),
                        .generated = generated,
                        .reused = false,
                        .text = vocabulary_ ? vocabulary_->piece(id) : ""});
      generated_ += generated ? 1 : 0;
      uncommitted_.generated += generated ? 1 : 0;
    }
    begin = end;
  }
  if (step.phase == Phase::Other) step.phase = any_prompt ? Phase::Prompt : Phase::Generate;
  if (writing()) keep(writer_->add_tokens(tokens));
}

void AttachedContext::take_conditions(const StepRecord& record, Step& step) {
  const auto ns = [&](std::int64_t from, std::int64_t to) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, to - from));
  };
  step.conditions.evaluate_ns = ns(record.first_op, record.end);
  if (last_record_) {
    step.conditions.interval_ns = ns(last_record_->end, record.end);
    step.conditions.voluntary_switches = record.voluntary - last_record_->voluntary;
    step.conditions.involuntary_switches = record.involuntary - last_record_->involuntary;
    step.conditions.minor_faults = record.minor - last_record_->minor;
    step.conditions.major_faults = record.major - last_record_->major;
  }
  last_record_ = record;
}

void AttachedContext::add(const RunStep& run, std::vector<PageFault>& faults) {
  const auto found = graphs_.find(run.head.graph);
  if (found == graphs_.end()) {
    ++losses_.steps_not_written;
    return;
  }
  const Known& known = found->second;
  const GraphTemplate& graph = *known.graph;
  if (next_step_ == 0 && run.head.begin < epoch_ns_) {
    // The first step ended before the session was created.
    info_.start_utc_ns -= epoch_ns_ - run.head.begin;
    epoch_ns_ = run.head.begin;
  }
  const auto since = [&](std::int64_t at) { return Ns{at - epoch_ns_}; };
  Step step;
  step.id = StepId{next_step_};
  step.graph = known.id;
  step.allocation = known.allocation;
  step.begin = since(run.head.begin);
  step.first_op = since(run.head.first_op);
  step.end = since(run.head.end);
  step.threads = run.head.threads;
  step.aborted = run.head.aborted != 0;
  step.dropped = run.head.dropped != 0;
  step.timing = run.head.timing == StepTiming::Fast      ? Timing::Fast
                : run.head.timing == StepTiming::Learned ? Timing::Learned
                : run.head.timing == StepTiming::Exact   ? Timing::Exact
                                                         : Timing::None;
  for (const std::int64_t time : run.times) step.op_ends.push_back(since(time));
  if (step.op_ends.size() > graph.ops.size()) step.op_ends.resize(graph.ops.size());
  step.slots.resize(graph.slots.size());
  for (const CopiedList& list : run.lists) {
    const auto slot = known.slots.find(list.tensor);
    if (slot != known.slots.end()) step.slots[slot->second] = list.values;
  }
  const bool has_cache = std::ranges::any_of(
      graph.tensors, [](const Tensor& tensor) { return tensor.kind == TensorKind::Kv; });
  step.phase = has_cache ? Phase::Other : Phase::Embed;
  step.first_token = next_token_;
  add_tokens(graph, step);
  if (step.n_tokens == 0) step.phase = Phase::Other;
  if (step.dropped) {  // the graph only names the lists
    step.slots.clear();
    step.graph = {};
    step.allocation = {};
  }
  take_conditions(run.head, step);
  losses_.count_mismatches += run.head.mismatch != 0 ? 1 : 0;
  losses_.slot_values_dropped += run.head.slots_lost;
  losses_.steps_without_times += step.dropped ? 1 : 0;
  if (writing()) keep(writer_->add_step(step));
  StepFaults of_step{.step = step.id, .count = 0, .faults = {}};
  std::erase_if(faults, [&](const PageFault& fault) {
    if (fault.at.v > run.head.end) return false;
    if (fault.at.v >= run.head.begin)
      of_step.faults.push_back({.at = since(fault.at.v), .address = fault.address});
    return fault.at.v >= run.head.begin;
  });
  of_step.count = of_step.faults.size();
  if (of_step.count > 0 && writing()) keep(writer_->add_faults(of_step, step.begin));
  ++next_step_;
  ++uncommitted_.steps;
  uncommitted_.tokens += step.n_tokens;
}

// An error takes back the steps since the last commit.
void AttachedContext::commit() {
  if (writing()) keep(writer_->commit());
  const Written steps = std::exchange(uncommitted_, {});
  if (writing()) {
    written_.steps += steps.steps;
    written_.tokens += steps.tokens;
    written_.generated += steps.generated;
  } else {
    losses_.steps_not_written += steps.steps;
  }
}

void AttachedContext::finish(SessionState state, const std::string& error, std::uint64_t steps_lost,
                             std::uint64_t faults_lost) {
  if (writer_ == nullptr) return;
  commit();
  losses_.steps_not_written += steps_lost;
  losses_.page_faults_lost += faults_lost;
  info_.state = error_.empty() ? state : SessionState::Failed;
  info_.error = error_.empty() ? error : error_;
  const auto add = [&](const char* name, auto value) {
    info_.facts.emplace_back(name, std::format("{}", value));
  };
  add("result.prompt_tokens", next_token_ - generated_);
  add("result.generated_tokens", generated_);
  if (buffers_.compute > 0) {
    add("result.kv_bytes", buffers_.kv);
    add("result.compute_bytes", buffers_.compute);
  }
  add("trace.weights", coverage_.weights);
  add("trace.offsets_by_name", coverage_.by_name);
  add("trace.offsets_by_address", coverage_.by_address);
  add("trace.offsets_agree", coverage_.agree);
  keep(writer_->finish(info_, losses_));
  writer_.reset();
}

}  // namespace tt::attach
