#include "analysis/findings/finding.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "tracer/format/model/name_of.h"

namespace tt {

namespace {

constexpr std::array kTopicEvidence = {
    Evidence{.topic = FindingTopic::Recording,
             .view = EvidenceView::Table,
             .shows = "all steps",
             .rows = "steps",
             .value = "",
             .rest = "steps",
             .sql = "SELECT step, phase, duration_ns FROM step"},
    Evidence{.topic = FindingTopic::Machine,
             .view = EvidenceView::Map,
             .shows = "step × layer, time",
             .rows = "layer",
             .across = "step",
             .value = "time",
             .rest = "conditions",
             .sql = "SELECT verdict, count(*) FROM step GROUP BY verdict"},
    Evidence{.topic = FindingTopic::BytesRead,
             .view = EvidenceView::Table,
             .shows = "totals by memory source",
             .rows = "source",
             .value = "bytes_read",
             .generated = true,
             .rest = "breakdown?by=source&sort=-bytes_read",
             .sql = "SELECT memory_source, sum(size_bytes) FROM access WHERE NOT write AND step "
                    "IN (SELECT step FROM step WHERE phase = 'generate') GROUP BY memory_source"},
    Evidence{.topic = FindingTopic::Speed,
             .view = EvidenceView::Table,
             .shows = "totals by op type",
             .rows = "op_kind",
             .value = "time",
             .generated = true,
             .undisturbed = true,
             .rest = "breakdown?by=op_kind&sort=-time",
             .sql = "SELECT operation_type, sum(duration_ns) FROM op GROUP BY operation_type ORDER "
                    "BY 2 DESC"},
    Evidence{.topic = FindingTopic::Order,
             .view = EvidenceView::Map,
             .shows = "file × time, bytes",
             .rows = "file",
             .across = "time",
             .value = "bytes",
             .rest = "sequentiality?limit=0",
             .sql = "SELECT step, op, file_offset, file_bytes FROM access WHERE memory_source = "
                    "'disk' AND NOT write LIMIT 1000"},
    Evidence{.topic = FindingTopic::Repeat,
             .view = EvidenceView::Map,
             .shows = "token × tensor, bytes",
             .rows = "tensor",
             .value = "bytes",
             .filter = "kind:weight",
             .rest = "determinism",
             .sql = "SELECT tensor_name, count(DISTINCT step) FROM access WHERE tensor_kind = "
                    "'weight' GROUP BY tensor_name"},
    Evidence{.topic = FindingTopic::Waits,
             .view = EvidenceView::Table,
             .shows = "totals by tensor",
             .rows = "tensor",
             .value = "faults",
             .rest = "breakdown?by=tensor&sort=-faults",
             .sql = "SELECT step, major_faults FROM step WHERE major_faults > 0"},
    Evidence{.topic = FindingTopic::Memory,
             .view = EvidenceView::MemoryBudget,
             .shows = "how much memory is enough",
             .rest = "reuse",
             .sql = "SELECT tensor_name, max(tensor_bytes) FROM tensor WHERE view_of IS NULL GROUP "
                    "BY tensor_name"},
    Evidence{.topic = FindingTopic::Values,
             .view = EvidenceView::Table,
             .shows = "ops of the step",
             .rows = "ops",
             .rest = "steps/{step}/ops",
             .sql = "SELECT step, op, operation_type, tensor_name, output_nan, output_inf FROM op "
                    "WHERE output_nan > 0 ORDER BY step, op LIMIT 100"},
    Evidence{.topic = FindingTopic::Drafts,
             .view = EvidenceView::Table,
             .shows = "all steps",
             .rows = "steps",
             .rest = "drafts",
             .sql = "SELECT step, token_count, position FROM step JOIN token USING (token_id) "
                    "WHERE phase = 'generate' ORDER BY step"},
    Evidence{.topic = FindingTopic::Phases,
             .view = EvidenceView::ComparePhases,
             .shows = "the prompt beside generation",
             .rows = "component",
             .value = "bytes",
             .rest = "breakdown?by=phase",
             .sql = "SELECT phase, count(*), sum(token_count), sum(duration_ns) FROM step GROUP BY "
                    "phase"},
};
constexpr Evidence kExpertEvidence = {
    .topic = FindingTopic::Repeat,
    .view = EvidenceView::Map,
    .shows = "token × expert, all layers added up",
    .rows = "expert",
    .value = "accesses",
    .rest = "experts?phase=generate",
    .sql =
        "SELECT expert_id, count(*) FROM access WHERE expert_id IS "
        "NOT NULL GROUP BY expert_id"};

}  // namespace

const char* to_text(FindingTopic topic) {
  static constexpr std::array kWords = {"recording", "machine", "bytes", "speed",
                                        "order",     "repeat",  "waits", "memory",
                                        "values",    "drafts",  "phases"};
  return name_of(kWords, topic);
}

const char* to_text(FindingKind kind) {
  static constexpr std::array kWords = {
      "damaged_file",       "reused_prefix",   "repeated_prompt", "load_warning",
      "altered_values",     "machine_verdict", "left_out_steps",  "token_bytes",
      "mapped_share",       "speed_limit",     "prompt_speed",    "first_token",
      "generation_speed",   "evaluation_time", "read_in_order",   "same_weights",
      "pattern_prediction", "disk_waits",      "enough_memory",   "weights_fit",
      "memory_budget",      "not_a_number",    "drafts",          "prompt_and_generation"};
  return name_of(kWords, kind);
}

const char* to_text(FindingRole role) {
  static constexpr std::array kWords = {"main", "detail", "warning"};
  return name_of(kWords, role);
}

const char* to_text(FigureUnit unit) {
  static constexpr std::array kWords = {"count",   "bytes",    "ns",  "share",
                                        "bytes/s", "tokens/s", "word"};
  return name_of(kWords, unit);
}

const char* to_text(AdviceKind kind) {
  static constexpr std::array kWords = {"do_not_trust",
                                        "threads_above_processors",
                                        "stop_other_programs",
                                        "raise_cpu_limit",
                                        "simpler_sampling",
                                        "pin_weights",
                                        "less_weights_or_more_memory",
                                        "keep_weights",
                                        "fewer_bytes",
                                        "flash_attention",
                                        "fewer_threads",
                                        "more_threads",
                                        "repack",
                                        "use_device",
                                        "more_layers_on_device",
                                        "change_nothing"};
  return name_of(kWords, kind);
}

const char* to_text(EvidenceView view) {
  static constexpr std::array kWords = {"table", "map", "memory_budget", "compare_phases"};
  return name_of(kWords, view);
}

std::optional<double> Figures::number(std::string_view name) const {
  const auto at = std::ranges::find(all_, name, &Figure::name);
  if (at == all_.end() || !std::holds_alternative<double>(at->value)) return std::nullopt;
  return std::get<double>(at->value);
}

std::string_view Figures::word(std::string_view name) const {
  const auto at = std::ranges::find(all_, name, &Figure::name);
  if (at == all_.end() || !std::holds_alternative<std::string>(at->value)) return "";
  return std::get<std::string>(at->value);
}

const Evidence& evidence_of(FindingTopic topic, bool has_experts) {
  if (topic == FindingTopic::Repeat && has_experts) return kExpertEvidence;
  return kTopicEvidence[static_cast<std::size_t>(std::to_underlying(topic))];
}

}  // namespace tt
