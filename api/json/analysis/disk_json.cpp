#include "api/json/analysis/disk_json.h"
#include "tracer/format/model/name_of.h"

#include <array>
#include <utility>

namespace tt {

namespace {

Json tally_json(const DiskTally& tally) {
  return {{"reads", tally.reads},
          {"bytes_read", tally.bytes.v},
          {"sequential_reads", tally.sequential},
          {"sequential_bytes", tally.sequential_bytes.v}};
}

const char* clock_text(DiskReads::Clock clock) {
  static constexpr std::array kWords = {"unknown", "given", "page faults"};
  return name_of(kWords, clock);
}

}  // namespace

Json to_json(const DiskReads& reads, const TracedDisk& disk) {
  Json total = tally_json(reads.total);
  total.update({{"distinct_bytes", reads.distinct.v},
                {"readahead_bytes", reads.readahead.v},
                {"unused_bytes", reads.unused.v},
                {"outside_tensors_bytes", reads.outside_tensors.v},
                {"other_files_bytes", reads.other.v},
                {"reads_outside_session", reads.reads_outside},
                {"latency_ns", optional_json(reads.latency_ns)}});
  Json tensors = Json::array(), steps = Json::array();
  for (const DiskReads::OfTensor& of : reads.tensors) {
    tensors.push_back({{"tensor_name", of.tensor},
                       {"layer_id", layer_json(of.layer)},
                       {"model_file", of.file.file},
                       {"file_offset", of.file.offset},
                       {"size_bytes", of.file.length},
                       {"reads", of.reads},
                       {"bytes_read", of.bytes.v},
                       {"distinct_bytes", of.distinct.v},
                       {"major_faults", of.faults}});
  }
  for (const DiskReads::OfStep& of : reads.steps) {
    Json row = {{"step", of.step.v}, {"phase", to_text(of.phase)}};
    row.update(tally_json(of.reads));
    row.update({{"mapped_bytes", of.used.v},
                {"major_faults", of.faults},
                {"disk_read_bytes", optional_json(of.disk_read_bytes)}});
    steps.push_back(std::move(row));
  }
  return {{"disk", to_text(disk.id)},
          {"action", std::string(1, disk.action)},
          {"clock",
           {{"source", clock_text(reads.clock)},
            {"offset_ns",
             reads.clock == DiskReads::Clock::Unknown ? Json() : Json(reads.clock_offset_ns)},
            {"faults_compared", reads.faults_compared},
            {"faults_agreeing", reads.faults_agreeing}}},
          {"reads", std::move(total)},
          {"session",
           {{"mapped_bytes", reads.used.v},
            {"major_faults", reads.faults},
            {"faults_in_model_files", reads.faults_with_place},
            {"faults_explained", reads.faults_explained},
            {"disk_read_bytes", optional_json(reads.disk_read_bytes)}}},
          {"reread_factor", optional_json(reads.use().reread_factor())},
          {"bytes_per_fault", optional_json(reads.use().bytes_per_fault())},
          {"tensors", std::move(tensors)},
          {"steps", std::move(steps)}};
}

}  // namespace tt
