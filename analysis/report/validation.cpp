#include "analysis/report/validation.h"

#include <algorithm>
#include <array>
#include <format>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/common/rebuilt.h"
#include "analysis/fields/fields.h"
#include "analysis/report/layer_work.h"
#include "tracer/format/model/name_of.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

// Of an attached program: the context of a projector (its last layers may be left out), and that of
// the layers of a model which draft tokens, evaluate a part of their model.
bool evaluates_all_layers(const SessionInfo& info) {
  return info.fact("attach.role") != "projector" && info.fact("attach.draft").empty();
}

constexpr std::array<const char*, kChecks> kCheckWords{"file",
                                                       "losses",
                                                       "steps",
                                                       "ops",
                                                       "op_times",
                                                       "tokens",
                                                       "token_ids",
                                                       "positions",
                                                       "cache_cells",
                                                       "layers",
                                                       "hyper_parameters",
                                                       "file_ranges",
                                                       "offsets_by_name_and_address",
                                                       "experts"};

// Builds the result of one check: counts items and failures, keeps the first failures.
class CheckBuilder {
 public:
  explicit CheckBuilder(Check check) { result_.check = check; }
  void add_items(std::uint64_t count = 1) { result_.items_checked += count; }
  void wrong(std::string what) {
    ++result_.wrong;
    if (result_.evidence.size() < kEvidence) result_.evidence.push_back(std::move(what));
  }
  void add_failures(std::uint64_t count) { result_.wrong += count; }
  void missing(std::string what) {
    wrong(std::move(what));
    ++missing_;
  }
  std::uint64_t items_checked() const { return result_.items_checked; }
  CheckResult done(std::string summary) && {
    result_.status = result_.wrong > missing_    ? CheckStatus::Failed
                     : missing_ > 0              ? CheckStatus::Incomplete
                     : result_.items_checked > 0 ? CheckStatus::Passed
                                                 : CheckStatus::NotApplicable;
    result_.summary = std::move(summary);
    return std::move(result_);
  }

 private:
  CheckResult result_;
  std::uint64_t missing_ = 0;  // of the failures: data that is counted as lost
};

CheckResult check_file(const std::vector<std::string>& problems) {
  CheckBuilder check(Check::File);
  check.add_items();
  for (const std::string& problem : problems) check.wrong(problem);
  return std::move(check).done("the file, its row checksums and its blobs");
}

std::vector<std::string> missing_data(const LossCounters& losses) {
  std::vector<std::string> missing;
  const auto add = [&](std::uint64_t count, const char* noun, const char* of = "") {
    if (count > 0) missing.push_back(of + counted(count, noun));
  };
  add(losses.steps_without_times, "step", "times of ");
  add(losses.slot_values_dropped, "slot value");
  add(losses.steps_not_written, "step");
  add(losses.page_faults_lost, "page fault");
  return missing;
}

CheckResult check_losses(const LossCounters& losses) {
  CheckBuilder check(Check::Losses);
  check.add_items();
  for (const std::string& what : missing_data(losses)) check.missing(what + " missing");
  // Not a loss: the recorder took the ops of these steps for those of another graph.
  if (losses.count_mismatches > 0)
    check.wrong(counted(losses.count_mismatches, "step") +
                " with a different number of ops than their template");
  return std::move(check).done("losses reported by the recorder");
}

// The counts in the metadata (trace.*) are those of the graph with the most weights.
CheckResult check_offsets_agree(const SessionInfo& info) {
  CheckBuilder check(Check::OffsetsByNameAndAddress);
  const auto weights = info.fact_number("trace.weights");
  const auto named = info.fact_number("trace.offsets_by_name");
  const auto addressed = info.fact_number("trace.offsets_by_address");
  const auto agree = info.fact_number("trace.offsets_agree");
  if (!weights || !named || !addressed || !agree)
    return std::move(check).done("the session has no record of how weights were located");
  // A lower bound of the number of weights found in both ways.
  const std::uint64_t both = *named + *addressed > *weights ? *named + *addressed - *weights : 0;
  check.add_items(both);
  if (*agree < both)
    check.wrong(std::format("{} weights were located in both ways, {} of them at the same offset",
                            both, *agree));
  return std::move(check).done(
      std::format("{} weights: {} located by name, {} by address, {} by both at the same offset",
                  *weights, *named, *addressed, *agree));
}

// A graph without layer weights (a cache shift, a projection) is not one of the whole model.
bool has_layer_weights(const GraphTemplate& graph) {
  return std::ranges::any_of(graph.tensors, [](const Tensor& t) {
    return t.kind == TensorKind::Weight && t.layer != kNoLayer;
  });
}

// Checks each graph once, regardless of the number of its steps.
struct GraphChecks {
  void check(const SessionInfo& info, const Step& step, const GraphTemplate& graph) {
    if (seen_.insert(step.graph).second) check_ranges(info, step.graph, graph);
    // The template of a step that was cancelled in a new graph has only the ops that ran
    // (docs/trace-format.md). One that was cancelled in a known graph ran fewer ops than it has.
    const bool partial = step.aborted && (step.dropped || step.op_ends.size() >= graph.ops.size());
    if (!partial && complete_.insert(step.graph).second) check_layers(info, step.graph, graph);
  }

  CheckResult layers_result() {
    std::string summary = counted(layers_.items_checked(), "layer") + " of graphs";
    const std::size_t partial = seen_.size() - complete_.size();
    if (partial == 1) summary += "; the template of a cancelled step is partial";
    if (partial > 1)
      summary += std::format("; {} templates of cancelled steps are partial", partial);
    return std::move(layers_).done(std::move(summary));
  }

  CheckBuilder ranges{Check::FileRanges};

 private:
  void check_ranges(const SessionInfo& info, TemplateId id, const GraphTemplate& graph) {
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.kind != TensorKind::Weight || tensor.file.empty()) continue;
      ranges.add_items();
      const FileRange& at = tensor.file;
      if (at.file >= info.model_files.size()) {
        ranges.wrong(std::format("template {}: {} is in file {}, but the model has {} files", id.v,
                                 tensor.name, at.file, info.model_files.size()));
      } else if (const std::uint64_t size = info.model_files[at.file].size;
                 at.length > size || at.offset > size - at.length) {
        ranges.wrong(
            std::format("template {}: {} is at offset {}, length {}, but the file size is {}", id.v,
                        tensor.name, at.offset, at.length, size));
      }
    }
  }

  void check_layers(const SessionInfo& info, TemplateId id, const GraphTemplate& graph) {
    std::set<std::int64_t> there;
    for (const Op& op : graph.ops)
      if (op.layer.v >= 0) there.insert(op.layer.v);
    if (!has_layer_weights(graph)) return;
    // A layer may route only some tokens (the last one of a prompt: those with an output).
    if (info.fact("trace.imported_from") == "routing log" || !evaluates_all_layers(info)) return;
    // An encoder may have more layers than the decoder, which n_layers counts: then the
    // layers must at least be consecutive.
    const std::int64_t wanted =
        std::max<std::int64_t>(info.n_layers, there.empty() ? 0 : *there.rbegin() + 1);
    layers_.add_items(static_cast<std::uint64_t>(wanted));
    // An untrusted file may claim billions of layers: missing layers are counted without a
    // loop over all of them.
    const std::int64_t missing = wanted - static_cast<std::int64_t>(there.size());
    std::int64_t named = 0;
    for (std::int64_t layer = 0; named < std::min<std::int64_t>(missing, kEvidence); ++layer) {
      if (there.contains(layer)) continue;
      layers_.wrong(std::format("template {}: no op of layer {}", id.v, layer));
      ++named;
    }
    layers_.add_failures(static_cast<std::uint64_t>(missing - named));
  }

  CheckBuilder layers_{Check::Layers};
  std::set<TemplateId> seen_, complete_;  // seen_, and not complete_: partial
};

// Number of layers by the model file. It may also count layers that only predict further tokens,
// and has two numbers for an encoder and a decoder.
bool has_layers(const SessionInfo& info) {
  const std::string prefix = std::format("model.{}.", info.fact("model.architecture"));
  const auto number = [&](const char* key) { return info.fact_number(prefix + key); };
  const auto blocks = number("block_count");
  return !blocks || info.n_layers == *blocks || info.n_layers == number("decoder_block_count") ||
         info.n_layers + number("nextn_predict_layers").value_or(0) == *blocks;
}

// Compares the work of each layer of each step with the hyper-parameters.
class WorkCheck {
 public:
  explicit WorkCheck(const SessionInfo& info)
      : info_(info),
        // Rebuilt graphs have only some ops, tokens or sources of a layer.
        applies_(info.n_layers > 0 && info.fact(kRebuiltStepsFact).empty() &&
                 info.fact("trace.imported_from") != "routing log" && evaluates_all_layers(info)),
        expected_(expected_layer_work(info)) {
    if (!applies_ || has_layers(info)) return;
    check_.add_items();
    check_.wrong(std::format(
        "the session has {} layers, the model file {}", info.n_layers,
        info.fact(std::format("model.{}.block_count", info.fact("model.architecture")))));
  }

  void check(const Step& step, const GraphTemplate& graph) {
    // More layers than ops: the check of layers reports it.
    if (!applies_ || step.aborted || step.dropped || info_.n_layers > graph.ops.size()) return;
    const auto [known, fresh] = graphs_.try_emplace(step.graph);
    OfGraph& of = known->second;
    if (fresh) of = learn(step, graph);
    if (!of.whole) return;
    check_.add_items(info_.n_layers);
    if (of.wrong > 0 && !fresh) check_.add_failures(of.wrong);  // with the same evidence
    const std::size_t ran = step.ops_run(graph.ops.size());
    for (std::uint32_t layer = 0; ran < graph.ops.size() && layer < info_.n_layers; ++layer) {
      if (of.ends[layer] <= ran) continue;
      check_.wrong(std::format("step {}: layer {} did not run to its end", step.id.v, layer));
    }
    // The embeddings of an image have no tokens.
    const bool of_image = step.n_tokens == 0 && step.phase == Phase::Other;
    if (of.tokens > 0 && of.tokens != step.n_tokens && !of_image) {
      check_.wrong(std::format("step {} evaluates {} tokens, its graph {}", step.id.v,
                               step.n_tokens, of.tokens));
    }
  }

  CheckResult done() && {
    const std::string items = counted(check_.items_checked(), "layer") + " of steps";
    return std::move(check_).done(
        expected_ ? items + ", each with the work that the hyper-parameters let expect: " +
                        to_text(*expected_)
                  : items + ", each with an op that reads a weight");
  }

 private:
  struct OfGraph {
    bool whole = false;  // a graph of the whole model
    std::uint64_t wrong = 0;
    std::uint64_t tokens = 0;         // 0: not known
    std::vector<std::size_t> ends{};  // of each layer: the op after its last one
  };

  OfGraph learn(const Step& step, const GraphTemplate& graph) {
    OfGraph of{.whole = has_layer_weights(graph)};
    if (!of.whole) return of;
    of.ends.assign(info_.n_layers, 0);
    std::vector<bool> reads(info_.n_layers, false);
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      const Op& op = graph.ops[i];
      if (op.layer.v < 0 || std::cmp_greater_equal(op.layer.v, info_.n_layers)) continue;
      const auto layer = static_cast<std::size_t>(op.layer.v);
      of.ends[layer] = i + 1;
      for (std::uint32_t n = op.first.v; n <= op.last().v; ++n)
        for (const TensorId source : graph.nodes[n].src)
          reads[layer] = reads[layer] ||
                         (source != kNoTensor && graph.tensor(source).kind == TensorKind::Weight);
    }
    const auto wrong = [&](std::size_t layer, const std::string& what) {
      ++of.wrong;
      check_.wrong(std::format("template {}, layer {}: {}", step.graph.v, layer, what));
    };
    if (!expected_) {
      for (std::size_t layer = 0; layer < reads.size(); ++layer)
        if (!reads[layer]) wrong(layer, "no op reads a weight");
      return of;
    }
    const std::vector<GraphWork> layers = layer_work_of(graph, info_.n_layers);
    of.tokens = layers.front().most_tokens;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const GraphWork& found = layers[layer];
      // The last layer computes only the tokens with an output.
      const bool all = layer + 1 == layers.size() || found.fewest_tokens == found.most_tokens;
      if (found.work != *expected_) {
        wrong(layer, to_text(found.work) + " instead of " + to_text(*expected_));
      } else if (found.most_tokens != of.tokens || !all) {
        wrong(layer, std::format("{} to {} tokens instead of {}", found.fewest_tokens,
                                 found.most_tokens, of.tokens));
      }
    }
    return of;
  }

  const SessionInfo& info_;
  const bool applies_;
  const std::optional<LayerWork> expected_;
  CheckBuilder check_{Check::HyperParameters};
  std::map<TemplateId, OfGraph> graphs_;
};

// The tokens of steps. They are read many at a time: a query per step takes longer than the checks.
class TokenRows {
 public:
  explicit TokenRows(const SessionReader& reader) : reader_(reader) {}

  // As reader.tokens(). Valid until the next call.
  std::expected<std::span<const Token>, TraceError> of(std::uint32_t first, std::uint32_t count) {
    constexpr std::uint32_t kAtOnce = 1024;
    if (first < first_ || first - first_ > rows_.size() ||
        rows_.size() - (first - first_) < count) {
      auto rows = reader_.tokens(first, std::max(count, kAtOnce));
      if (!rows) rows = reader_.tokens(first, count);  // tokens of later steps may be damaged
      if (!rows) return std::unexpected(rows.error());
      first_ = first;
      rows_ = *std::move(rows);
    }
    const auto from = std::span<const Token>(rows_).subspan(first - first_);
    return from.first(std::min<std::size_t>(count, from.size()));
  }

 private:
  const SessionReader& reader_;
  std::uint32_t first_ = 0;
  std::vector<Token> rows_;
};

class StepChecks {
 public:
  // An imported session may begin in the middle, and may not have the token counts of steps.
  StepChecks(const SessionReader& reader, const SessionInfo& info, const LossCounters& losses)
      : reader_(reader),
        info_(info),
        tokens_(reader),
        allow_gaps_(losses.steps_not_written > 0 ||
                    !info.fact("trace.steps_without_token_count").empty()),
        allow_next_gap_(!info.fact("trace.imported_from").empty()) {}

  CheckBuilder steps{Check::Steps};
  CheckBuilder ops{Check::Ops};
  CheckBuilder times{Check::OpTimes};
  CheckBuilder tokens{Check::Tokens};
  CheckBuilder ids{Check::TokenIds};
  CheckBuilder positions{Check::Positions};
  CheckBuilder cells{Check::CacheCells};
  CheckBuilder experts{Check::Experts};

  void check(const Step& step, const GraphTemplate* graph) {
    check_order(step);
    check_tokens(step);
    if (graph != nullptr) {
      check_ops(step, *graph);
      check_slots(step, *graph);
    }
    end_ = step.end;
  }
  void skip_step() { allow_next_gap_ = true; }  // skips a step that cannot be read

 private:
  void check_order(const Step& step) {
    steps.add_items();
    if (step.end < step.begin) steps.wrong(std::format("step {} ends before it begins", step.id.v));
    if (step.begin < end_)
      steps.wrong(std::format("step {} begins before the previous step ended", step.id.v));
  }

  void check_tokens(const Step& step) {
    if (step.n_tokens == 0) return;
    tokens.add_items(step.n_tokens);
    if (step.first_token < next_token_) {
      tokens.wrong(std::format("step {} evaluates token {} again", step.id.v, step.first_token));
    } else if (!allow_gaps_ && !allow_next_gap_) {
      check_gap(step);
    }
    allow_next_gap_ = false;
    next_token_ = std::max(next_token_, std::uint64_t{step.first_token} + step.n_tokens);
  }

  // A step must begin at the token after the previous step, a decoder after the tokens of its
  // encoder. Only tokens that an earlier request left in the cache may be skipped.
  void check_gap(const Step& step) {
    constexpr std::uint64_t kAtOnce = 1024;
    std::uint64_t missing = 0, first = step.first_token;
    for (std::uint64_t at = next_token_; at < step.first_token;) {
      const std::uint64_t count = std::min(kAtOnce, step.first_token - at);
      const auto rows =
          reader_.tokens(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(count));
      if (!rows) break;  // reported by the file check
      for (const Token& token : *rows) {
        if (token.reused) continue;
        first = std::min(first, std::uint64_t{token.index});
        ++missing;
      }
      at += rows->size();
      if (rows->size() == count) continue;
      first = std::min(first, at);
      missing += step.first_token - at;  // the tokens do not exist
      break;
    }
    if (missing == 0) return;
    tokens.wrong(
        std::format("step {} begins at token {}: {} before it, from token {} on, were neither "
                    "evaluated nor reused",
                    step.id.v, step.first_token, missing, first));
    tokens.add_failures(missing - 1);
  }

  void check_ops(const Step& step, const GraphTemplate& graph) {
    if (step.dropped || info_.level < Level::Detailed) return;
    // An imported log without times does not say which ops ran.
    if (step.timing == Timing::None && step.op_ends.empty()) return;
    ops.add_items();
    if (step.op_ends.size() > graph.ops.size() ||
        (step.op_ends.size() < graph.ops.size() && !step.aborted)) {
      ops.wrong(std::format("step {} executed {} ops, but its template {} has {}", step.id.v,
                            step.op_ends.size(), step.graph.v, graph.ops.size()));
    }
    Ns last = step.first_op;
    times.add_items(step.op_ends.size());
    for (std::size_t i = 0; i < step.op_ends.size(); last = step.op_ends[i++])
      if (step.op_ends[i] < last)
        times.wrong(std::format("step {}: op {} ends before the previous op", step.id.v, i));
    if (!step.op_ends.empty() && (step.first_op < step.begin || last > step.end))
      times.wrong(std::format("step {}: its ops ran outside of the step", step.id.v));
  }

  void check_slots(const Step& step, const GraphTemplate& graph) {
    std::vector<std::span<const std::int64_t>> listed;
    for (std::size_t i = 0; i < graph.slots.size() && i < step.slots.size(); ++i) {
      const std::vector<std::int64_t>& values = step.slots[i].ints;
      switch (graph.slots[i].kind) {
        case SlotKind::TokenIds:
          check_ids(step, values);
          break;
        case SlotKind::Positions:
          if (values.size() == step.n_tokens) listed.emplace_back(values);
          break;
        case SlotKind::CachePositions:
          check_cells(step, graph, graph.slots[i], values);
          break;
        case SlotKind::Experts:
          check_experts(step, graph, graph.slots[i], values);
          break;
        default:
          break;
      }
    }
    check_positions(step, listed);
  }

  // Not checked if the graph reads the ids of only some of its tokens, or none (if the input
  // is embeddings).
  void check_ids(const Step& step, const std::vector<std::int64_t>& values) {
    if (values.size() != step.n_tokens) return;
    const auto rows = tokens_.of(step.first_token, step.n_tokens);
    if (!rows) return;  // reported by the file check
    ids.add_items(rows->size());
    for (std::size_t i = 0; i < rows->size(); ++i) {
      if (values[i] == (*rows)[i].id) continue;
      ids.wrong(std::format("step {}: the graph read id {} for token {}, whose id is {}", step.id.v,
                            values[i], (*rows)[i].index, (*rows)[i].id));
    }
  }

  // `listed`: the lists with a position for each token. Some models read several positions for each
  // token, and some also lists of other positions, such as those of a compressed cache. So one of
  // the lists must be that of the tokens.
  void check_positions(const Step& step, const std::vector<std::span<const std::int64_t>>& listed) {
    if (listed.empty()) return;
    const auto rows = tokens_.of(step.first_token, step.n_tokens);
    if (!rows) return;  // reported by the file check
    positions.add_items(rows->size());
    const auto of_tokens = [&](std::span<const std::int64_t> values) {
      return std::ranges::equal(values, *rows, {}, {}, &Token::position);
    };
    if (std::ranges::any_of(listed, of_tokens)) return;
    for (std::size_t i = 0; i < rows->size() && i < listed[0].size(); ++i) {
      if (listed[0][i] == (*rows)[i].position) continue;
      positions.wrong(
          std::format("step {}: the graph read position {} for token {}, which is at {}", step.id.v,
                      listed[0][i], (*rows)[i].index, (*rows)[i].position));
    }
  }

  // A cache of values without flash attention has a cell for each element, in other lists.
  void check_cells(const Step& step, const GraphTemplate& graph, const Slot& slot,
                   std::vector<std::int64_t> values) {
    if (values.size() != step.n_tokens) return;
    cells.add_items(values.size());
    std::ranges::sort(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0) {
        cells.wrong(std::format("step {}: {} lists cell {}", step.id.v,
                                graph.tensor(slot.tensor).name, values[i]));
      } else if (i > 0 && values[i] == values[i - 1]) {
        cells.wrong(std::format("step {}: {} lists cell {} for two tokens", step.id.v,
                                graph.tensor(slot.tensor).name, values[i]));
      }
    }
  }

  void check_experts(const Step& step, const GraphTemplate& graph, const Slot& slot,
                     const std::vector<std::int64_t>& values) {
    const auto per_token =
        static_cast<std::size_t>(std::max<std::int64_t>(graph.tensor(slot.tensor).ne[0], 1));
    for (std::size_t at = 0; at < values.size(); at += per_token) {
      const std::size_t end = std::min(at + per_token, values.size());
      experts.add_items(end - at);
      few_.clear();
      many_.clear();
      for (std::size_t i = at; i < end; ++i) {
        if (values[i] < 0 || (info_.n_experts > 0 && values[i] >= info_.n_experts)) {
          experts.wrong(std::format("step {}: {} routes to expert {} of {}", step.id.v,
                                    graph.tensor(slot.tensor).name, values[i], info_.n_experts));
        } else if (is_repeated(values[i])) {
          experts.wrong(std::format("step {}: {} routes a token to expert {} twice", step.id.v,
                                    graph.tensor(slot.tensor).name, values[i]));
        }
      }
    }
  }

  // Whether the expert was chosen before for the same token. Only a damaged file has many.
  bool is_repeated(std::int64_t expert) {
    constexpr std::size_t kFew = 64;
    if (std::ranges::contains(few_, expert)) return true;
    if (few_.size() == kFew) return !many_.insert(expert).second;
    few_.push_back(expert);
    return false;
  }

  const SessionReader& reader_;
  const SessionInfo& info_;
  TokenRows tokens_;
  std::vector<std::int64_t> few_;  // experts of the token
  std::set<std::int64_t> many_;    // the rest of them
  Ns end_{};
  std::uint64_t next_token_ = 0;
  // Whether gaps in the evaluated tokens are allowed, because a step is missing.
  bool allow_gaps_ = false, allow_next_gap_ = false;
};

}  // namespace

const char* to_text(Check check) { return kCheckWords[static_cast<std::size_t>(check)]; }

const char* to_text(CheckStatus status) {
  static constexpr std::array kWords = {"passed", "incomplete", "failed", "not_applicable"};
  return name_of(kWords, status);
}

bool Validation::passed() const {
  return std::ranges::none_of(checks,
                              [](const CheckResult& c) { return c.status == CheckStatus::Failed; });
}

std::string Validation::verdict() const {
  if (!passed()) return "NOT valid";
  return missing.empty() ? "valid" : std::format("valid, {} missing", missing);
}

std::expected<Validation, TraceError> validate(const std::filesystem::path& file,
                                               const ContinueCheck& keep_going) {
  const auto reader = SessionReader::open(file);
  const auto info = reader ? reader->info() : std::unexpected(reader.error());
  Validation validation;
  if (!info) {
    const auto problems = check_session(file, keep_going);
    if (!problems) return std::unexpected(problems.error());
    validation.checks.push_back(check_file(*problems));
    return validation;
  }
  const LossCounters losses = reader->losses().value_or(LossCounters{});
  validation.missing = join(missing_data(losses));
  GraphChecks graphs;
  StepChecks steps(*reader, *info, losses);
  WorkCheck work(*info);
  // Skips what cannot be read; the file check reports it.
  const auto problems = check_session(file, keep_going, [&](StepId, const Step* step) {
    if (step == nullptr) return steps.skip_step();
    const auto graph = step->graph.v != 0 ? reader->graph(step->graph).value_or(nullptr)
                                          : std::shared_ptr<const GraphTemplate>();
    if (graph) graphs.check(*info, *step, *graph);
    steps.check(*step, graph.get());
    if (graph) work.check(*step, *graph);
  });
  if (!problems) return std::unexpected(problems.error());
  validation.checks.push_back(check_file(*problems));
  const auto add = [&](CheckBuilder& check, const char* noun, const char* rest = "") {
    const std::string summary = counted(check.items_checked(), noun) + rest;
    validation.checks.push_back(std::move(check).done(summary));
  };
  validation.checks.push_back(check_losses(losses));
  add(steps.steps, "step", ", in order");
  add(steps.ops, "step", ", each with the ops of its template");
  add(steps.times, "op end time", ", in order and within their step");
  add(steps.tokens, "token", " evaluated, in order and once");
  add(steps.ids, "token id", " read by graphs, compared with the tokens");
  add(steps.positions, "position", " read by graphs, compared with the tokens");
  add(steps.cells, "cell", " of caches, one for each token of a step");
  validation.checks.push_back(graphs.layers_result());
  validation.checks.push_back(std::move(work).done());
  add(graphs.ranges, "weight", " of graphs, inside their model file");
  validation.checks.push_back(check_offsets_agree(*info));
  add(steps.experts, "router choice");
  return validation;
}

static consteval columns::Enumeration words_of(Check) {
  return columns::words_to("", Check::Experts);
}

static consteval columns::Enumeration words_of(CheckStatus) {
  return columns::words_to("", CheckStatus::NotApplicable);
}

static Fields<CheckResult> fields_of(const CheckResult*) {
  return Fields<CheckResult>()
      .add("check",
           "hyper_parameters: each layer of each step did the work that the metadata of the "
           "model lets expect. offsets_by_name_and_address: weights that were located by name "
           "and by address have the same file offset in both ways. The other checks: see "
           "`summary`",
           &CheckResult::check)
      .add("verdict",
           "incomplete: data is missing, which the recorder counted; what is recorded is "
           "valid. not_applicable: the session has no data for this check",
           &CheckResult::status)
      .add("items_checked", "number of items checked", &CheckResult::items_checked)
      .add("wrong", "number of items that failed the check", &CheckResult::wrong)
      .add("summary", "what the items are, for example: steps, in order", &CheckResult::summary)
      .add("evidence", "the first errors found, at most 10", &CheckResult::evidence);
}

Fields<Validation> fields_of(const Validation*) {
  return Fields<Validation>("Validation")
      .add("passed", "no check failed", &Validation::passed)
      .add("verdict",
           "valid; NOT valid; or what the recorder counted as lost, for example: valid, times "
           "of 77 steps missing",
           &Validation::verdict)
      .add("checks", "", &Validation::checks);
}

}  // namespace tt
