// How fast the kernels of ggml compute on this machine: the limit of an op with many operations per
// byte, such as a matrix multiplication of a long prompt.
#pragma once

#include "tracer/engine/machine_rate.h"

namespace tt {

// Operations per second of the fastest matrix multiplication of ggml with `threads` threads: of the
// types F32, F16, Q8_0 and Q4_0, the last two also with repacked weights. All matrices fit into a
// cache. A multiplication and an addition are two operations. Takes about a tenth of a second and a
// few MiB. Call after load_backends().
MachineRate measure_compute_peak(unsigned threads);

}  // namespace tt
