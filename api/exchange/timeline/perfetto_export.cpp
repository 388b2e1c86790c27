#include <format>
#include <string>
#include <unordered_map>

#include "api/exchange/rows/slices.h"
#include "api/exchange/rows/tracks.h"
#include "api/exchange/timeline/trace_events.h"
#include "perfetto_trace.pb.h"
#include "tracer/text/utf8.h"

namespace tt::exchange {
namespace {

namespace proto = perfetto::protos;
using proto::TrackEvent;

constexpr std::uint32_t kSequence = 1;
constexpr std::int32_t kPid = 1;
// Ids of fixed tracks; dynamic tracks start at kTracks.
constexpr std::uint64_t kProcess = 1, kReadCounter = 2, kWrittenCounter = 3, kTokenCounter = 4,
                        kGroups = 10, kTracks = 100;

class PerfettoTrace {
 public:
  PerfettoTrace(SessionRows& rows, const ByteSink& sink) : rows_(rows), out_(sink) {}

  WriteResult write(const ContinueCheck& keep_going) {
    write_descriptors();
    const WriteResult walked = rows_.for_each_step(
        [&](const StepRows& step) {
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

  void track(std::uint64_t uuid, std::uint64_t parent, const std::string& name) {
    packet([&](proto::TracePacket& packet) {
      auto& descriptor = *packet.mutable_track_descriptor();
      descriptor.set_uuid(uuid);
      descriptor.set_parent_uuid(parent);
      descriptor.set_name(name);
    });
  }
  void counter_track(std::uint64_t uuid, const char* name, proto::CounterDescriptor::Unit unit) {
    packet([&](proto::TracePacket& packet) {
      auto& descriptor = *packet.mutable_track_descriptor();
      descriptor.set_uuid(uuid);
      descriptor.set_parent_uuid(kProcess);
      descriptor.set_name(name);
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
    });
    for (std::size_t group = 1; group < kTrackGroups.size(); ++group)
      track(kGroups + group, kProcess, kTrackGroups[group]);
    counter_track(kReadCounter, "bytes read per second", proto::CounterDescriptor::UNIT_SIZE_BYTES);
    counter_track(kWrittenCounter, "bytes written per second",
                  proto::CounterDescriptor::UNIT_SIZE_BYTES);
    counter_track(kTokenCounter, "tokens", proto::CounterDescriptor::UNIT_COUNT);
  }

  std::uint64_t uuid(TrackGroup group, const std::string& name) {
    const Track found = tracks_.of(group, name);
    const std::uint64_t id = kTracks + found.number;
    if (found.is_new) {
      const std::uint64_t parent =
          group == TrackGroup::Steps ? kProcess : kGroups + static_cast<std::uint64_t>(group);
      track(id, parent, name);
    }
    return id;
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
             std::uint64_t flow, Annotate annotate) {
    packet([&](proto::TracePacket& packet) {
      packet.set_timestamp(static_cast<std::uint64_t>(ns));
      TrackEvent& event = *packet.mutable_track_event();
      event.set_type(TrackEvent::TYPE_SLICE_BEGIN);
      event.set_track_uuid(track);
      event.set_name_iid(name_id(packet, name));
      event.add_categories(category);
      if (flow != 0) event.add_flow_ids(flow);
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
  void slice(std::uint64_t track, const Slice& time, std::string_view name, const char* category,
             std::uint64_t flow, Annotate annotate) {
    begin(track, time.begin, name, category, flow, annotate);
    end(track, time.end);
  }
  template <class Annotate>
  void instant(TrackGroup group, const std::string& name, const OpSlice& op, const char* category,
               Annotate annotate) {
    const std::uint64_t track = uuid(group, name);
    packet([&](proto::TracePacket& packet) {
      packet.set_timestamp(static_cast<std::uint64_t>(op.time.begin));
      TrackEvent& event = *packet.mutable_track_event();
      event.set_type(TrackEvent::TYPE_INSTANT);
      event.set_track_uuid(track);
      event.set_name_iid(name_id(packet, op.name));
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

  void add(const StepSlice& step) {
    const std::uint64_t steps = uuid(TrackGroup::Steps, "steps");
    counter(kReadCounter, step.time.begin, per_second(step.read, step.time));
    counter(kWrittenCounter, step.time.begin, per_second(step.written, step.time));
    // Flow from this step to the next: the token it produces is evaluated there.
    constexpr std::uint64_t kStepFlow = 1;
    begin(steps, step.time.begin, to_text(step.step->phase), "step", kStepFlow,
          [&](proto::TracePacket& packet) {
            annotation(packet, "step").set_uint_value(step.step->id.v);
            annotation(packet, "timing").set_string_value(to_text(step.step->timing));
            annotation(packet, "token_id").set_uint_value(step.step->first_token);
            annotation(packet, "token_count").set_uint_value(step.step->n_tokens);
            annotation(packet, "bytes_read").set_uint_value(step.read.v);
            annotation(packet, "bytes_written").set_uint_value(step.written.v);
          });
    const OpSlice* before = nullptr;
    for (const OpSlice& op : step.ops) {
      add(op, steps,
          before == nullptr || before->layer != op.layer ? 2 + std::uint64_t{step.step->id.v} : 0);
      before = &op;
    }
    end(steps, step.time.end);
    counter(kReadCounter, step.time.end, 0);
    counter(kWrittenCounter, step.time.end, 0);
    counter(kTokenCounter, step.time.end, static_cast<double>(step.tokens));
  }

  // The time of an op is on the track of its step. The other tracks only mark where it begins, so
  // that durations can be added up. `flow`: id of the flow between layers; 0: the op stays in the
  // layer of the previous one.
  void add(const OpSlice& op, std::uint64_t steps, std::uint64_t flow) {
    const auto bytes = [&](proto::TracePacket& packet) {
      annotation(packet, "bytes_read").set_uint_value(op.read.v);
      annotation(packet, "bytes_written").set_uint_value(op.written.v);
    };
    slice(steps, op.time, op.name, "op", flow, [&](proto::TracePacket& packet) {
      annotation(packet, "tensor").set_string_value(to_valid_utf8(op.tensor));
      annotation(packet, "device").set_string_value(to_valid_utf8(op.device));
      bytes(packet);
    });
    instant(TrackGroup::Layers, layer_track(op.layer), op, "layer", bytes);
    instant(TrackGroup::OpKinds, to_valid_utf8(op.name), op, "op kind", bytes);
    for (std::size_t s = 0; s < kSources; ++s) {
      if (op.source_bytes[s] == 0) continue;
      instant(TrackGroup::Sources, to_text(static_cast<Source>(s)), op, "source",
              [&](proto::TracePacket& packet) {
                annotation(packet, "bytes").set_uint_value(op.source_bytes[s]);
              });
    }
  }

  SessionRows& rows_;
  BufferedSink out_;
  Tracks tracks_;
  Slices slices_;
  proto::Trace trace_;
  std::unordered_map<std::string, std::uint64_t> names_, annotations_;
};

}  // namespace

WriteResult export_perfetto(SessionRows& rows, const ByteSink& sink,
                            const ContinueCheck& keep_going) {
  return PerfettoTrace(rows, sink).write(keep_going);
}

}  // namespace tt::exchange
