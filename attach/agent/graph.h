// A graph that the program evaluates, as the agent knows it: the tensors to compare the next one
// with, the ops, and the index lists to copy at each op.
#pragma once

#include "attach/agent/library.h"
#include "attach/agent/ring.h"

namespace tt::attach {

struct Span {  // nodes that run as one op
  uint32_t first, nodes;
};

// An index list that is copied when op `op` has run: source number `source` of node `node`.
struct Capture {
  uint32_t op, node, source;
  uint32_t tensor;           // in the record
  uint32_t stand_in_tensor;  // in the record of Graph::stand_in
  bool cells;                // a mask: the cells that at least one query attends to
};

constexpr int32_t kLeaf = -1, kAbsent = -2;  // where a source comes from, if not from a node

struct Graph {
  Graph* next;
  uint32_t number;
  uint32_t nodes, leaves, ops, captures;
  bool exact;       // ops cannot be told by ticks
  bool on_devices;  // some nodes run on a backend that does not report its ops
  bool by_splits;   // recorded by splits: its ops have no times
  uint64_t last_used;
  const char** tensors;  // the nodes, then the leaves
  char* images;          // of each tensor, image_bytes()
  int32_t* sources;      // of each node: at.sources places
  bool* lists;           // of each node: reads an index list
  Span* op_spans;
  uint32_t* op_ending;    // per node: the op that ends there; UINT32_MAX: none
  Capture* capture_list;  // sorted by op
  uint32_t* indices;      // of `tensors` in the record
  // The number of a graph with the same structure, whose record is in the ring: it names the lists
  // of a step while there is no room for the record of this graph. 0: none.
  uint32_t stand_in;
  Bytes record;  // GraphRecord and so on; empty once it is in the ring
};

bool does_work(const Library& ggml, const char* node);
// The number of the source that is an index list; -1: none.
int list_source(const Library& ggml, const char* node);
bool is_on_host(const Library& ggml, const char* tensor);

// Whether the listed nodes are the graph, at the same addresses.
bool same_graph(const Library& ggml, const Graph& graph, const char* const* nodes, uint32_t count);
// Whether they have its ops, types, flags and sources; shapes and addresses may differ.
bool same_structure(const Library& ggml, const Graph& graph, const char* const* nodes,
                    uint32_t count);

// The ops that the CPU backend's ticks lead to expect, on devices, too. `reported`: of each node,
// whether its backend ticks, if nodes with and without do not run as one op; null: not known.
// `spans`: room for `count`. Returns the number.
uint32_t expected_ops(const Library& ggml, const char* const* nodes, uint32_t count,
                      const bool* reported, Span* spans);

// What the record of a graph says of its scheduler.
struct SchedulerFacts {
  uint64_t number;
  const char* const* backends;  // names
  uint32_t backend_count;
};
// Makes the graph and its record. Null: no memory.
Graph* make_graph(const Library& ggml, const SchedulerFacts& scheduler, uint32_t number,
                  const char* const* nodes, uint32_t count, const Span* ops, uint32_t op_count);
void free_graph(Graph* graph);
// `base` has the structure of `graph`, which is new.
void set_stand_in(Graph& graph, const Graph& base);
// The place of a tensor in the record; UINT32_MAX: it is not part of the graph.
uint32_t record_index(const Graph& graph, const char* tensor);
// Whether `copy` is named as the copy of a tensor for a backend: "BACKEND#NAME#NUMBER".
bool is_copy_of(const Library& ggml, const char* copy, const char* tensor);
// The place of the copy of a tensor that the graph has in place of it; UINT32_MAX: none.
uint32_t copy_index(const Library& ggml, const Graph& graph, const char* tensor);

}  // namespace tt::attach
