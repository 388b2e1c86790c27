#include <cmath>
#include <format>
#include <iterator>
#include <utility>

#include "api/exchange/rows/gzip_sink.h"
#include "api/exchange/rows/session_metadata.h"
#include "api/exchange/rows/slices.h"
#include "api/exchange/timeline/step_tokens.h"
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

std::string json_text(std::string_view text) { return text_of(Json(std::string(text))); }

class ChromeTrace {
 public:
  ChromeTrace(SessionRows& rows, const ByteSink& sink) : rows_(rows), out_(sink) {}

  WriteResult write(const ContinueCheck& keep_going) {
    out_.text() += "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    metadata("process_name", "tensor-trace");
    metadata("thread_name", "steps");
    const WriteResult walked = rows_.for_each_step(
        [&](const StepRows& step) -> WriteResult {
          const auto text = text_of_tokens(rows_.reader(), *step.scope.step);
          if (!text) return std::unexpected(text.error());
          add(slices_.of(step), *text);
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
  void metadata(const char* what, const char* name) {
    event(R"("ph":"M","name":"{}",{},"args":{{"name":"{}"}})", what, kTrack, name);
  }
  void slice(std::string_view name, const char* category, const Slice& time,
             const std::string& args) {
    event(R"("ph":"X",{},"cat":"{}","ts":{},"dur":{},"name":{},"args":{{{}}})", kTrack, category,
          microseconds(time.begin), microseconds(time.end - time.begin), json_text(name), args);
  }
  // 's' starts a flow, 'f' ends it, each at the slice that contains `ns`.
  void flow(char phase, std::uint64_t id, std::int64_t ns) {
    event(R"("ph":"{}","id":{},"name":"next step","cat":"flow",{},"ts":{}{})", phase, id, kTrack,
          microseconds(ns), phase == 'f' ? R"(,"bp":"e")" : "");
  }
  void counter(const char* name, std::int64_t ns, const std::string& values) {
    event(R"("ph":"C","name":"{}",{},"ts":{},"args":{{{}}})", name, kTrack, microseconds(ns),
          values);
  }

  void add(const StepSlice& step, const std::string& text) {
    slice(std::format("step {} ({})", step.step->id.v, to_text(step.step->phase)), "step",
          step.time,
          std::format(R"("step":{},"phase":"{}","timing":"{}","token_id":{},"token_count":{},)"
                      R"("text":{},"bytes_read":{},"bytes_written":{})",
                      step.step->id.v, to_text(step.step->phase), to_text(step.step->timing),
                      step.step->first_token, step.step->n_tokens, json_text(text), step.read.v,
                      step.written.v));
    // The token that one step produces is evaluated in the next.
    if (last_step_ >= 0) {
      flow('s', step.step->id.v, last_step_);
      flow('f', step.step->id.v, step.time.begin);
    }
    last_step_ = step.time.begin;
    for (const OpSlice& op : step.ops)
      slice(op.label, "op", op.time,
            std::format(R"("bytes_read":{},"bytes_written":{})", op.read.v, op.written.v));
    counter("bytes per second", step.time.begin,
            std::format(R"("read":{:.0f},"written":{:.0f})", per_second(step.read, step.time),
                        per_second(step.written, step.time)));
    counter("bytes per second", step.time.end, R"("read":0,"written":0)");
    counter("tokens", step.time.end, std::format(R"("tokens":{})", step.tokens));
  }

  static constexpr const char* kTrack = R"("pid":1,"tid":1)";  // the only one

  SessionRows& rows_;
  BufferedSink out_;
  Slices slices_;
  std::int64_t last_step_ = -1;
  bool first_ = true;
};

}  // namespace

WriteResult export_chrome(SessionRows& rows, const ByteSink& sink,
                          const ContinueCheck& keep_going) {
  const auto compressed = GzipSink::open(sink);
  if (!compressed) return std::unexpected(compressed.error());
  const ByteSink plain = [&](std::string_view bytes) { return (*compressed)->write(bytes); };
  if (WriteResult written = ChromeTrace(rows, plain).write(keep_going); !written) return written;
  return (*compressed)->close();
}

}  // namespace tt::exchange
