// Records the steps of one scheduler of ggml (one per context of llama.cpp). On the thread that
// evaluates. Between the first and the last op of a known graph: no lock, no allocation, no file.
#pragma once

#include "attach/agent/graph.h"

namespace tt::attach {

struct Scheduler;

// The CPU backend of a scheduler, with what the program set for it.
struct Backend {
  Backend* next;
  void* handle;
  SetAbort set_abort;  // the real function; null: not known yet
  AbortCallback user;  // of the program; may be null
  void* user_data;
  bool ours;          // on_tick is set
  uint32_t threads;   // 0: not known
  Scheduler* active;  // evaluates with this backend now; null: none
};

struct Range {  // nodes that the scheduler ran without a split
  uint32_t end_node, end_tick;
  int64_t end;
};

struct Captured {
  const char* tensor;
  uint32_t capture;  // in the graph whose captures were used
  SlotValuesKind kind;
  uint32_t count;
  uint64_t offset, bytes;  // in Scheduler::values
};

// What is recorded of a step by splits (splits.h).
struct SplitLog {
  SplitRecord* splits;
  CopyRecord* copies;
  uint32_t split_count, copy_count;
  bool* captured;  // per capture of the graph
  uint32_t captured_room;
  uint32_t next_node, next_op;      // of the next split
  uint32_t first_copy;              // of the next split
  uint32_t first_node, first_tick;  // of the current one
  uint32_t depth;                   // a backend that computes on others calls the same functions
  const char* input;                // is copied now: the next record of `copies`
  uint64_t part_bytes;              // of the parts that are copied, if not all of it is
  bool failed;
};

constexpr uint32_t kMaxBackends = 16;
constexpr uint32_t kMaxCaptured = 4096;
constexpr uint32_t kMaxGraphs = 32;  // known per scheduler

struct Scheduler {
  Scheduler* next;
  void* handle;
  uint64_t number;
  Library* ggml;
  EvalCallback user;  // of the program; may be null
  void* user_data;
  bool failed;  // no memory: not traced
  Backend* backends[kMaxBackends];
  const char* backend_names[kMaxBackends];
  uint32_t backend_count;
  bool exact;  // the user wants the times of ops on devices
  Graph* graphs;
  uint64_t use_count;
  bool follows;  // no graph has had other ops than the one with its structure
  uint32_t threads_seen;

  // The step in flight.
  bool busy;
  const char** nodes;
  uint32_t node_count, node_room;
  Graph* graph;  // known; else of the same structure, or null
  enum class Mode : uint8_t { Known, Following, Splitting, BySplits } mode;
  bool* reported;   // per node: its backend reports ops; set if the graph is new
  bool on_devices;  // some nodes do not
  SplitLog log;
  bool learning;  // splitting, to learn the ops
  Span* ops;      // expected
  uint32_t op_count;
  bool* splits;         // per node: the program splits behind it
  uint32_t* op_ending;  // per node, while splitting
  bool chained;         // the program's callback is asked
  uint32_t asked;       // nodes listed by the scheduler
  bool out_of_order;    // not listed in the order of the graph
  bool stopped;         // by the program's callback
  int64_t* ticks;
  uint32_t tick_count, tick_room;
  uint32_t current_op;  // that the next tick ends
  bool half;            // the first half of a pair that the program splits has run
  uint32_t next_capture;
  Range* ranges;
  uint32_t range_count;
  int64_t first_op;
  int64_t* times;  // of the ops
  char* values;    // of the lists
  uint64_t values_used, values_room;
  Captured captured[kMaxCaptured];
  uint32_t captured_count, lists_lost;
};

int64_t now_ns();
void release(Scheduler& scheduler);  // its memory, without its graphs
bool on_tick(void* backend);
bool on_eval(void* tensor, bool ask, void* scheduler);

// Copies a list of numbers, or the two lists of cells of a mask, to the values of the step.
bool copy_values(Scheduler& scheduler, const char* tensor, uint32_t capture, bool cells);

// The scheduler is busy. false: the graph cannot be recorded; evaluate it without end_step().
bool begin_step(Scheduler& scheduler, void* graph, uint32_t& graph_numbers);
// `lock`, `unlock`: around the use of the ring, which all schedulers share.
void end_step(Scheduler& scheduler, int64_t begin, bool failed, Ring& ring, uint32_t& graph_numbers,
              void (*lock)(), void (*unlock)());

}  // namespace tt::attach
