#include "analysis/backends/split_times.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/common/verdict_counts.h"
#include "analysis/fields/fields.h"

namespace tt {

namespace {

struct Sums {
  std::map<std::pair<Phase, std::string>, BackendTime> backends;
  std::map<std::tuple<Phase, std::string, std::string>, BackendTransfer> transfers;

  void add(Phase phase, const StepSplits& of) {
    std::set<std::string> seen;
    for (const BackendSplit& split : of.splits) {
      const std::string& name = of.backends[split.backend];
      BackendTime& backend = backends[{phase, name}];
      backend.steps += seen.insert(name).second ? 1U : 0U;
      ++backend.splits;
      backend.ops += split.ops;
      backend.time = backend.time + (split.done.value_or(split.end) - split.begin);
      backend.not_waited += split.done ? 0U : 1U;
      for (const BackendCopy& copy : split.copies) {
        const std::string from = copy.from == kNone ? "" : of.backends[copy.from];
        BackendTransfer& transfer = transfers[{phase, from, name}];
        ++transfer.copies;
        transfer.bytes += Bytes{copy.bytes};
        transfer.time = transfer.time + (copy.end - copy.begin - copy.wait);
        transfer.wait = transfer.wait + copy.wait;
        transfer.not_waited += copy.complete ? 0U : 1U;
      }
    }
  }
};

}  // namespace

std::expected<SplitTimes, TraceError> split_times(const SessionReader& reader,
                                                  const ContinueCheck& keep_going) {
  SplitTimes out;
  Sums sums;
  VerdictCounts verdicts;
  std::expected<void, TraceError> stopped;
  const auto walked = reader.for_each_splits(StepId{0}, UINT32_MAX, [&](const StepSplits& of) {
    if (!keep_going()) {
      stopped = std::unexpected(cancelled_error());
      return false;
    }
    const auto step = reader.step(of.step);
    if (!step) {
      stopped = std::unexpected(step.error());
      return false;
    }
    ++out.total;
    out.time = out.time + (step->end - step->begin);
    sums.add(step->phase, of);
    verdicts.add(verdict_of(step->conditions, step->threads));
    return true;
  });
  if (!stopped) return std::unexpected(stopped.error());
  if (!walked) return std::unexpected(walked.error());
  out.disturbed = verdicts.disturbed();
  out.verdict = out.disturbed > 0 ? verdicts.of_disturbed() : verdicts.of_undisturbed();
  for (auto& [key, backend] : sums.backends) {
    backend.phase = key.first;
    backend.backend = key.second;
    out.backends.push_back(std::move(backend));
  }
  for (auto& [key, transfer] : sums.transfers) {
    std::tie(transfer.phase, transfer.from, transfer.to) = key;
    out.transfers.push_back(std::move(transfer));
  }
  std::ranges::stable_sort(out.backends, [](const BackendTime& a, const BackendTime& b) {
    return a.phase != b.phase ? a.phase < b.phase : a.time > b.time;
  });
  std::ranges::stable_sort(out.transfers, [](const BackendTransfer& a, const BackendTransfer& b) {
    return a.phase != b.phase ? a.phase < b.phase : a.bytes > b.bytes;
  });
  return out;
}

static Fields<BackendTime> fields_of(const BackendTime*) {
  return Fields<BackendTime>("BackendTime")
      .add("phase", "of the steps", &BackendTime::phase)
      .add("backend", "its name in ggml: CPU, CUDA0, ...", &BackendTime::backend)
      .add("steps", "that ran a part of their graph on it", &BackendTime::steps)
      .add("splits", "parts of graphs", &BackendTime::splits)
      .add("ops", "of these", &BackendTime::ops)
      .add("time_ns",
           "from the begin of each split to the first wait for the backend that returned",
           &BackendTime::time)
      .add("not_waited",
           "splits without such a wait: their time ends with the call that started them, and "
           "the device may have needed longer",
           &BackendTime::not_waited);
}

static Fields<BackendTransfer> fields_of(const BackendTransfer*) {
  return Fields<BackendTransfer>("BackendTransfer")
      .add("phase", "of the steps", &BackendTransfer::phase)
      .add("from", "backend; empty: not known", &BackendTransfer::from)
      .add("to", "backend", &BackendTransfer::to)
      .add("copies", "tensors", &BackendTransfer::copies)
      .add("bytes", "", &BackendTransfer::bytes)
      .add("time_ns", "of the calls that copy, without the waits", &BackendTransfer::time)
      .add("wait_ns", "for the end of what computes the tensor or uses its copy",
           &BackendTransfer::wait)
      .add("not_waited",
           "copies that a device makes later: their time is that of the calls that ask for them",
           &BackendTransfer::not_waited);
}

Fields<SplitTimes> fields_of(const SplitTimes*) {
  return Fields<SplitTimes>("SplitTimes")
      .add("total", "steps with splits; the other fields are of these", &SplitTimes::total)
      .add("time_ns", "of the steps", &SplitTimes::time)
      .add("disturbed", "of the steps, those whose verdict is not clean; all sums include them",
           &SplitTimes::disturbed)
      .add("verdict",
           "of the steps; the most frequent one of the disturbed steps, if there are any",
           &SplitTimes::verdict, {.null = "not recorded"})
      .add("backends", "by phase, then the longest time first", &SplitTimes::backends)
      .add("transfers", "by phase, then the most bytes first", &SplitTimes::transfers);
}

}  // namespace tt
