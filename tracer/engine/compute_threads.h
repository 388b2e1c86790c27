// The threads in which OpenMP computes graphs for the calling thread.
#pragma once

namespace tt {

// Ends those of the calling thread, if ggml computes with the OpenMP of GCC (libgomp). The next
// graph starts them again, which takes some 10 us per thread. Call while no graph is computed.
//
// libgomp keeps them while the thread lives. As soon as the process has more of them than
// processors, as with two loaded models, waiting threads sleep at once instead of after
// milliseconds, and each op of the model that runs waits for them to be woken.
void end_compute_threads();

}  // namespace tt
