// The records of a ring as values. Everything that a record says is checked: the program that wrote
// it may have damaged its own memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attach/agent/ring_format.h"
#include "tracer/format/model/step.h"
#include "tracer/probe/raw_graph.h"
#include "tracer/probe/template_builder.h"

namespace tt::attach {

struct ListedGraph {
  GraphRecord head;
  RawGraph graph;
  std::vector<OpSpan> ops;
  std::vector<std::string> backends;  // of its scheduler
};

struct CopiedList {
  std::uint32_t tensor = 0;  // of the graph
  bool first_cells = false;  // of a mask, not a list of the step
  SlotValues values;
};

struct RunStep {
  StepRecord head;
  std::vector<std::int64_t> times;
  std::vector<SplitRecord> splits;
  std::vector<CopyRecord> copies;  // as many as all splits have
  std::vector<CopiedList> lists;
};

struct FoundLibrary {
  LibraryRecord head;
  std::string version, path;
};

// nullopt: the record is damaged. `body`: without the RecordHead.
std::optional<ListedGraph> parse_graph(std::span<const std::byte> body);
std::optional<RunStep> parse_step(std::span<const std::byte> body);
std::optional<FoundLibrary> parse_library(std::span<const std::byte> body);
std::optional<std::string> parse_text(std::span<const std::byte> body);
std::optional<SchedulerRecord> parse_scheduler(std::span<const std::byte> body);

}  // namespace tt::attach
