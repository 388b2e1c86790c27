#include <algorithm>
#include <cmath>
#include <format>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/exchange/rows/slices.h"
#include "api/exchange/rows/tracks.h"
#include "api/exchange/timeline/step_tokens.h"
#include "api/exchange/timeline/trace_events.h"
#include "perfetto_trace.pb.h"
#include "tracer/text/utf8.h"

namespace tt::exchange {
namespace {

namespace proto = perfetto::protos;
using proto::TrackEvent;

constexpr std::uint32_t kSequence = 1;
constexpr std::int32_t kPid = 1;
// Ids of fixed tracks: those of the groups from kGroups on, then the counters; dynamic tracks start
// at kTracks.
constexpr std::uint64_t kProcess = 1, kGroups = 2, kReadCounter = 20, kWrittenCounter = 21,
                        kTokenCounter = 22, kFaultCounter = 23, kTracks = 100;
static_assert(kGroups + kTrackGroups.size() <= kReadCounter);

class PerfettoTrace {
 public:
  PerfettoTrace(SessionRows& rows, const ByteSink& sink) : rows_(rows), out_(sink) {}

  WriteResult write(const ContinueCheck& keep_going) {
    write_descriptors();
    const WriteResult walked = rows_.for_each_step(
        [&](const StepRows& step) -> WriteResult {
          if (WriteResult added = add_tokens_and_faults(*step.scope.step); !added) return added;
          add(slices_.of(step));
          return out_.flush_if_full();
        },
        keep_going);
    if (!walked) return walked;
    return out_.flush();
  }

 private:
  // Writes a packet of our sequence; `fill` sets its content.
  template <class Fill>
  void packet(Fill fill) {
    trace_.Clear();
    proto::TracePacket& packet = *trace_.add_packet();
    packet.set_trusted_packet_sequence_id(kSequence);
    packet.set_sequence_flags(proto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    fill(packet);
    trace_.AppendToString(&out_.text());
  }

  // Tracks of one parent are shown in the order of their ids: that of the model, in which layer 10
  // follows layer 9.
  template <class Fill>
  void track(std::uint64_t uuid, std::uint64_t parent, const std::string& name, Fill fill) {
    packet([&](proto::TracePacket& packet) {
      auto& descriptor = *packet.mutable_track_descriptor();
      descriptor.set_uuid(uuid);
      descriptor.set_parent_uuid(parent);
      descriptor.set_name(name);
      descriptor.set_sibling_order_rank(static_cast<std::int32_t>(uuid));
      fill(descriptor);
    });
  }
  void counter_track(std::uint64_t uuid, const char* name, proto::CounterDescriptor::Unit unit) {
    track(uuid, kProcess, name, [&](proto::TrackDescriptor& descriptor) {
      descriptor.mutable_counter()->set_unit(unit);
    });
  }

  void write_descriptors() {
    packet([&](proto::TracePacket& packet) {
      packet.set_sequence_flags(proto::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
      auto& descriptor = *packet.mutable_track_descriptor();
      descriptor.set_uuid(kProcess);
      descriptor.mutable_process()->set_pid(kPid);
      descriptor.mutable_process()->set_process_name(
          to_valid_utf8(std::format("tensor-trace {}", rows_.session().id)));
      descriptor.set_child_ordering(proto::TrackDescriptor::EXPLICIT);
    });
    for (std::size_t group = 0; group < kTrackGroups.size(); ++group) {
      track(kGroups + group, kProcess, kTrackGroups[group], [](proto::TrackDescriptor& descriptor) {
        descriptor.set_child_ordering(proto::TrackDescriptor::EXPLICIT);
      });
    }
    counter_track(kReadCounter, "bytes read per second", proto::CounterDescriptor::UNIT_SIZE_BYTES);
    counter_track(kWrittenCounter, "bytes written per second",
                  proto::CounterDescriptor::UNIT_SIZE_BYTES);
    counter_track(kTokenCounter, "tokens", proto::CounterDescriptor::UNIT_COUNT);
    counter_track(kFaultCounter, "page faults of a step", proto::CounterDescriptor::UNIT_COUNT);
  }

  std::uint64_t uuid(TrackGroup group, const std::string& name) {
    const Track found = tracks_.of(group, name);
    const std::uint64_t id = kTracks + found.number;
    if (found.is_new) track(id, uuid(group), name, [](proto::TrackDescriptor&) {});
    return id;
  }
  // The track of a group that is one track, or the parent of its tracks.
  static std::uint64_t uuid(TrackGroup group) {
    return kGroups + static_cast<std::uint64_t>(group);
  }

  // Names are interned: written once in the packet that uses them first, then referenced by
  // id.
  std::uint64_t name_id(proto::TracePacket& packet, std::string_view name) {
    const auto [at, is_new] = names_.try_emplace(std::string(name), names_.size() + 1);
    if (is_new) {
      auto& entry = *packet.mutable_interned_data()->add_event_names();
      entry.set_iid(at->second);
      entry.set_name(to_valid_utf8(name));
    }
    return at->second;
  }
  proto::DebugAnnotation& annotation(proto::TracePacket& packet, const char* name) {
    const auto [at, is_new] = annotations_.try_emplace(name, annotations_.size() + 1);
    if (is_new) {
      auto& entry = *packet.mutable_interned_data()->add_debug_annotation_names();
      entry.set_iid(at->second);
      entry.set_name(name);
    }
    auto& added = *packet.mutable_track_event()->add_debug_annotations();
    added.set_name_iid(at->second);
    return added;
  }

  template <class Annotate>
  void begin(std::uint64_t track, std::int64_t ns, std::string_view name, const char* category,
             std::span<const std::uint64_t> flows, Annotate annotate) {
    packet([&](proto::TracePacket& packet) {
      packet.set_timestamp(static_cast<std::uint64_t>(ns));
      TrackEvent& event = *packet.mutable_track_event();
      event.set_type(TrackEvent::TYPE_SLICE_BEGIN);
      event.set_track_uuid(track);
      event.set_name_iid(name_id(packet, name));
      event.add_categories(category);
      for (const std::uint64_t flow : flows) event.add_flow_ids(flow);
      annotate(packet);
    });
  }
  void end(std::uint64_t track, std::int64_t ns) {
    packet([&](proto::TracePacket& packet) {
      packet.set_timestamp(static_cast<std::uint64_t>(ns));
      packet.mutable_track_event()->set_type(TrackEvent::TYPE_SLICE_END);
      packet.mutable_track_event()->set_track_uuid(track);
    });
  }
  template <class Annotate>
  void instant(std::uint64_t track, std::int64_t ns, std::string_view name, const char* category,
               Annotate annotate) {
    packet([&](proto::TracePacket& packet) {
      packet.set_timestamp(static_cast<std::uint64_t>(ns));
      TrackEvent& event = *packet.mutable_track_event();
      event.set_type(TrackEvent::TYPE_INSTANT);
      event.set_track_uuid(track);
      event.set_name_iid(name_id(packet, name));
      event.add_categories(category);
      annotate(packet);
    });
  }
  void counter(std::uint64_t track, std::int64_t ns, double value) {
    packet([&](proto::TracePacket& packet) {
      packet.set_timestamp(static_cast<std::uint64_t>(ns));
      TrackEvent& event = *packet.mutable_track_event();
      event.set_type(TrackEvent::TYPE_COUNTER);
      event.set_track_uuid(track);
      event.set_double_counter_value(value);
    });
  }

  // Their times are those that were recorded. The name of a token is not interned: each differs.
  WriteResult add_tokens_and_faults(const Step& step) {
    const auto text = text_of_tokens(rows_.reader(), step);
    if (!text) return std::unexpected(text.error());
    const std::uint64_t tokens = uuid(TrackGroup::Tokens), faults = uuid(TrackGroup::Faults);
    token_end_ = std::max(token_end_, step.begin.v);
    packet([&](proto::TracePacket& packet) {
      packet.set_timestamp(static_cast<std::uint64_t>(token_end_));
      TrackEvent& event = *packet.mutable_track_event();
      event.set_type(TrackEvent::TYPE_SLICE_BEGIN);
      event.set_track_uuid(tokens);
      event.set_name(*text);
      event.add_categories("token");
      annotation(packet, "token_id").set_uint_value(step.first_token);
      annotation(packet, "token_count").set_uint_value(step.n_tokens);
    });
    token_end_ = std::max(token_end_, step.end.v);
    end(tokens, token_end_);
    std::uint64_t count = 0;
    WriteResult read = rows_.reader().for_each_faults(step.id, 1, [&](const StepFaults& of) {
      count = of.count;
      for (const PageFault& fault : of.faults) {
        fault_at_ = std::max(fault_at_, fault.at.v);
        instant(faults, fault_at_, "read from disk", "page fault", [&](proto::TracePacket& packet) {
          annotation(packet, "address").set_uint_value(fault.address);
        });
      }
      return true;
    });
    counter(kFaultCounter, token_end_, static_cast<double>(count));
    return read;
  }

  void add(const StepSlice& step) {
    const std::uint64_t steps = uuid(TrackGroup::Steps);
    counter(kReadCounter, step.time.begin, per_second(step.read, step.time));
    counter(kWrittenCounter, step.time.begin, per_second(step.written, step.time));
    // Flow from this step to the next: the token it produces is evaluated there.
    begin(steps, step.time.begin, to_text(step.step->phase), "step", {{kStepFlow}},
          [&](proto::TracePacket& packet) {
            annotation(packet, "step").set_uint_value(step.step->id.v);
            annotation(packet, "timing").set_string_value(to_text(step.step->timing));
            annotation(packet, "token_id").set_uint_value(step.step->first_token);
            annotation(packet, "token_count").set_uint_value(step.step->n_tokens);
            annotation(packet, "bytes_read").set_uint_value(step.read.v);
            annotation(packet, "bytes_written").set_uint_value(step.written.v);
          });
    // Each flow has an id of its own: an arrow from a writer to one reader.
    flows_.resize(std::max(flows_.size(), step.ops.size()));
    for (std::vector<std::uint64_t>& of : flows_) of.clear();
    for (const Handover& of : step.handovers) {
      if (of.reader >= step.ops.size()) break;  // did not run
      flows_[of.writer].push_back(next_flow_);
      flows_[of.reader].push_back(next_flow_++);
    }
    for (std::size_t i = 0; i < step.ops.size(); ++i) add(step.ops[i], steps, flows_[i]);
    for (const ExpertSlice& of : step.experts) {
      instant(uuid(TrackGroup::Experts, layer_track(of.layer)), step.ops[of.op].time.begin,
              std::format("expert {}", of.expert), "expert", [&](proto::TracePacket& packet) {
                if (of.rank >= 0) annotation(packet, "rank").set_int_value(of.rank);
                if (!std::isnan(of.score)) annotation(packet, "score").set_double_value(of.score);
              });
    }
    end(steps, step.time.end);
    counter(kReadCounter, step.time.end, 0);
    counter(kWrittenCounter, step.time.end, 0);
    counter(kTokenCounter, step.time.end, static_cast<double>(step.tokens));
  }

  // The time of an op is on the track of its step. The other tracks only mark where it begins, so
  // that durations can be added up.
  void add(const OpSlice& op, std::uint64_t steps, std::span<const std::uint64_t> flows) {
    const auto bytes = [&](proto::TracePacket& packet) {
      annotation(packet, "bytes_read").set_uint_value(op.read.v);
      annotation(packet, "bytes_written").set_uint_value(op.written.v);
    };
    begin(steps, op.time.begin, op.label, "op", flows, [&](proto::TracePacket& packet) {
      annotation(packet, "tensor").set_string_value(to_valid_utf8(op.tensor));
      annotation(packet, "op").set_string_value(to_valid_utf8(op.name));
      annotation(packet, "device").set_string_value(to_valid_utf8(op.device));
      bytes(packet);
    });
    end(steps, op.time.end);
    const auto mark = [&](TrackGroup group, const std::string& track, const char* category,
                          auto annotate) {
      instant(uuid(group, track), op.time.begin, op.label, category, annotate);
    };
    mark(TrackGroup::Layers, layer_track(op.layer), "layer", bytes);
    mark(TrackGroup::Components, to_text(op.component), "component", bytes);
    mark(TrackGroup::OpKinds, to_valid_utf8(op.name), "op kind", bytes);
    for (std::size_t s = 0; s < kSources; ++s) {
      if (op.source_bytes[s] == 0) continue;
      mark(TrackGroup::Sources, to_text(static_cast<Source>(s)), "source",
           [&](proto::TracePacket& packet) {
             annotation(packet, "bytes").set_uint_value(op.source_bytes[s]);
           });
    }
  }

  static constexpr std::uint64_t kStepFlow = 1;

  SessionRows& rows_;
  BufferedSink out_;
  Tracks tracks_;
  Slices slices_;
  proto::Trace trace_;
  std::int64_t token_end_ = 0, fault_at_ = 0;  // the newest event of the track
  std::uint64_t next_flow_ = kStepFlow + 1;
  std::vector<std::vector<std::uint64_t>> flows_;  // of the ops of a step
  std::unordered_map<std::string, std::uint64_t> names_, annotations_;
};

}  // namespace

WriteResult export_perfetto(SessionRows& rows, const ByteSink& sink,
                            const ContinueCheck& keep_going) {
  return PerfettoTrace(rows, sink).write(keep_going);
}

}  // namespace tt::exchange
