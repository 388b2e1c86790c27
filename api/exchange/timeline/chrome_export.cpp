#include <cmath>
#include <format>
#include <iterator>
#include <utility>

#include "api/exchange/rows/session_metadata.h"
#include "api/exchange/rows/slices.h"
#include "api/exchange/rows/tracks.h"
#include "api/exchange/timeline/trace_events.h"
#include "tracer/text/utf8.h"

namespace tt::exchange {
namespace {

// Chrome uses microseconds; three decimals keep nanoseconds.
std::string microseconds(std::int64_t ns) {
  const std::uint64_t size =
      ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  return std::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

std::string quoted(std::string_view text) { return text_of(Json(std::string(text))); }

// Track of an event: the Chrome process is the track group, the thread is the track.
struct TrackRef {
  int pid = 0;
  std::uint32_t tid = 0;
};

class ChromeTrace {
 public:
  ChromeTrace(SessionRows& rows, const ByteSink& sink) : rows_(rows), out_(sink) {}

  WriteResult write(const ContinueCheck& keep_going) {
    out_.text() += "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (std::size_t group = 0; group < kTrackGroups.size(); ++group) {
      metadata("process_name", {static_cast<int>(group) + 1, 0}, kTrackGroups[group]);
    }
    const WriteResult walked = rows_.for_each_step(
        [&](const StepRows& step) {
          add(slices_.of(step));
          return out_.flush_if_full();
        },
        keep_going);
    if (!walked) return walked;
    const auto facts = session_metadata(rows_);
    if (!facts) return std::unexpected(facts.error());
    out_.text() += std::format("\n],\"otherData\":{}}}\n", text_of(*facts));
    return out_.flush();
  }

 private:
  template <class... Args>
  void event(std::format_string<Args...> fields, Args&&... args) {
    out_.text() += first_ ? "{" : ",\n{";
    first_ = false;
    std::format_to(std::back_inserter(out_.text()), fields, std::forward<Args>(args)...);
    out_.text() += '}';
  }
  void metadata(const char* what, TrackRef at, std::string_view name) {
    event(R"("ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}})", what, at.pid, at.tid,
          quoted(name));
  }
  TrackRef track_ref(TrackGroup group, const std::string& name) {
    const Track track = tracks_.of(group, name);
    const TrackRef at{static_cast<int>(group) + 1, track.number};
    if (track.is_new) metadata("thread_name", at, name);
    return at;
  }
  void slice(TrackRef at, std::string_view name, const char* category, const Slice& time,
             const std::string& args) {
    event(R"("ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})",
          quoted(name), category, at.pid, at.tid, microseconds(time.begin),
          microseconds(time.end - time.begin), args);
  }
  void instant(TrackRef at, const OpSlice& op, const char* category, const std::string& args) {
    event(R"("ph":"i","s":"t","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"args":{{{}}})",
          quoted(op.name), category, at.pid, at.tid, microseconds(op.time.begin), args);
  }
  // 's' starts a flow, 't' continues it, 'f' ends it, each at the slice that contains `ns`.
  void flow(char phase, std::uint64_t id, TrackRef at, const char* name, std::int64_t ns) {
    event(R"("ph":"{}","id":{},"name":"{}","cat":"flow","pid":{},"tid":{},"ts":{}{})", phase, id,
          name, at.pid, at.tid, microseconds(ns), phase == 'f' ? R"(,"bp":"e")" : "");
  }
  void counter(const char* name, std::int64_t ns, const std::string& values) {
    event(R"("ph":"C","name":"{}","pid":1,"tid":0,"ts":{},"args":{{{}}})", name, microseconds(ns),
          values);
  }

  void add(const StepSlice& step) {
    const TrackRef steps = track_ref(TrackGroup::Steps, "steps");
    slice(steps, std::format("step {} ({})", step.step->id.v, to_text(step.step->phase)), "step",
          step.time,
          std::format(R"("step":{},"phase":"{}","timing":"{}","token_id":{},"token_count":{},)"
                      R"("bytes_read":{},"bytes_written":{})",
                      step.step->id.v, to_text(step.step->phase), to_text(step.step->timing),
                      step.step->first_token, step.step->n_tokens, step.read.v, step.written.v));
    // Flow between steps: the token that one step produces is evaluated in the next.
    if (last_step_ >= 0) {
      const auto id = 2 * static_cast<std::uint64_t>(step.step->id.v);
      flow('s', id, steps, "next step", last_step_);
      flow('f', id, steps, "next step", step.time.begin);
    }
    last_step_ = step.time.begin;
    add_ops(step, steps);
    counter("bytes per second", step.time.begin,
            std::format(R"("read":{:.0f},"written":{:.0f})", per_second(step.read, step.time),
                        per_second(step.written, step.time)));
    counter("bytes per second", step.time.end, R"("read":0,"written":0)");
    counter("tokens", step.time.end, std::format(R"("tokens":{})", step.tokens));
  }

  // The time of an op is on the track of its step. The other tracks only mark where it begins, so
  // that durations can be added up.
  void add_ops(const StepSlice& step, TrackRef steps) {
    const std::uint64_t id = 2 * static_cast<std::uint64_t>(step.step->id.v) + 1;
    const OpSlice* before = nullptr;
    std::int64_t from_ns = 0;
    int passed = 0;
    for (const OpSlice& op : step.ops) {
      const std::string bytes =
          std::format(R"("bytes_read":{},"bytes_written":{})", op.read.v, op.written.v);
      slice(
          steps, op.name, "op", op.time,
          std::format(R"("tensor":{},"device":{},{},"bytes_per_second":{:.0f})", quoted(op.tensor),
                      quoted(op.device), bytes, per_second(op.read + op.written, op.time)));
      instant(track_ref(TrackGroup::Layers, layer_track(op.layer)), op, "layer", bytes);
      instant(track_ref(TrackGroup::OpKinds, to_valid_utf8(op.name)), op, "op kind", bytes);
      for (std::size_t s = 0; s < kSources; ++s) {
        if (op.source_bytes[s] == 0) continue;
        instant(track_ref(TrackGroup::Sources, to_text(static_cast<Source>(s))), op, "source",
                std::format(R"("bytes":{})", op.source_bytes[s]));
      }
      // Flow between layers: the path of the residual stream.
      if (before == nullptr || op.layer != before->layer) {
        if (passed == 1) flow('s', id, steps, "layers", from_ns);
        if (passed > 1) flow('t', id, steps, "layers", from_ns);
        from_ns = op.time.begin;
        ++passed;
      }
      before = &op;
    }
    if (passed > 1) flow('f', id, steps, "layers", from_ns);
  }

  SessionRows& rows_;
  BufferedSink out_;
  Tracks tracks_;
  Slices slices_;
  std::int64_t last_step_ = -1;
  bool first_ = true;
};

}  // namespace

WriteResult export_chrome(SessionRows& rows, const ByteSink& sink,
                          const ContinueCheck& keep_going) {
  return ChromeTrace(rows, sink).write(keep_going);
}

}  // namespace tt::exchange
