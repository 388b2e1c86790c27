// Reference implementation of the SQL tables of a session: reads every step, walks every
// access and computes every column without the code under test.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <vector>

#include "tests/analysis/sql/sql_line.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {

// The complete contents of a session file.
struct SessionContents {
  explicit SessionContents(const std::filesystem::path& file)
      : reader(SessionReader::open(file).value()), info(reader.info().value()) {
    for (std::uint32_t i = 0; i < reader.step_count().value(); ++i)
      steps.push_back(reader.step(StepId{i}).value());
    for (const TemplateId id : reader.template_ids().value())
      graphs[id] = *reader.graph(id).value();
  }
  const GraphTemplate* graph_of(const Step& step) const {
    return step.graph.v == 0 ? nullptr : &graphs.at(step.graph);
  }
  SessionReader reader;
  SessionInfo info;
  std::vector<Step> steps;
  std::map<TemplateId, GraphTemplate> graphs;
};

struct NaiveTable {
  const char* name;
  Lines (*rows)(const SessionContents& all);
};
std::span<const NaiveTable> naive_tables();

}  // namespace tt::test
