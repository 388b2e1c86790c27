// The sessions of one context of a traced program: what its scheduler in ggml evaluated, as
// .ttrace files. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attach/collector/cache_sequences.h"
#include "attach/collector/prompt_history.h"
#include "attach/collector/records.h"
#include "attach/collector/request_tracker.h"
#include "tracer/format/file/session_writer.h"
#include "tracer/format/model/server_slots.h"
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
  std::string name;           // of the process: the file name of its program
  std::uint32_t context = 0;  // number in the program, from 1
  FoundLibrary library;
  std::vector<std::string> models;  // GGUF files that it has opened
  std::string maps;                 // lines of its /proc/PID/maps
  std::string faults;               // their source (PageFaults::source())
  // Of what was measured of the machine (tracer/engine/machine_rate.h), which is only looked up:
  // the program would disturb a measurement. Empty: there is none.
  std::filesystem::path machine_folder;
};

// The tokens of a step, one sequence after the other.
struct StepTokens {
  const std::vector<std::int64_t>* ids = nullptr;  // null: none
  std::vector<BatchToken> batch;
  std::vector<TokenRun> runs;
  StepCells cells;                                    // empty lists: not known
  std::vector<std::array<std::int64_t, 2>> attended;  // the list that `cells` refers to
  std::vector<std::uint32_t> in_cache;                // of each token; empty: not known
};

// What became of a session, for the user.
struct EndedSession {
  std::filesystem::path file;                          // empty: it could not be created
  std::int64_t start_utc_ns = 0;                       // Unix time
  std::uint32_t steps = 0, tokens = 0, generated = 0;  // in the file
  std::uint32_t requests = 0;
  std::optional<std::int64_t> slowest_ns_per_token;  // of its requests
  LossCounters losses;
  std::string error;  // the first one of the file
};

// Its sessions follow each other: one, or one per request.
class AttachedContext {
 public:
  // The model is found by the addresses of the weights of `graph`, else by their names and shapes.
  AttachedContext(const ProgramFacts& program, const ListedGraph& graph);

  const std::string& model() const { return model_; }  // file name; empty: not found
  bool is_draft() const { return draft_; }
  // Begin of the names of its sessions.
  const std::string& name() const { return info_.id; }

  void add(const ListedGraph& graph);

  // Whether the step begins another request, and those of the open session are over. Unknown: a
  // request in another stream of the cache may go on, which the next steps show.
  enum class EndsBefore { No, Unknown, Yes };
  EndsBefore ends_before(const RunStep& step) const;
  // Whether the requests of the open session are over, of which `waiting` has no token: steps for
  // which ends_before() was Unknown, and those since then. `next` follows them.
  EndsBefore ends_before(std::span<const RunStep> waiting, const RunStep& next) const;
  // Whether it is one of the steps with which llama.cpp's programs warm up and test a context.
  bool is_warm_up(const RunStep& step) const;

  bool is_open() const { return session_.has_value(); }
  // Creates a session file that begins with this step. `request`: its number, a part of the name;
  // nullopt: the session has all steps of the context. An error is also that of the session, whose
  // steps are then counted.
  std::expected<void, std::string> open(const std::filesystem::path& folder, const RunStep& first,
                                        std::optional<std::uint32_t> request);
  // To the open session. `faults`: those since the last step, as PageFaults::take(); those of this
  // step are removed.
  void add(const RunStep& step, std::vector<PageFault>& faults);
  void commit();
  // Steps were not recorded.
  void forget_cache() {
    prompts_.forget();
    cache_.forget();
    requests_.forget_cache();
  }
  // CLOCK_MONOTONIC; of the open session.
  std::int64_t last_end() const { return last_end_; }
  // Of the open session.
  const std::string& session_id() const { return session_->info.id; }
  // The open session is of a target: the session of its draft model.
  void set_draft_session(const std::string& id);
  // Ends the open session. `state`: Done, or Failed if the program was killed.
  EndedSession finish(SessionState state, const std::string& error, std::uint64_t steps_lost,
                      std::uint64_t faults_lost);

 private:
  struct Known {  // a graph of the program
    std::shared_ptr<const GraphTemplate> graph;
    std::uint32_t allocation = 0;                  // number in the context
    std::map<std::uint32_t, std::uint32_t> slots;  // by tensor
    std::vector<std::uint64_t> addresses;
    std::vector<std::string> backends;
    bool has_cache = false;
    // Where tokens are in the cache; nullopt: the graph does not tell.
    struct CacheLists {
      std::uint32_t own = 0,
                    mask = 0;  // tensors; without a list of first cells if there is no mask
      std::int64_t per_stream = 0, streams = 0;
    };
    std::optional<CacheLists> cache;
  };
  struct Counts {
    std::uint32_t steps = 0, tokens = 0, generated = 0;
  };
  struct Session {
    SessionInfo info;
    std::uint32_t threads = 0;  // of the last step
    std::filesystem::path file;
    std::unique_ptr<SessionWriter> writer;  // null: it could not be created
    std::int64_t epoch_ns = 0;
    std::map<const GraphTemplate*, TemplateId> templates;  // in the file
    std::map<std::uint32_t, AllocationId> allocations;
    Ns prompt_end{};          // of the last step with tokens of a prompt
    Counts added, committed;  // added: also those that could not be written
    std::optional<StepRecord> last_record;
    // Token::sequence of each request of the tracker. A warm-up has none.
    std::map<std::uint32_t, std::uint32_t> sequences;
    ServerSlots slots;            // of the first sequences
    std::uint32_t by_splits = 0;  // steps that were recorded by splits
    std::size_t reused = 0;       // tokens
    // By request: the tokens of its last batch, whose draft the next one shows the result of.
    std::map<std::uint32_t, std::vector<Token>> last_batch;
    LossCounters losses;
    std::string error;
    bool writing() const { return writer != nullptr && error.empty(); }
    void keep(std::expected<void, TraceError> done);
  };

  // Tokens of a session that are in it because they were reused.
  static constexpr std::size_t kMaxReused = 200'000;

  void find_model(const ProgramFacts& program, const RawGraph& graph);
  void describe(const ProgramFacts& program, const RawGraph& graph);
  const Known* graph_of(const RunStep& step) const;
  static std::optional<Known::CacheLists> cache_lists(const GraphTemplate& graph);
  StepTokens tokens_of(const RunStep& step, const Known& known) const;
  void add_cells(const RunStep& step, const Known& known, StepTokens& tokens) const;
  std::string text_of_tokens(std::span<const std::int32_t> ids) const;
  std::string title_of(const StepTokens& tokens) const;
  void write_graph(const Known& known, Step& step);
  void add_reused(const TokenRun& run, std::uint32_t sequence);
  void add_tokens(const StepTokens& tokens, bool has_sequences, Step& step);
  void settle_draft(const TokenRun& run);
  StepSplits splits_of(const RunStep& step, const Known& known, StepId id) const;
  void take_conditions(const StepRecord& record, Step& step);

  std::string model_;
  GgufIndex index_;
  MappedFiles mapped_;
  std::optional<Vocabulary> vocabulary_;
  SessionInfo info_;  // what its sessions have in common
  bool draft_ = false;
  bool encodes_ = false;                   // graphs without a cache are those of the encoder
  std::map<std::uint32_t, Known> graphs_;  // by the program's number
  std::uint32_t allocations_ = 0;
  std::int32_t evaluated_ = 0;  // tokens: the positions, if the model reads none
  bool any_request_ = false;
  std::int64_t last_end_ = 0;
  RequestTracker requests_;
  CacheSequences cache_;
  PromptHistory prompts_;
  std::filesystem::path machine_folder_;
  bool counts_faults_ = false;  // their addresses are not known
  std::optional<Session> session_;
  OffsetCoverage coverage_;
  BufferSizes buffers_;
};

}  // namespace tt::attach
