// Which part of a graph ran on which backend, and what was copied for it. Recorded while a
// scheduler computes, from the functions of ggml that it calls for each part: a graph that is split
// for cb_eval would run in another way, and slower. On the thread that evaluates; no lock, and no
// allocation after the first step.
#pragma once

#include "attach/agent/step.h"

namespace tt::attach {

using GraphCompute = int (*)(void* backend, void* graph);

// Whether any node runs on a backend that does not report its ops. Sets s.reported.
bool find_devices(Scheduler& scheduler);
// A step begins whose graph is recorded by splits. false: no memory.
bool begin_splits(Scheduler& scheduler);
// The devices have ended, as far as the scheduler does not run ahead of them. Returns whether each
// part was found in the graph, and had the ticks that were expected.
bool end_splits(Scheduler& scheduler);

// The scheduler asks for the backend of a tensor: before it copies it for the next split.
void on_input(Scheduler& scheduler, const char* tensor, void* backend);
void on_copied(Scheduler& scheduler);                // the copy is complete
void on_part(Scheduler& scheduler, uint64_t bytes);  // a part of the input is copied
// Waited for a backend, or for an event if it is null, until now.
void on_waited(Scheduler& scheduler, const void* backend, int64_t begin);
int compute_split(Scheduler& scheduler, GraphCompute compute, void* backend, void* graph);
// The list of the op has to be copied if it has one: the op has run on a backend that reports it.
void copy_list_of_op(Scheduler& scheduler, uint32_t op);

}  // namespace tt::attach
