// tests/data has one small session of every released format version, which must remain
// readable. UPDATE_GOLDEN=1 rewrites the text files beside them, never the sessions.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <format>
#include <fstream>

#include "tests/support/sessions/random_session.h"
#include "tests/support/test_paths.h"

namespace tt {
namespace {

namespace fs = std::filesystem;

const fs::path kData = source_path("tests/data");

// Escapes bytes other than printable ASCII as \xNN.
std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\')
      out += c;
    else
      out += std::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + "\"";
}

template <class List, class Text>
std::string joined(const List& list, Text text) {
  std::string out = "[";
  for (const auto& item : list) out += (out.size() == 1 ? "" : " ") + text(item);
  return out + "]";
}
const auto number = [](auto v) { return std::to_string(v); };

std::string id_text(std::uint32_t v) { return v == kNone ? "-" : std::to_string(v); }

std::string to_text(const GraphTemplate& graph) {
  std::string out = std::format("template {:016x}\n", graph.fingerprint);
  for (const Tensor& t : graph.tensors)
    out += std::format(
        "  tensor {} {} {}/{} ne {} nb {} view {}+{} {} {} {} layer {} {} {} input {} file "
        "{}:{}+{}\n",
        quoted(t.name), t.type, t.block_bytes, t.block_elements, joined(t.ne, number),
        joined(t.nb, number), id_text(t.view_of.v), t.view_offset, t.buffer, to_text(t.kind),
        to_text(t.source), t.layer.v, to_text(t.component), quoted(to_text(t.role)),
        quoted(to_text(t.input)), t.file.file, t.file.offset, t.file.length);
  for (const Node& n : graph.nodes)
    out += std::format("  node {} = {} {} params {}{}\n", n.output.v, n.op,
                       joined(n.src, [](TensorId id) { return id_text(id.v); }),
                       joined(n.params, number), n.computed ? "" : " not computed");
  for (const Op& op : graph.ops)
    out +=
        std::format("  op nodes {}+{} {} layer {}\n", op.first.v, op.nodes, op.device, op.layer.v);
  for (const Slot& s : graph.slots)
    out += std::format("  slot {} tensor {} read at {} layer {}\n", to_text(s.kind), s.tensor.v,
                       s.read_at.v, s.layer.v);
  return out;
}

std::string to_text(const Step& s) {
  std::string out = std::format(
      "step {} {} {} template {} allocation {} begin {} end {} tokens {}+{} threads {}{}{}\n",
      s.id.v, to_text(s.phase), to_text(s.timing), s.graph.v, s.allocation.v, s.begin.v, s.end.v,
      s.first_token, s.n_tokens, s.threads, s.dropped ? " dropped" : "",
      s.aborted ? " aborted" : "");
  std::string conditions;
  for (const StepCondition& of : kStepConditions)
    if (const auto value = s.conditions.*of.value)
      conditions += std::format(" {} {}", of.name, *value);
  if (!conditions.empty()) out += std::format("  conditions{}\n", conditions);
  out += std::format("  ops from {} end {}\n", s.first_op.v,
                     joined(s.op_ends, [](Ns end) { return std::to_string(end.v); }));
  for (const SlotValues& v : s.slots)
    out += std::format("  slot {} {}\n", joined(v.ints, number),
                       joined(v.floats, [](float f) { return std::format("{}", f); }));
  for (const ValueStats& v : s.stats)
    out += std::format("  stats of {}: {} {} {} {} nan {} inf {}\n", v.op.v, v.min, v.max, v.mean,
                       v.std, v.nan, v.inf);
  return out;
}

std::string to_text(const test::RandomSession& s) {
  const SessionInfo& i = s.info;
  std::string out = std::format(
      "session {}\ntitle {}\nstart {}\nlevel {} exact {} state {} error {}\n"
      "layers {} heads {}/{} embd {} vocab {} experts {}/{}\n",
      i.id, quoted(i.title), i.start_utc_ns, to_text(i.level), i.exact_timing, to_text(i.state),
      quoted(i.error), i.n_layers, i.n_heads, i.n_heads_kv, i.n_embd, i.n_vocab, i.n_experts_used,
      i.n_experts);
  for (const ModelFile& f : i.model_files)
    out += std::format("model file {} {} bytes mtime {} header {}\n", f.path, f.size, f.mtime_ns,
                       f.header_hash);
  for (const auto& [name, value] : i.facts)
    out += std::format("fact {} = {}\n", name, quoted(value));
  out +=
      std::format("lost {} {} {} {}\n", s.losses.steps_without_times, s.losses.slot_values_dropped,
                  s.losses.count_mismatches, s.losses.steps_not_written);
  if (s.losses.page_faults_lost > 0)
    out += std::format("lost {} page faults\n", s.losses.page_faults_lost);
  for (const GraphTemplate& graph : s.templates) out += to_text(graph);
  for (const Allocation& a : s.allocations)
    out += std::format("allocation {} of template {} {}\n", a.id.v, a.graph.v,
                       joined(a.addresses, [](auto v) { return std::format("{:x}", v); }));
  for (const Token& t : s.tokens)
    out += std::format("token {} id {} at {} {}{}{}{}{}\n", t.index, t.id, t.position,
                       quoted(t.text), t.generated ? " generated" : "", t.reused ? " reused" : "",
                       t.sequence ? std::format(" sequence {}", *t.sequence) : "",
                       t.draft == Draft::None ? "" : std::format(" draft {}", to_text(t.draft)));
  for (const Step& step : s.steps) out += to_text(step);
  const auto add_faults = [&](const std::vector<StepFaults>& steps, const char* what) {
    for (const StepFaults& of : steps)
      out += std::format("{} {} in step {} {}\n", of.count, what, of.step.v,
                         joined(of.faults, [](const PageFault& fault) {
                           return std::format("{}:{:x}", fault.at.v, fault.address);
                         }));
  };
  add_faults(s.faults, "page faults");
  add_faults(s.minor_faults, "minor page faults");
  for (const StepResidency& of : s.residency)
    out += std::format("in memory before step {} at {}, unit {}: {}\n", of.step.v, of.at.v, of.unit,
                       joined(of.resident, [](const FileRange& range) {
                         return std::format("{}:{}+{}", range.file, range.offset, range.length);
                       }));
  for (const StepValues& of : s.values) {
    out += std::format("values of step {}, {} not captured\n", of.step.v, of.not_captured);
    for (const OutputValues& output : of.outputs)
      out += std::format("  op {} ne {} {}\n", output.op.v, joined(output.ne, number),
                         joined(output.values, [](float f) { return std::format("{}", f); }));
  }
  for (const StepSplits& of : s.splits) {
    out += std::format("splits of step {} on {}\n", of.step.v,
                       joined(of.backends, [](const std::string& name) { return quoted(name); }));
    for (const BackendSplit& split : of.splits) {
      for (const BackendCopy& copy : split.copies)
        out += std::format("  copy {} from {} bytes {} {}..{} wait {} complete {}\n", copy.tensor.v,
                           copy.from, copy.bytes, copy.begin.v, copy.end.v, copy.wait.v,
                           copy.complete);
      out += std::format("  split on {} ops {}+{} {}..{} done {}\n", split.backend, split.first.v,
                         split.ops, split.begin.v, split.end.v,
                         split.done ? std::to_string(split.done->v) : "unknown");
    }
  }
  return out;
}

void expect_golden(const char* session, const char* text) {
  const auto read = test::read_session(kData / session);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const std::string actual = to_text(*read);
  if (std::getenv("UPDATE_GOLDEN")) std::ofstream(kData / text, std::ios::binary) << actual;
  std::ifstream in(kData / text, std::ios::binary);
  EXPECT_EQ(actual, std::string(std::istreambuf_iterator<char>(in), {}));
  EXPECT_EQ(check_session(kData / session).value(), std::vector<std::string>{});
}

TEST(ReleasedFormat, ReadsVersion1) { expect_golden("session-v1.ttrace", "session-v1.txt"); }

TEST(ReleasedFormat, ReadsVersion2) { expect_golden("session-v2.ttrace", "session-v2.txt"); }

TEST(ReleasedFormat, ReadsVersion3) { expect_golden("session-v3.ttrace", "session-v3.txt"); }

TEST(ReleasedFormat, ReadsVersion4) { expect_golden("session-v4.ttrace", "session-v4.txt"); }

TEST(ReleasedFormat, ReadsVersion5) { expect_golden("session-v5.ttrace", "session-v5.txt"); }

TEST(ReleasedFormat, ReadsVersion6) { expect_golden("session-v6.ttrace", "session-v6.txt"); }
TEST(ReleasedFormat, ReadsVersion7) { expect_golden("session-v7.ttrace", "session-v7.txt"); }

TEST(ReleasedFormat, ReadsVersion8) { expect_golden("session-v8.ttrace", "session-v8.txt"); }

}  // namespace
}  // namespace tt
