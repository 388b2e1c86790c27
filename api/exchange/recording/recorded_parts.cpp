#include "api/exchange/recording/recorded_parts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <format>

#include "api/exchange/rows/session_metadata.h"
#include "tracer/text/parse_number.h"
#include "tracer/text/utf8.h"

namespace tt::exchange {
namespace {

// Packed templates and addresses that an import holds. Those of a session with hundreds of prompts
// are a few MiB.
constexpr std::size_t kMaxPartBytes = 64u << 20;
constexpr std::size_t kGraphsKept = 16;
constexpr std::array<std::string_view, 7> kEvents = {"template",    "allocation", "recorded_step",
                                                     "page_faults", "residency",  "captured_values",
                                                     "splits"};
// Of the captured values of a step, which may be too many for one line (log_lines.h).
constexpr std::size_t kValuesPerLine = std::size_t{4} << 20;
// As many values as a step may have, not compressed, and their shapes.
constexpr std::size_t kMaxPackedValues =
    kMaxCapturedValues * sizeof(float) + (std::size_t{8} << 20);

std::string hex_of(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::optional<Blob> blob_in(const Json& line) {
  const auto found = line.find("data");
  if (found == line.end() || !found->is_string()) return std::nullopt;
  const auto& text = found->get_ref<const std::string&>();
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (text.size() % 2 != 0) return std::nullopt;
  Blob blob;
  blob.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    blob.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return blob;
}

void append_part(std::string& to, std::string_view event, const Json& fields,
                 std::span<const std::byte> packed) {
  Json line = {{"event", event}, {"type", event}};
  line.update(fields);
  line["data"] = hex_of(packed);
  to += text_of(line);
  to += '\n';
}

TraceError cannot_pack(const Step& step, const DecodeError& error) {
  return {TraceError::Kind::Damaged, std::format("Step {}: {}", step.id.v, error.text())};
}

// Whether the rows are the accesses of the step, in order. Rows of heads are parts of one access.
bool same_rows(const DerivedGraph& derived, const Step& step, std::span<const ImportedRow> rows) {
  const GraphTemplate& graph = *derived.graph;
  std::size_t at = 0;
  bool same = true;
  for_each_access(graph, derived.accesses, step, [&](const StepAccess& access) {
    if (!same) return;
    same = at < rows.size();
    if (!same) return;
    const ImportedRow& first = rows[at];
    std::uint64_t bytes = first.size_bytes;
    ++at;
    for (; first.head >= 0 && at < rows.size() && rows[at].head > 0 && rows[at].op == first.op &&
           rows[at].access == first.access;
         ++at)
      bytes += rows[at].size_bytes;
    same = first.op == access.op.v && first.access == access.access && bytes == access.touched.v &&
           first.expert == access.expert && first.begin == step.op_begin(access.op).v &&
           first.tensor_name == to_valid_utf8(graph.tensor(access.tensor).name);
  });
  return same && at == rows.size();
}

}  // namespace

WriteResult RecordedPartsWriter::append(std::string& to, const Step& step) {
  if (step.graph.v != 0 && templates_.insert(step.graph).second) {
    const auto graph = reader_.graph(step.graph);
    if (!graph) return std::unexpected(graph.error());
    const auto packed = pack_template(**graph);
    if (!packed) return std::unexpected(cannot_pack(step, packed.error()));
    append_part(to, "template",
                {{"template", step.graph.v},
                 {"fingerprint", std::format("{:016x}", (*graph)->fingerprint)}},
                *packed);
  }
  if (step.allocation.v != 0 && allocations_.insert(step.allocation).second) {
    const auto allocation = reader_.allocation(step.allocation);
    if (!allocation) return std::unexpected(allocation.error());
    const auto packed = pack_addresses(allocation->addresses);
    if (!packed) return std::unexpected(cannot_pack(step, packed.error()));
    append_part(to, "allocation",
                {{"allocation", step.allocation.v}, {"template", allocation->graph.v}}, *packed);
  }
  const auto packed = pack_step(step);
  if (!packed) return std::unexpected(cannot_pack(step, packed.error()));
  append_part(to, "recorded_step",
              {{"step", step.id.v}, {"template", step.graph.v}, {"allocation", step.allocation.v}},
              *packed);
  for (const FaultKind kind : {FaultKind::Major, FaultKind::Minor}) {
    WriteResult written;
    const auto read = reader_.for_each_faults(
        step.id, 1,
        [&](const StepFaults& faults) {
          const auto blob = pack_faults(faults, step.begin);
          if (!blob) {
            written = std::unexpected(cannot_pack(step, blob.error()));
            return false;
          }
          append_part(to, "page_faults",
                      {{"step", step.id.v}, {"kind", to_text(kind)}, {"count", faults.count}},
                      *blob);
          return true;
        },
        kind);
    if (!read) return read;
    if (!written) return written;
  }
  WriteResult written;
  const auto read = reader_.for_each_residency(step.id, 1, [&](const StepResidency& residency) {
    const auto blob = pack_ranges(residency.resident);
    if (!blob) {
      written = std::unexpected(cannot_pack(step, blob.error()));
      return false;
    }
    append_part(
        to, "residency",
        {{"step", step.id.v}, {"timestamp_ns", residency.at.v}, {"unit_bytes", residency.unit}},
        *blob);
    return true;
  });
  if (!read) return read;
  if (!written) return written;
  if (auto values = append_values(to, step); !values) return values;
  return append_splits(to, step);
}

WriteResult RecordedPartsWriter::append_splits(std::string& to, const Step& step) const {
  WriteResult written;
  const auto read = reader_.for_each_splits(step.id, 1, [&](const StepSplits& splits) {
    const auto blob = pack_splits(splits, step.begin);
    if (!blob) {
      written = std::unexpected(cannot_pack(step, blob.error()));
      return false;
    }
    append_part(to, "splits", {{"step", step.id.v}}, *blob);
    return true;
  });
  return read ? written : read;
}

WriteResult RecordedPartsWriter::append_values(std::string& to, const Step& step) const {
  WriteResult written;
  const auto read = reader_.for_each_values(step.id, 1, [&](const StepValues& values) {
    const auto blob = pack_values(values.outputs);
    if (!blob) {
      written = std::unexpected(cannot_pack(step, blob.error()));
      return false;
    }
    for (std::span<const std::byte> rest = *blob; !rest.empty();) {
      const auto part = rest.first(std::min(rest.size(), kValuesPerLine));
      append_part(to, "captured_values",
                  {{"step", step.id.v}, {"not_captured", values.not_captured}}, part);
      rest = rest.subspan(part.size());
    }
    return true;
  });
  return read ? written : read;
}

bool RecordedParts::is_part(std::string_view event) {
  return std::ranges::contains(kEvents, event);
}

bool RecordedParts::has_room(const Blob& packed) {
  bytes_ += packed.size();
  return bytes_ <= kMaxPartBytes;
}

void RecordedParts::take(std::string_view event, const Json& line) {
  auto packed = blob_in(line);
  if (!packed) return;
  const TemplateId graph{number_in<std::uint32_t>(line, "template")};
  const AllocationId allocation{number_in<std::uint32_t>(line, "allocation")};
  if (event == "template") {
    const auto fingerprint = parse_number<std::uint64_t>(text_in(line, "fingerprint"), 16);
    if (fingerprint && has_room(*packed))
      templates_.try_emplace(graph, *fingerprint, *std::move(packed));
    return;
  }
  if (event == "allocation") {
    if (has_room(*packed))
      allocations_.try_emplace(allocation, Allocated{graph, *std::move(packed)});
    return;
  }
  const auto number = number_in<std::uint32_t>(line, "step", kNone);
  if (event == "recorded_step") {
    number_ = number;
    graph_ = graph;
    allocation_ = allocation;
    packed_ = std::move(packed);
    faults_.clear();
    residency_.reset();
    values_.reset();
    splits_.reset();
  } else if (number != number_) {
    return;
  } else if (event == "page_faults" && faults_.size() < 2) {
    faults_.push_back({enum_from(text_in(line, "kind"), FaultKind::Minor, FaultKind::Major),
                       number_in<std::uint64_t>(line, "count"), *std::move(packed)});
  } else if (event == "residency") {
    StepResidency head{.step = {},
                       .at = Ns{number_in<std::int64_t>(line, "timestamp_ns")},
                       .unit = number_in<std::uint64_t>(line, "unit_bytes"),
                       .resident = {}};
    residency_.emplace(std::move(head), *std::move(packed));
  } else if (event == "captured_values") {
    if (!values_)
      values_ = {.not_captured = number_in<std::uint64_t>(line, "not_captured"), .packed = {}};
    if (values_->packed.size() + packed->size() <= kMaxPackedValues)
      values_->packed.append_range(*packed);
  } else if (event == "splits") {
    splits_ = *std::move(packed);
  }
}

DerivedPtr RecordedParts::graph(TemplateId id) {
  const auto kept = std::ranges::find(kept_, id, &std::pair<TemplateId, DerivedPtr>::first);
  if (kept != kept_.end()) {
    std::rotate(kept, kept + 1, kept_.end());
    return kept_.back().second;
  }
  const auto found = templates_.find(id);
  if (found == templates_.end()) return nullptr;
  auto graph = unpack_template(found->second.second);
  if (!graph) return nullptr;
  graph->fingerprint = found->second.first;
  if (kept_.size() == kGraphsKept) kept_.erase(kept_.begin());
  kept_.emplace_back(id, derive_graph(std::make_shared<const GraphTemplate>(*std::move(graph))));
  return kept_.back().second;
}

std::optional<RecordedStep> RecordedParts::step(const ImportedStep& imported,
                                                std::uint32_t number) {
  const auto packed = std::exchange(packed_, std::nullopt);
  if (!packed || number_ != number) return std::nullopt;
  RecordedStep out{.step = imported.step,
                   .graph = nullptr,
                   .addresses = {},
                   .faults = {},
                   .residency = std::nullopt,
                   .values = std::nullopt,
                   .splits = std::nullopt};
  Step& step = out.step;
  step.graph = graph_;
  step.allocation = allocation_;
  if (!unpack_step(*packed, step)) return std::nullopt;
  DerivedPtr derived;
  if (graph_.v != 0) {
    derived = graph(graph_);
    if (derived == nullptr) return std::nullopt;
    out.graph = derived->graph;
  }
  // What a reader of the session will check.
  const std::size_t ops = out.graph ? out.graph->ops.size() : 0;
  const std::size_t slots = out.graph ? out.graph->slots.size() : 0;
  if (step.op_ends.size() > ops || (!step.slots.empty() && step.slots.size() != slots))
    return std::nullopt;
  if (!std::ranges::all_of(step.stats, [&](const ValueStats& s) { return s.op.v < ops; }))
    return std::nullopt;
  if (allocation_.v != 0) {
    const auto found = allocations_.find(allocation_);
    if (found == allocations_.end() || !out.graph || found->second.graph != graph_)
      return std::nullopt;
    auto addresses = unpack_addresses(found->second.packed);
    if (!addresses || addresses->size() != out.graph->tensors.size()) return std::nullopt;
    out.addresses = *std::move(addresses);
  }
  if (derived == nullptr ? !imported.rows.empty() : !same_rows(*derived, step, imported.rows))
    return std::nullopt;
  for (const Faults& of : faults_) {
    auto faults = unpack_faults(of.packed, step.begin);
    if (!faults || (!faults->empty() && faults->size() != of.count)) return std::nullopt;
    out.faults.emplace_back(
        of.kind, StepFaults{.step = {}, .count = of.count, .faults = *std::move(faults)});
  }
  if (residency_) {
    auto resident = unpack_ranges(residency_->second);
    if (!resident) return std::nullopt;
    out.residency = std::move(residency_->first);
    out.residency->resident = *std::move(resident);
  }
  if (values_) {
    auto outputs = unpack_values(values_->packed);
    if (!outputs || (!outputs->empty() && outputs->back().op.v >= ops)) return std::nullopt;
    out.values = StepValues{
        .step = {}, .not_captured = values_->not_captured, .outputs = *std::move(outputs)};
  }
  if (splits_) {
    auto splits = unpack_splits(*splits_, step.begin);
    const std::size_t tensors = out.graph ? out.graph->tensors.size() : 0;
    if (!splits || !are_of_graph(*splits, ops, tensors)) return std::nullopt;
    out.splits = *std::move(splits);
  }
  return out;
}

}  // namespace tt::exchange
