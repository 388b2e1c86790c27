#include "analysis/disk/disk_reads.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/common/file_bytes.h"
#include "analysis/common/walk_steps.h"
#include "tracer/format/model/quantile.h"

namespace tt {

namespace {

// Further apart, a fault and the end of a request do not belong together.
constexpr std::int64_t kTolerance = 1'000'000;

// A request with bytes of model files.
struct ModelRead {
  const DiskRead* request = nullptr;
  std::vector<FileRange> parts;  // by place on the disk
  std::int64_t end_ns() const { return request->completed_ns.value_or(request->issued_ns); }
};

struct LocatedFault {
  StepId step;
  std::int64_t at = 0;  // session time
  FileRange byte;       // empty: not of a model file
};

// Which requests read a byte of a file, by position.
class ReadIndex {
 public:
  explicit ReadIndex(const std::vector<ModelRead>& reads) {
    for (std::uint32_t read = 0; read < reads.size(); ++read)
      for (const FileRange& part : reads[read].parts) parts_.push_back({part, read});
    std::ranges::sort(parts_, {}, [](const Part& part) {
      return std::tuple(part.range.file, part.range.offset, part.read);
    });
    for (const Part& part : parts_) longest_ = std::max(longest_, part.range.length);
  }
  // Calls `read` with the index of each request that has the byte.
  template <class Read>
  void for_each_with(const FileRange& byte, Read read) const {
    const std::uint64_t from = byte.offset - std::min(byte.offset, longest_);
    auto part = std::ranges::lower_bound(
        parts_, std::tuple(byte.file, from), {},
        [](const Part& p) { return std::tuple(p.range.file, p.range.offset); });
    for (;
         part != parts_.end() && part->range.file == byte.file && part->range.offset <= byte.offset;
         ++part)
      if (byte.offset - part->range.offset < part->range.length) read(part->read);
  }

 private:
  struct Part {
    FileRange range;
    std::uint32_t read = 0;
  };
  std::vector<Part> parts_;
  std::uint64_t longest_ = 0;
};

// The weights of the session's graphs, by place in the files.
class TensorPlaces {
 public:
  void add(const GraphTemplate& graph) {
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.kind != TensorKind::Weight || tensor.view_of != kNoTensor || tensor.file.empty())
        continue;
      places_.try_emplace(std::pair(tensor.file.file, tensor.file.offset),
                          DiskReads::OfTensor{.tensor = tensor.name,
                                              .file = tensor.file,
                                              .layer = tensor.layer,
                                              .reads = 0,
                                              .bytes = {},
                                              .distinct = {},
                                              .faults = 0});
    }
  }
  // Calls `part` for each tensor with a part of the range. Returns the bytes of no tensor.
  template <class Part>
  std::uint64_t split(const FileRange& range, Part part) {
    std::uint64_t rest = range.length;
    auto place = places_.upper_bound({range.file, range.offset});
    if (place != places_.begin()) --place;
    const std::uint64_t end = range.offset + range.length;
    for (; place != places_.end() && place->first < std::pair(range.file, end); ++place) {
      const FileRange& file = place->second.file;
      if (file.file != range.file) continue;
      const std::uint64_t from = std::max(range.offset, file.offset);
      const std::uint64_t to = std::min(end, file.offset + file.length);
      if (from >= to) continue;
      rest -= std::min(rest, to - from);
      part(place->second, FileRange{range.file, from, to - from});
    }
    return rest;
  }
  std::vector<DiskReads::OfTensor> take() {
    std::vector<DiskReads::OfTensor> all;
    for (auto& [at, tensor] : places_)
      if (tensor.reads > 0 || tensor.faults > 0) all.push_back(std::move(tensor));
    std::ranges::stable_sort(all,
                             [](const auto& a, const auto& b) { return a.bytes.v > b.bytes.v; });
    return all;
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, DiskReads::OfTensor> places_;
};

// The byte of a model file that is mapped to an address.
class AddressPlaces {
 public:
  AddressPlaces(const GraphTemplate& graph, const Allocation& allocation) {
    for (std::size_t i = 0; i < graph.tensors.size() && i < allocation.addresses.size(); ++i) {
      const Tensor& tensor = graph.tensors[i];
      if (tensor.kind == TensorKind::Weight && tensor.view_of == kNoTensor &&
          tensor.source == Source::Disk && !tensor.file.empty() && allocation.addresses[i] != 0)
        weights_.emplace_back(allocation.addresses[i], tensor.file);
    }
    std::ranges::sort(weights_, {}, &std::pair<std::uint64_t, FileRange>::first);
  }
  FileRange of(std::uint64_t address) const {
    auto weight = std::ranges::upper_bound(weights_, address, {},
                                           &std::pair<std::uint64_t, FileRange>::first);
    if (weight == weights_.begin()) return {};
    --weight;
    const std::uint64_t at = address - weight->first;
    if (at >= weight->second.length) return {};
    return {weight->second.file, weight->second.offset + at, 1};
  }

 private:
  std::vector<std::pair<std::uint64_t, FileRange>> weights_;
};

// The steps of the session: what they used, and their faults.
struct Recorded {
  std::vector<DiskReads::OfStep> steps;
  std::vector<std::int64_t> ends;  // of the steps
  std::vector<LocatedFault> faults;
  FileBytes used;
};

std::expected<Recorded, TraceError> read_session(const SessionReader& reader, TensorPlaces& tensors,
                                                 const ContinueCheck& keep_going) {
  Recorded session;
  const auto count = reader.step_rows();
  if (!count) return std::unexpected(count.error());
  const auto ids = reader.template_ids();
  if (!ids) return std::unexpected(ids.error());
  for (const TemplateId id : *ids) {
    const auto graph = reader.graph(id);
    if (!graph) return std::unexpected(graph.error());
    tensors.add(**graph);
  }
  std::vector<std::pair<TemplateId, AllocationId>> places_of;
  const auto read = walk_derived_steps(
      reader, {.from = 0, .limit = *count}, keep_going,
      [&](const DerivedPtr& derived, const Step& step) {
        DiskReads::OfStep of{.step = step.id,
                             .phase = step.phase,
                             .reads = {},
                             .used = {},
                             .faults = 0,
                             .disk_read_bytes = step.conditions.disk_read_bytes};
        if (derived != nullptr) {
          const GraphTemplate& graph = *derived->graph;
          FileBytes bytes;
          for_each_access(graph, derived->accesses, step, [&](const StepAccess& access) {
            bytes.add_reads(graph, access);
            session.used.add_reads(graph, access);
          });
          of.used = bytes.size();
        }
        session.steps.push_back(of);
        const std::int64_t before = session.ends.empty() ? 0 : session.ends.back();
        session.ends.push_back(std::max(before, step.end.v));
        places_of.emplace_back(step.graph, step.allocation);
      });
  if (!read) return std::unexpected(read.error());

  std::expected<void, TraceError> outcome;
  std::map<std::pair<TemplateId, AllocationId>, AddressPlaces> places;
  const auto faults = reader.for_each_faults(StepId{0}, *count, [&](const StepFaults& of_step) {
    if (!keep_going()) {
      outcome = std::unexpected(cancelled_error());
      return false;
    }
    if (of_step.step.v >= session.steps.size()) return true;
    session.steps[of_step.step.v].faults = of_step.count;
    const auto key = places_of[of_step.step.v];
    auto known = places.find(key);
    if (known == places.end() && key.first.v != 0 && key.second.v != 0) {
      const auto graph = reader.graph(key.first);
      const auto allocation = reader.allocation(key.second);
      if (!graph || !allocation) {
        outcome = std::unexpected(graph ? allocation.error() : graph.error());
        return false;
      }
      known = places.try_emplace(key, **graph, *allocation).first;
    }
    for (const PageFault& fault : of_step.faults) {
      session.faults.push_back(
          {.step = of_step.step,
           .at = fault.at.v,
           .byte = known == places.end() ? FileRange{} : known->second.of(fault.address)});
    }
    return true;
  });
  if (!faults) return std::unexpected(faults.error());
  if (!outcome) return std::unexpected(outcome.error());
  return session;
}

// What the clocks of the recording and of the session differ by, if this fault waited for a read
// that contains its byte.
struct ClockOffset {
  std::int64_t ns = 0;
  std::uint32_t fault = 0;
};

struct OffsetWindow {
  std::uint64_t faults = 0;  // distinct
  std::size_t first = 0, end = 0;
};

// The window of kTolerance with the most faults, of those without an offset from `from` to `to`.
OffsetWindow best_window(const std::vector<ClockOffset>& sorted, std::uint32_t faults,
                         std::int64_t from, std::int64_t to) {
  std::vector<std::uint32_t> inside(faults, 0);
  OffsetWindow best;
  std::size_t first = 0;
  std::uint64_t distinct = 0;
  for (std::size_t last = 0; last < sorted.size(); ++last) {
    distinct += inside[sorted[last].fault]++ == 0;
    while (sorted[last].ns - sorted[first].ns > kTolerance)
      distinct -= --inside[sorted[first++].fault] == 0;
    if (distinct <= best.faults || (sorted[last].ns >= from && sorted[first].ns <= to)) continue;
    best = {.faults = distinct, .first = first, .end = last + 1};
  }
  return best;
}

// The offset on which most faults agree. On a busy machine fewer than half of them continue within
// the tolerance; then no other offset may come close.
void align_clock(const std::vector<LocatedFault>& faults, const std::vector<ModelRead>& reads,
                 const ReadIndex& index, DiskReads& result) {
  constexpr std::size_t kMaxFaults = 2000;
  constexpr std::uint64_t kMinAgreeing = 3, kMinIfFewAgree = 10, kTimesTheNext = 3;
  std::vector<const LocatedFault*> with_reads;
  for (const LocatedFault& fault : faults) {
    bool found = false;
    if (!fault.byte.empty()) index.for_each_with(fault.byte, [&](std::uint32_t) { found = true; });
    if (found) with_reads.push_back(&fault);
  }
  const std::size_t every = std::max<std::size_t>(1, with_reads.size() / kMaxFaults);
  std::vector<ClockOffset> offsets;
  std::uint32_t compared = 0;
  for (std::size_t i = 0; i < with_reads.size(); i += every, ++compared) {
    index.for_each_with(with_reads[i]->byte, [&](std::uint32_t read) {
      offsets.push_back({with_reads[i]->at - reads[read].end_ns(), compared});
    });
  }
  result.faults_compared = compared;
  std::ranges::sort(offsets, {}, &ClockOffset::ns);
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  const OffsetWindow best = best_window(offsets, compared, kEnd, kEnd);
  result.faults_agreeing = best.faults;
  if (best.faults < kMinAgreeing) return;
  const std::int64_t offset = offsets[best.first + (best.end - best.first) / 2].ns;
  // Faults that continued later are near the best window.
  constexpr std::int64_t kNear = 100 * kTolerance;
  if (2 * best.faults < compared &&
      best.faults <
          std::max(kMinIfFewAgree,
                   kTimesTheNext *
                       best_window(offsets, compared, offset - kNear, offset + kNear).faults))
    return;
  result.clock = DiskReads::Clock::Faults;
  result.clock_offset_ns = offset;
}

}  // namespace

std::expected<DiskReads, TraceError> disk_reads(const SessionReader& reader,
                                                const std::vector<DiskRead>& requests,
                                                const ExtentMap& extents, const DiskQuery& query,
                                                const ContinueCheck& keep_going) {
  TensorPlaces tensors;
  auto session = read_session(reader, tensors, keep_going);
  if (!session) return std::unexpected(session.error());
  std::vector<ModelRead> reads;
  std::vector<std::pair<const DiskRead*, std::uint64_t>> others;  // with bytes of other files
  for (const DiskRead& request : requests) {
    ModelRead read{.request = &request, .parts = {}};
    const std::uint64_t length = request.sectors * kSectorBytes;
    std::uint64_t of_model = 0;
    extents.for_each(request.sector * kSectorBytes, length, [&](const FileRange& part) {
      read.parts.push_back(part);
      of_model += part.length;
    });
    if (of_model < length) others.emplace_back(&request, length - of_model);
    if (!read.parts.empty()) reads.push_back(std::move(read));
  }
  const ReadIndex index(reads);

  DiskReads result;
  if (query.clock_offset_ns) {
    result.clock = DiskReads::Clock::Given;
    result.clock_offset_ns = *query.clock_offset_ns;
  } else {
    align_clock(session->faults, reads, index, result);
  }
  const bool aligned = result.clock != DiskReads::Clock::Unknown;
  const auto session_time = [&](std::int64_t ns) {
    return (Ns{ns} + Ns{result.clock_offset_ns}).v;
  };
  // The step in whose interval a time is; the number of steps if it is outside.
  const auto step_at = [&](std::int64_t at) {
    if (at < 0) return session->ends.size();
    return static_cast<std::size_t>(std::ranges::lower_bound(session->ends, at) -
                                    session->ends.begin());
  };
  const std::size_t outside = session->ends.size();
  const auto step_of = [&](const DiskRead& request) {
    return aligned ? step_at(session_time(request.issued_ns)) : outside;
  };

  ReadHead head(kDefaultGap);
  FileBytes distinct, used_or_read = session->used;
  std::map<DiskReads::OfTensor*, FileBytes> tensor_bytes;
  std::vector<std::int64_t> latencies;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (i % 4096 == 0 && !keep_going()) return std::unexpected(cancelled_error());
    const ModelRead& read = reads[i];
    const std::size_t step = step_of(*read.request);
    if (aligned && step == outside) {
      ++result.reads_outside;
      continue;
    }
    const DiskTally one = head.read(read.parts);
    result.total.add(one);
    if (step != outside) session->steps[step].reads.add(one);
    if (read.request->completed_ns)
      latencies.push_back(*read.request->completed_ns - read.request->issued_ns);
    std::vector<DiskReads::OfTensor*> touched;
    for (const FileRange& part : read.parts) {
      distinct.add(part);
      used_or_read.add(part);
      if (read.request->readahead) result.readahead += Bytes{part.length};
      result.outside_tensors +=
          Bytes{tensors.split(part, [&](DiskReads::OfTensor& tensor, const FileRange& range) {
            tensor.bytes += Bytes{range.length};
            tensor_bytes[&tensor].add(range);
            if (!std::ranges::contains(touched, &tensor)) touched.push_back(&tensor);
          })};
    }
    for (DiskReads::OfTensor* tensor : touched) ++tensor->reads;
  }
  for (auto& [tensor, bytes] : tensor_bytes) tensor->distinct = bytes.size();
  for (const auto& [request, bytes] : others)
    if (!aligned || step_of(*request) != outside) result.other += Bytes{bytes};
  result.distinct = distinct.size();
  result.used = session->used.size();
  result.unused = Bytes{used_or_read.size().v - result.used.v};
  std::ranges::sort(latencies);
  result.latency_ns = quantile<std::int64_t>(latencies, 0.5);

  for (const LocatedFault& fault : session->faults) {
    if (fault.byte.empty()) continue;
    ++result.faults_with_place;
    tensors.split(fault.byte,
                  [](DiskReads::OfTensor& tensor, const FileRange&) { ++tensor.faults; });
    if (!aligned) continue;
    const std::int64_t from = fault.step.v < 2 ? std::numeric_limits<std::int64_t>::min()
                                               : session->ends[fault.step.v - 2];
    bool explained = false;
    index.for_each_with(fault.byte, [&](std::uint32_t read) {
      const std::int64_t at = session_time(reads[read].request->issued_ns);
      explained = explained || (at >= from && at <= fault.at + kTolerance);
    });
    result.faults_explained += explained;
  }
  std::uint64_t disk = 0;
  bool disk_recorded = !session->steps.empty();
  for (const DiskReads::OfStep& step : session->steps) {
    result.faults += step.faults;
    disk_recorded = disk_recorded && step.disk_read_bytes.has_value();
    disk += step.disk_read_bytes.value_or(0);
  }
  if (disk_recorded) result.disk_read_bytes = disk;
  result.tensors = tensors.take();
  if (aligned) result.steps = std::move(session->steps);
  return result;
}

}  // namespace tt
