// An arbitrary graph and steps as blobs in an otherwise valid file: reaches the decoders that
// random damage does not reach because of the file's checksums.
//
// Input: 4 bytes little-endian, the length of the template; the template (uncompressed); then a
// step blob, a page-fault blob, a list of ranges, a value blob (uncompressed), or a list of splits.
#include <zstd.h>

#include <cstring>
#include <vector>

#include "tests/fuzz/all_queries.h"
#include "tests/fuzz/limits.h"
#include "tests/fuzz/scratch.h"
#include "tracer/format/file/blob_codec.h"
#include "tracer/format/file/session_writer.h"

namespace tt {
namespace {

Blob compressed(std::span<const std::uint8_t> bytes) {
  Blob out(ZSTD_compressBound(bytes.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1));
  return out;
}

std::vector<Step> steps_of(const GraphTemplate& graph, std::span<const std::uint8_t> blob) {
  std::vector<Step> steps;
  for (const Phase phase : {Phase::Prompt, Phase::Generate, Phase::Generate}) {
    const auto id = static_cast<std::uint32_t>(steps.size());
    Step step;
    step.id = StepId{id};
    step.phase = phase;
    step.timing = Timing::Fast;
    step.graph = TemplateId{1};
    step.allocation = AllocationId{1};
    step.begin = step.first_op = Ns{1000 * id};
    step.first_token = id;
    step.n_tokens = 1;
    if (!unpack_step(std::as_bytes(blob), step) || step.op_ends.size() > graph.ops.size() ||
        (!step.slots.empty() && step.slots.size() != graph.slots.size())) {
      step.op_ends.clear();
      step.slots.clear();
      step.stats.clear();
    }
    step.end = step.op_ends.empty() ? step.begin : step.op_ends.back();
    steps.push_back(std::move(step));
  }
  return steps;
}

// Adds the page faults of a step if the blob decodes as page faults.
bool add_faults(SessionWriter& writer, const Step& step, std::span<const std::uint8_t> blob) {
  const auto faults = unpack_faults(std::as_bytes(blob), step.begin);
  if (!faults || faults->empty()) return true;
  const StepFaults of{.step = step.id, .count = faults->size(), .faults = *faults};
  const auto again = unpack_faults(pack_faults(of, step.begin).value(), step.begin);
  if (!again || *again != *faults)
    fuzz::report_finding("page faults differ after packing and unpacking");
  return writer.add_faults(of, step.begin).has_value();
}

// Adds the residency of a step if the blob decodes as ranges.
bool add_residency(SessionWriter& writer, const Step& step, std::span<const std::uint8_t> blob) {
  const auto ranges = unpack_ranges(std::as_bytes(blob));
  if (!ranges || ranges->empty()) return true;
  if (unpack_ranges(pack_ranges(*ranges).value()) != *ranges)
    fuzz::report_finding("ranges differ after packing and unpacking");
  StepResidency of;
  of.step = step.id;
  of.unit = 64;
  of.resident = *ranges;
  return writer.add_residency(of).has_value();
}

// Adds the values of a step if the blob, compressed, decodes as values of ops of the graph.
bool add_values(SessionWriter& writer, const GraphTemplate& graph, const Step& step,
                std::span<const std::uint8_t> blob) {
  auto outputs = unpack_values(compressed(blob));
  if (!outputs || outputs->empty() || outputs->back().op.v >= graph.ops.size()) return true;
  const Blob packed = pack_values(*outputs).value();
  // NaN differs from itself; its bytes do not.
  if (pack_values(unpack_values(packed).value()).value() != packed)
    fuzz::report_finding("values differ after packing and unpacking");
  return writer.add_values({.step = step.id, .not_captured = 1, .outputs = *std::move(outputs)})
      .has_value();
}

// Adds the splits of a step if the blob decodes as splits of the graph.
bool add_splits(SessionWriter& writer, const GraphTemplate& graph, const Step& step,
                std::span<const std::uint8_t> blob) {
  auto splits = unpack_splits(std::as_bytes(blob), step.begin);
  if (!splits || !are_of_graph(*splits, graph.ops.size(), graph.tensors.size())) return true;
  const auto again = unpack_splits(pack_splits(*splits, step.begin).value(), step.begin);
  if (!again || *again != *splits)
    fuzz::report_finding("splits differ after packing and unpacking");
  splits->step = step.id;
  return writer.add_splits(*splits, step.begin).has_value();
}

bool write(const std::filesystem::path& file, const GraphTemplate& graph,
           std::span<const std::uint8_t> blob) {
  const std::vector<Step> steps = steps_of(graph, blob);
  SessionInfo info;
  info.id = "s";
  info.n_layers = 2;
  info.n_heads = 4;
  info.n_heads_kv = 2;
  info.n_experts = 8;
  auto writer = SessionWriter::create(file, info);
  if (!writer) fuzz::report_finding("no file to write to");
  Allocation allocation{.id = AllocationId{1}, .graph = TemplateId{1}, .addresses = {}};
  for (std::size_t i = 0; i < graph.tensors.size(); ++i)
    allocation.addresses.push_back(0x1000 * (i + 1));
  if (!(*writer)->add_template(TemplateId{1}, graph)) return false;
  if (!(*writer)->add_allocation(allocation)) return false;
  std::vector<Token> tokens;
  for (std::uint32_t i = 0; i < steps.size(); ++i)
    tokens.push_back({.index = i, .id = 3, .text = "a"});
  if (!(*writer)->add_tokens(tokens)) return false;
  for (const Step& step : steps)
    if (!(*writer)->add_step(step) || !add_faults(**writer, step, blob) ||
        !add_residency(**writer, step, blob) || !add_values(**writer, graph, step, blob) ||
        !add_splits(**writer, graph, step, blob))
      return false;
  info.state = SessionState::Done;
  return (*writer)->finish(info, {}).has_value();
}

// Writes a session made from `input`. Returns false if the input does not encode one.
bool write_from_input(std::span<const std::uint8_t> input, const std::filesystem::path& file) {
  const fuzz::Limits limits("blobs");
  std::uint32_t length = 0;
  if (input.size() < sizeof length) return false;
  std::memcpy(&length, input.data(), sizeof length);
  input = input.subspan(sizeof length);
  length = std::min<std::uint32_t>(length, static_cast<std::uint32_t>(input.size()));
  const auto graph = unpack_template(compressed(input.first(length)));
  if (!graph) return false;
  const auto again = unpack_template(pack_template(*graph).value());
  if (!again || *again != *graph)
    fuzz::report_finding("a template differs after packing and unpacking");
  if (!write(file, *graph, input.subspan(length))) return false;
  const auto problems = check_session(file);
  if (!problems || !problems->empty()) fuzz::report_finding("the writer wrote an invalid session");
  return true;
}

}  // namespace
}  // namespace tt

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tt;
  static const fuzz::Scratch scratch;
  const auto file = scratch / "s.ttrace";
  if (write_from_input({data, size}, file)) {
    const auto reader = SessionReader::open(file);
    if (!reader) fuzz::report_finding("the writer wrote a session that cannot be opened");
    fuzz::run_all_queries({data, size}, file, *reader);
  }
  scratch.clear();
  return 0;
}
