#include "tests/api/exchange/timeline_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <format>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/tables/op_table.h"
#include "perfetto_trace.pb.h"
#include "tests/api/exchange/export_check.h"
#include "tracer/format/access/access.h"
#include "tracer/text/utf8.h"

namespace tt::test {
namespace {

using exchange::Format;
using nlohmann::json;

struct Slice {
  std::int64_t begin = 0, end = 0;  // ns
  std::string name;
  friend auto operator<=>(const Slice&, const Slice&) = default;
};
struct FlowPoint {  // a point of a flow: the slice that begins there
  std::string track;
  std::int64_t ns = 0;
  friend auto operator<=>(const FlowPoint&, const FlowPoint&) = default;
};
std::ostream& operator<<(std::ostream& out, const Slice& s) {
  return out << std::format("{} from {} to {}", s.name, s.begin, s.end);
}
std::ostream& operator<<(std::ostream& out, const FlowPoint& s) {
  return out << std::format("{} at {}", s.track, s.ns);
}

struct Timeline {
  std::map<std::string, std::multiset<Slice>> tracks;  // "layers/layer 3"; marks have no duration
  std::int64_t op_ns = 0;                              // the durations of all slices of ops
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> counters;
  std::multiset<std::vector<FlowPoint>> flows;
};

constexpr const char* kSteps = "steps/steps";

// The last op before `reader` that wrote into the memory of `root`; -1: none.
int last_writer(const GraphTemplate& graph, std::span<const Access> accesses, TensorId root,
                OpId reader) {
  int last = -1;
  for (const Access& access : accesses)
    if (access.write && access.op < reader && graph.root(access.tensor) == root)
      last = static_cast<int>(access.op.v);
  return last;
}

std::string text_of(const SessionReader& reader, const Step& step) {
  std::string text;
  for (const Token& token : reader.tokens(step.first_token, step.n_tokens).value())
    text += token.text;
  return to_valid_utf8(text);
}

// `chrome`: only the steps with their ops.
Timeline expected(const SessionReader& reader, bool chrome) {
  Timeline line;
  std::vector<FlowPoint> steps;
  std::uint64_t tokens = 0;
  const auto read = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    line.tracks[kSteps].insert({step.begin.v, step.end.v,
                                chrome ? std::format("step {} ({})", step.id.v, to_text(step.phase))
                                       : std::string(to_text(step.phase))});
    if (!chrome)
      line.tracks["tokens/tokens"].insert({step.begin.v, step.end.v, text_of(reader, step)});
    steps.push_back({kSteps, step.begin.v});
    tokens += step.n_tokens;
    const auto graph = reader.graph(step.graph).value();
    std::uint64_t bytes[2] = {};
    std::map<std::uint32_t, std::set<Source>> sources;  // by op
    const std::vector<Access> accesses = accesses_of(*graph);
    std::vector<std::int64_t> begins(graph->ops.size(), -1);  // -1: did not run
    for (std::size_t op = 0; op < step.op_ends.size(); ++op)
      begins[op] = op == 0 ? step.first_op.v : step.op_ends[op - 1].v;
    std::set<std::tuple<LayerId, std::int32_t>> experts;
    for_each_access(*graph, accesses, step, [&](const StepAccess& access) {
      bytes[access.write] += access.touched.v;
      const LayerId layer = graph->op(access.op).layer;
      if (chrome || access.expert < 0 || !experts.emplace(layer, access.expert).second) return;
      line.tracks[std::format("experts/layer {}", layer.v)].insert(
          {begins[access.op.v], begins[access.op.v], std::format("expert {}", access.expert)});
    });
    std::set<std::pair<int, int>> arrows;
    for (const Access& access : accesses) {
      if (chrome || access.write || begins[access.op.v] < 0) continue;
      const int writer = last_writer(*graph, accesses, graph->root(access.tensor), access.op);
      if (writer >= 0) arrows.emplace(writer, static_cast<int>(access.op.v));
    }
    for (const auto& [from, to] : arrows)
      line.flows.insert({{kSteps, begins[static_cast<std::size_t>(from)]},
                         {kSteps, begins[static_cast<std::size_t>(to)]}});
    for_each_access(*graph, accesses, step, [&](const StepAccess& access) {
      if (access.touched.v > 0) sources[access.op.v].insert(graph->tensor(access.tensor).source);
    });
    std::int64_t begin = step.first_op.v;
    for (OpId op{0}; op.v < step.op_ends.size(); ++op.v) {
      const LayerId layer = graph->op(op).layer;
      const std::string kind = op_name(*graph, graph->op(op));
      const Tensor& output = graph->tensor(graph->node(graph->op(op).last()).output);
      const Slice slice{begin, step.op_ends[op.v].v, output.name + " " + kind};
      const std::string layer_track =
          layer == kNoLayer ? "layers/outside layers" : std::format("layers/layer {}", layer.v);
      const Slice mark{begin, begin, slice.name};
      line.op_ns += slice.end - begin;
      line.tracks[kSteps].insert(slice);
      begin = slice.end;
      if (chrome) continue;
      line.tracks[layer_track].insert(mark);
      line.tracks["op kinds/" + kind].insert(mark);
      line.tracks[std::string("components/") + to_text(output.component)].insert(mark);
      for (const Source source : sources[op.v])
        line.tracks[std::string("memory sources/") + to_text(source)].insert(mark);
    }
    const auto seconds = static_cast<double>(step.end.v - step.begin.v) / 1e9;
    const char* names[] = {"read", "written"};
    for (int i = 0; i < 2; ++i) {
      line.counters[names[i]].emplace_back(
          step.begin.v, seconds > 0 ? static_cast<double>(bytes[i]) / seconds : 0);
      line.counters[names[i]].emplace_back(step.end.v, 0);
    }
    line.counters["tokens"].emplace_back(step.end.v, static_cast<double>(tokens));
    if (!chrome) {
      std::uint64_t faults = 0;
      EXPECT_TRUE(reader.for_each_faults(step.id, 1, [&](const StepFaults& of) {
        faults += of.count;
        for (const PageFault& fault : of.faults)
          line.tracks["page faults/page faults"].insert({fault.at.v, fault.at.v, "read from disk"});
        return true;
      }));
      line.counters["faults"].emplace_back(step.end.v, static_cast<double>(faults));
    }
    return true;
  });
  EXPECT_TRUE(read.has_value());
  if (!chrome && steps.size() > 1) line.flows.insert(steps);
  for (std::size_t i = 1; chrome && i < steps.size(); ++i)
    line.flows.insert({steps[i - 1], steps[i]});
  return line;
}

Timeline of_chrome(const std::string& text) {
  Timeline line;
  std::map<int, std::string> groups;
  std::map<std::pair<int, int>, std::string> tracks;
  std::map<std::pair<std::string, std::int64_t>, std::vector<FlowPoint>> flows;
  // Microseconds with three decimals.
  const auto ns = [](const json& v) { return std::llround(v.get<double>() * 1000); };
  for (const json& event : json::parse(text)["traceEvents"]) {
    const std::string phase = event["ph"], name = event["name"];
    const int pid = event["pid"], tid = event["tid"];
    if (phase == "M" && name == "process_name") groups[pid] = "steps";
    if (phase == "M" && name == "thread_name") {
      const bool is_new =
          tracks
              .try_emplace({pid, tid}, groups[pid] + "/" + event["args"]["name"].get<std::string>())
              .second;
      EXPECT_TRUE(is_new) << event;
    }
    if (phase == "X") {
      line.tracks[tracks[{pid, tid}]].insert(
          {ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]), name});
      if (event["cat"] == "op") line.op_ns += ns(event["dur"]);
    }
    if (phase == "C") {
      for (const auto& [of, value] : event["args"].items())
        line.counters[of].emplace_back(ns(event["ts"]), value.get<double>());
    }
    if (phase == "s" || phase == "t" || phase == "f")
      flows[{name, event["id"].get<std::int64_t>()}].push_back(
          {tracks[{pid, tid}], ns(event["ts"])});
  }
  for (const auto& [id, stops] : flows) line.flows.insert(stops);
  return line;
}

Timeline of_perfetto(const std::string& bytes) {
  namespace proto = perfetto::protos;
  Timeline line;
  proto::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(bytes));
  std::map<std::uint64_t, std::string> names, descriptors, tracks;
  struct Open {
    Slice slice;
    bool is_op = false;
  };
  std::map<std::uint64_t, std::vector<Open>> open;  // an end event closes the last open slice
  std::map<std::uint64_t, std::vector<FlowPoint>> flows;
  const std::map<std::string, std::string> counters = {{"bytes read per second", "read"},
                                                       {"bytes written per second", "written"},
                                                       {"tokens", "tokens"},
                                                       {"page faults of a step", "faults"}};
  for (const proto::TracePacket& packet : trace.packet()) {
    for (const auto& name : packet.interned_data().event_names()) names[name.iid()] = name.name();
    if (packet.has_track_descriptor()) {
      const auto& of = packet.track_descriptor();
      descriptors[of.uuid()] = of.name();
      const std::string& group = descriptors[of.parent_uuid()];
      tracks[of.uuid()] = (group.empty() ? of.name() : group) + "/" + of.name();
    }
    if (!packet.has_track_event()) continue;
    const proto::TrackEvent& event = packet.track_event();
    const std::uint64_t track = event.track_uuid();
    const auto ns = static_cast<std::int64_t>(packet.timestamp());
    switch (event.type()) {
      case proto::TrackEvent::TYPE_SLICE_BEGIN:
        open[track].push_back({{ns, 0, event.has_name() ? event.name() : names[event.name_iid()]},
                               event.categories().at(0) == "op"});
        for (const std::uint64_t flow : event.flow_ids())
          flows[flow].push_back({tracks[track], ns});
        break;
      case proto::TrackEvent::TYPE_SLICE_END: {
        EXPECT_FALSE(open[track].empty()) << tracks[track] << " at " << ns;
        if (open[track].empty()) break;
        auto [slice, is_op] = std::move(open[track].back());
        open[track].pop_back();
        slice.end = ns;
        if (is_op) line.op_ns += slice.end - slice.begin;
        line.tracks[tracks[track]].insert(std::move(slice));
        break;
      }
      case proto::TrackEvent::TYPE_INSTANT:
        line.tracks[tracks[track]].insert({ns, ns, names[event.name_iid()]});
        break;
      case proto::TrackEvent::TYPE_COUNTER:
        line.counters[counters.at(descriptors[track])].emplace_back(ns,
                                                                    event.double_counter_value());
        break;
      default:
        ADD_FAILURE() << event.type();
    }
  }
  for (const auto& [track, slices] : open) EXPECT_TRUE(slices.empty()) << tracks[track];
  for (const auto& [id, stops] : flows)
    if (stops.size() > 1) line.flows.insert(stops);
  return line;
}

template <class All>
void expect_equal(const All& found, const All& expected, const std::string& what) {
  EXPECT_EQ(found.size(), expected.size()) << what;
  const auto [a, b] = std::ranges::mismatch(found, expected);
  if (a != found.end() && b != expected.end())
    ADD_FAILURE() << what << ": " << ::testing::PrintToString(*a) << ", expected "
                  << ::testing::PrintToString(*b);
}

void expect_same(const Timeline& found, const Timeline& expected) {
  for (const auto& [track, slices] : expected.tracks) {
    const auto at = found.tracks.find(track);
    ASSERT_NE(at, found.tracks.end()) << track;
    expect_equal(at->second, slices, track);
  }
  EXPECT_EQ(found.tracks.size(), expected.tracks.size());
  // Whoever adds up the durations in the file has the time of the ops, once.
  EXPECT_EQ(found.op_ns, expected.op_ns);
  for (const auto& [counter, values] : expected.counters) {
    const auto at = found.counters.find(counter);
    ASSERT_NE(at, found.counters.end()) << counter;
    ASSERT_EQ(at->second.size(), values.size()) << counter;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(at->second[i].first, values[i].first) << counter;
      // Chrome counters are integers.
      EXPECT_NEAR(at->second[i].second, values[i].second, 0.51 + 1e-9 * values[i].second)
          << counter;
    }
  }
  EXPECT_EQ(found.counters.size(), expected.counters.size());
  expect_equal(found.flows, expected.flows, "flows");
}

// Ops on a track do not overlap; on the track of the steps they are within their step.
void expect_no_overlap(const Timeline& line) {
  for (const auto& [track, slices] : line.tracks) {
    std::vector<const Slice*> open;
    std::vector<Slice> sorted(slices.begin(), slices.end());
    std::ranges::sort(sorted, {}, [](const Slice& s) { return std::pair(s.begin, -s.end); });
    const std::size_t deepest = track == kSteps ? 2 : 1;
    for (const Slice& slice : sorted) {
      while (!open.empty() && open.back()->end <= slice.begin) open.pop_back();
      EXPECT_TRUE(open.empty() || slice.end <= open.back()->end) << track << ": " << slice;
      open.push_back(&slice);
      // A slice of zero duration may touch a slice that ends there.
      EXPECT_TRUE(open.size() <= deepest || slice.begin == slice.end) << track << ": " << slice;
    }
  }
}

}  // namespace

std::uint64_t expect_timelines(const SessionReader& reader) {
  std::uint64_t slices = 0;
  for (const bool chrome : {true, false}) {
    SCOPED_TRACE(chrome ? "Chrome" : "Perfetto");
    const Timeline line = expected(reader, chrome);
    const std::string text =
        export_text(reader, {.format = chrome ? Format::Chrome : Format::Perfetto});
    expect_same(chrome ? of_chrome(text_of_gzip(text)) : of_perfetto(text), line);
    expect_no_overlap(line);
    for (const auto& [track, of] : line.tracks) slices += chrome ? of.size() : 0;
  }
  return slices;
}

}  // namespace tt::test
