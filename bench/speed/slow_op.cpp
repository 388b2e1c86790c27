#include "bench/speed/slow_op.h"

#include <cstdlib>

#include "analysis/common/op_info.h"
#include "tracer/format/file/session_reader.h"

namespace tt::bench {

std::vector<bool> ops_of_kind(const BenchSetup& setup, BenchWatch& watch, std::string_view kind) {
  const auto round = measure_round(setup, watch, 0);
  if (!round) std::abort();
  const auto reader = SessionReader::open(round->session);
  if (!reader) std::abort();
  const auto step = reader->step(round->tests.at(0).recorded_steps[0].first);
  if (!step) std::abort();
  const auto graph = reader->graph(step->graph);
  if (!graph) std::abort();
  std::vector<bool> of_kind;
  for (const Op& op : (*graph)->ops) of_kind.push_back(op_name(**graph, op) == kind);
  return of_kind;
}

}  // namespace tt::bench
