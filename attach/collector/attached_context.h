// The session of one context of a traced program: what its scheduler in ggml evaluated, as a
// .ttrace file. One thread.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attach/collector/records.h"
#include "tracer/format/file/session_writer.h"
#include "tracer/format/model/session.h"
#include "tracer/gguf/gguf_index.h"
#include "tracer/gguf/mapped_files.h"
#include "tracer/gguf/vocabulary.h"
#include "tracer/recorder/page_faults.h"

namespace tt::attach {

// What a context has in common with the others of its process.
struct ProgramFacts {
  std::vector<std::string> command;
  std::int64_t pid = 0;
  std::uint32_t context = 0;  // number in the program, from 1
  FoundLibrary library;
  std::vector<std::string> models;  // GGUF files that it has opened
  std::string maps;                 // lines of its /proc/PID/maps
  std::string faults;               // source of page faults
};

class AttachedContext {
 public:
  // The model is found by the addresses of the weights of `graph`, else by their names and shapes.
  static std::expected<std::unique_ptr<AttachedContext>, std::string> create(
      const std::filesystem::path& folder, const ProgramFacts& program, const ListedGraph& graph);

  void add(const ListedGraph& graph);
  // `faults`: those since the last step, as PageFaults::take(); those of this step are removed.
  void add(const RunStep& step, std::vector<PageFault>& faults);
  void commit();
  // The last call. `state`: Done, or Failed if the program was killed.
  void finish(SessionState state, const std::string& error, std::uint64_t steps_lost,
              std::uint64_t faults_lost);

  const std::filesystem::path& file() const { return file_; }
  const std::string& model() const { return model_; }
  struct Written {
    std::uint32_t steps = 0, tokens = 0, generated = 0;
  };
  const Written& written() const { return written_; }  // and committed
  const LossCounters& losses() const { return losses_; }
  const std::string& error() const { return error_; }  // the first one of the file

 private:
  struct Known {  // a graph of the program
    TemplateId id;
    AllocationId allocation;
    bool in_file = false;
    std::shared_ptr<const GraphTemplate> graph;
    std::map<std::uint32_t, std::uint32_t> slots;  // by tensor
    std::vector<std::uint64_t> addresses;
  };

  AttachedContext() = default;
  void find_model(const ProgramFacts& program, const RawGraph& graph);
  void describe(const ProgramFacts& program);
  void add_tokens(const GraphTemplate& graph, Step& step);
  void take_conditions(const StepRecord& record, Step& step);
  void keep(std::expected<void, TraceError> done);
  bool writing() const { return writer_ != nullptr && error_.empty(); }

  std::filesystem::path file_;
  std::string model_;  // file name; empty: not found
  GgufIndex index_;
  MappedFiles mapped_;
  std::optional<Vocabulary> vocabulary_;
  SessionInfo info_;
  std::unique_ptr<SessionWriter> writer_;
  std::int64_t epoch_ns_ = 0;
  std::map<std::uint32_t, Known> graphs_;  // by the program's number
  std::uint32_t templates_ = 0, allocations_ = 0;
  std::uint32_t next_step_ = 0, next_token_ = 0, generated_ = 0;
  Written written_, uncommitted_;
  std::optional<StepRecord> last_record_;
  OffsetCoverage coverage_;
  BufferSizes buffers_;
  LossCounters losses_;
  std::string error_;
};

}  // namespace tt::attach
