#include "analysis/tables/session_conditions.h"

#include <algorithm>
#include <format>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/common/file_bytes.h"
#include "analysis/common/op_info.h"
#include "analysis/common/walk_steps.h"
#include "analysis/fields/fields.h"

namespace tt {

namespace {

// Durations of a damaged file may be negative, and their sum may exceed the type.
Ns wrapping_sum(Ns a, Ns b) {
  return Ns{
      static_cast<std::int64_t>(static_cast<std::uint64_t>(a.v) + static_cast<std::uint64_t>(b.v))};
}
Ns duration_of(const Step& step) {
  return Ns{static_cast<std::int64_t>(static_cast<std::uint64_t>(step.end.v) -
                                      static_cast<std::uint64_t>(step.begin.v))};
}

std::string conditions_text(const SessionConditions& of, const SessionInfo& info) {
  if (of.phases.empty()) return "";
  if (!of.verdict) {
    const std::string_view source = info.fact("trace.conditions");
    return source.empty() ? "unknown: the recording has no conditions of the machine."
                          : std::format("unknown: {}.", source);
  }
  std::string text = advice_on(*of.verdict, of.time, thread_room(info));
  std::uint32_t all = 0, clean = 0;
  for (const auto& [verdict, steps] : of.steps) {
    all += steps;
    if (verdict == Verdict::Clean) clean = steps;
  }
  // Some steps may differ from the session.
  if (const std::uint32_t others = all - clean; others > 0 || *of.verdict != Verdict::Clean) {
    text += std::format(" {} of {} {}", others, all, all == 1 ? "step" : "steps");
    text += others == 1 ? " is not clean" : " are not clean";
    std::string list;
    for (const auto& [verdict, steps] : of.steps)
      if (verdict != Verdict::Clean && of.steps.size() > 2)
        list += std::format("{}{} {}", list.empty() ? "" : ", ", steps, to_text(verdict));
    text += list.empty() ? "." : " (" + list + ").";
  }
  return text;
}

}  // namespace

void ConditionTally::add(const Step& step) {
  PhaseTimes& phase = sums_.phases[step.phase];
  const Ns took = duration_of(step);
  ++phase.steps;
  phase.tokens += step.n_tokens;
  phase.time = wrapping_sum(phase.time, took);
  const auto verdict = verdict_of(step.conditions, step.threads);
  (step.timing == Timing::Learned ? learned_ : sums_.time).add(step.conditions, step.threads);
  sums_.spent.add(step.conditions);
  if (verdict) {
    ++sums_.steps[*verdict];
  } else {
    ++sums_.unknown;
  }
  const bool disturbed = verdict && *verdict != Verdict::Clean;
  phase.disturbed += disturbed;
  phase.learned += step.timing == Timing::Learned;
  if (step.timing == Timing::Learned || step.dropped || step.aborted) return;
  if (disturbed && leave_out_ == LeaveOut::Disturbed) {
    ++phase.left_out;
    return;
  }
  ++phase.normal;
  phase.normal_tokens += step.n_tokens;
  phase.normal_time = wrapping_sum(phase.normal_time, took);
  durations_[step.phase].push_back(took);
}

SessionConditions ConditionTally::result(const SessionInfo& info) && {
  for (auto& [phase, durations] : durations_)
    sums_.phases[phase].spread = spread_of(std::move(durations));
  if (sums_.time.total_ns == 0) sums_.time = learned_;  // there are no others
  sums_.verdict = sums_.time.verdict();
  sums_.text = conditions_text(sums_, info);
  return std::move(sums_);
}

// Wraps: values of a damaged file may be of any size.
void SpentTime::add(const StepConditions& step) {
  const auto& [interval, queue, sample, detokenize, build, evaluate, graphs] =
      std::tie(step.interval_ns, step.queue_ns, step.sample_ns, step.detokenize_ns, step.build_ns,
               step.evaluate_ns, step.graphs_built);
  if (!interval || !queue || !sample || !detokenize || !build || !evaluate || !graphs) return;
  ++steps;
  graphs_built += *graphs;
  queue_ns += *queue;
  total_ns += *interval;
  sample_ns += *sample;
  detokenize_ns += *detokenize;
  build_ns += *build;
  evaluate_ns += *evaluate;
}

std::uint64_t SpentTime::other_ns() const {
  const std::uint64_t known = sample_ns + detokenize_ns + build_ns + evaluate_ns;
  return total_ns - std::min(total_ns, known);
}

namespace {

// Sets `mapped`. Steps of a template read the same bytes, except where a list selects them.
std::expected<void, TraceError> add_mapped(const SessionReader& reader, std::uint32_t steps,
                                           DiskUse& disk, const ContinueCheck& keep_going) {
  struct OfTemplate {
    std::vector<Access> listed{};
    std::size_t ran = 0;  // the most ops that a step so far executed
  };
  FileBytes mapped;
  std::map<TemplateId, OfTemplate> templates;
  const auto read = walk_derived_steps(
      reader, {.from = 0, .limit = steps}, keep_going,
      [&](const DerivedPtr& derived, const Step& step) {
        if (derived == nullptr) return;
        const GraphTemplate& graph = *derived->graph;
        const auto [at, fresh] = templates.try_emplace(step.graph);
        OfTemplate& of = at->second;
        for (std::size_t i = 0; fresh && i < derived->accesses.size(); ++i)
          if (const Access& access = derived->accesses[i];
              access.slot != kNoSlot && may_read_file(graph, access))
            of.listed.push_back(access);
        const std::size_t ran = step.ops_run(graph.ops.size());
        const bool more = ran > std::exchange(of.ran, std::max(ran, of.ran));
        for_each_access(graph, more ? derived->accesses : of.listed, step,
                        [&](const StepAccess& access) { mapped.add_reads(graph, access); });
      });
  disk.mapped = mapped.size().v;
  return read;
}

}  // namespace

std::expected<SessionConditions, TraceError> session_conditions(const SessionReader& reader,
                                                                LeaveOut leave_out,
                                                                const ContinueCheck& keep_going) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const auto total = reader.step_count();
  if (!total) return std::unexpected(total.error());
  ConditionTally tally(leave_out);
  DiskUse disk;
  bool cancelled = false;
  const auto read =
      reader.for_each_step_row(StepId{0}, *total, [&](const SessionReader::StepRow& row) {
        cancelled = !keep_going();
        if (cancelled) return false;
        tally.add(row.head);
        disk.read += row.head.conditions.disk_read_bytes.value_or(0);
        disk.faults += row.head.conditions.major_faults.value_or(0);
        return true;
      });
  if (!read) return std::unexpected(read.error());
  if (cancelled) return std::unexpected(cancelled_error());
  SessionConditions result = std::move(tally).result(*info);
  if (disk.read == 0) return result;
  if (const auto added = add_mapped(reader, *total, disk, keep_going); !added)
    return std::unexpected(added.error());
  result.disk = disk;
  return result;
}

namespace {

std::optional<double> percent_of(double part, double of) {
  return of > 0 ? std::optional(100 * part / of) : std::nullopt;
}

template <auto part>
std::optional<double> thread_percent(const SessionConditions& of) {
  return percent_of(static_cast<double>(of.time.*part), static_cast<double>(of.time.total_ns));
}

std::map<std::string, std::uint32_t> steps_by_verdict(const SessionConditions& of) {
  std::map<std::string, std::uint32_t> steps;
  for (int i = 0; i <= static_cast<int>(Verdict::Disk); ++i) {
    const auto found = of.steps.find(static_cast<Verdict>(i));
    steps.emplace(to_text(static_cast<Verdict>(i)), found == of.steps.end() ? 0 : found->second);
  }
  steps.emplace("unknown", of.unknown);
  return steps;
}

std::vector<std::string> verdict_names() {
  std::vector<std::string> names = fields::list_of(columns::kVerdicts);
  names.emplace_back("unknown");
  return names;
}

}  // namespace

static Fields<DiskUse> fields_of(const DiskUse*) {
  return Fields<DiskUse>()
      .add("read_bytes", "", &DiskUse::read, {.unit = "bytes"})
      .add("mapped_bytes",
           "bytes of the mapped model files that the session used, each counted once",
           &DiskUse::mapped, {.unit = "bytes"})
      .add("reread_factor", "read_bytes / mapped_bytes: how often each of these bytes was read",
           &DiskUse::reread_factor, {.null = "no mapped weights"})
      .add("major_faults", "", &DiskUse::faults)
      .add("bytes_per_fault", "what the kernel read (readahead) per page that was waited for",
           &DiskUse::bytes_per_fault, {.unit = "bytes", .null = "no page faults"});
}

static Fields<SpentTime> fields_of(const SpentTime*) {
  const fields::Notes ns{.unit = "ns"};
  return Fields<SpentTime>()
      .add("steps", "steps with all of these values", &SpentTime::steps)
      .add("graphs_built",
           "graphs that were built; the other steps used that of the step before again",
           &SpentTime::graphs_built)
      .add("queue_ns", "waiting for other requests, before the session; not a part of total_ns",
           &SpentTime::queue_ns, ns)
      .add("total_ns",
           "from the start of the session to the end of the last step: the sum of the "
           "following",
           &SpentTime::total_ns, ns)
      .add("sample_ns", "choosing tokens", &SpentTime::sample_ns, ns)
      .add("detokenize_ns", "converting tokens to text", &SpentTime::detokenize_ns, ns)
      .add("build_ns", "building graphs or finding them again, memory for them, their inputs",
           &SpentTime::build_ns, ns)
      .add("evaluate_ns", "running the graphs", &SpentTime::evaluate_ns, ns)
      .add("other_ns", "everything else: recording, passing tokens on", &SpentTime::other_ns, ns);
}

static Fields<PhaseTimes> fields_of(const PhaseTimes*) {
  return Fields<PhaseTimes>()
      .add("steps", "", &PhaseTimes::steps)
      .add("tokens", "", &PhaseTimes::tokens)
      .add("duration_ns", "sum over all steps", &PhaseTimes::time)
      .add("normal_steps", "steps that were not learned, dropped, aborted or left out",
           &PhaseTimes::normal)
      .add("normal_tokens", "", &PhaseTimes::normal_tokens)
      .add("normal_ns", "sum over the normal steps", &PhaseTimes::normal_time)
      .add("learned_steps", "steps with a new graph, which the recording slowed down",
           &PhaseTimes::learned)
      .add("disturbed_steps", "steps whose verdict is not clean", &PhaseTimes::disturbed)
      .add("left_out_steps", "with clean=true: disturbed steps that would be normal",
           &PhaseTimes::left_out)
      .add("step_ns", "durations of the normal steps, nearest rank", &PhaseTimes::spread,
           {.null = "there are none"});
}

Fields<SessionConditions> fields_of(const SessionConditions*) {
  return Fields<SessionConditions>("Conditions")
      .add("verdict", "of the whole session", &SessionConditions::verdict,
           {.null = "the conditions were not recorded"})
      .add("text", "the verdict with its evidence and what to do, in one line",
           &SessionConditions::text)
      .add("steps", "number of steps by their own verdict; unknown: without recorded conditions",
           steps_by_verdict, {.names = verdict_names()})
      .add("cpu_percent",
           "share of the time of the evaluating threads that they were on a processor; this "
           "and the following are of the steps that were not learned, if there are any",
           thread_percent<&ThreadTime::cpu_ns>, {.null = "not recorded"})
      .add("cpu_wait_percent", "share that they waited for a processor",
           thread_percent<&ThreadTime::wait_ns>, {.null = "not recorded"})
      .add("throttled_percent", "share that a CPU limit stopped them",
           thread_percent<&ThreadTime::throttled_ns>, {.null = "not recorded"})
      .add("blocked_percent", "share that they did none of these in steps with major page faults",
           thread_percent<&ThreadTime::blocked_ns>, {.null = "not recorded"})
      .add("disk", "what the process read from disks during the steps", &SessionConditions::disk,
           {.null = "nothing, or it was not recorded"})
      .add("spent", "what the time of the session was spent on, without overlap",
           [](const SessionConditions& of) {
             return of.spent.steps == 0 ? std::nullopt : std::optional(of.spent);
           },
           {.null = "not recorded"})
      .add("phases", "by phase", &SessionConditions::phases);
}

}  // namespace tt
