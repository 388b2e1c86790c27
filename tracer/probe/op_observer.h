// Sees every op of a step when it is about to run and when it has run. A step that is observed is
// split after every node, so that each op is one node: pairs that ggml would fuse run one by one.
//
// Inference thread only. A call may block: the step then waits, and the time is not counted as that
// of an op. To end the step, request the probe's cancellation before returning.
#pragma once

#include "tracer/format/model/ids.h"

struct ggml_tensor;

namespace tt {

class OpObserver {
 public:
  virtual ~OpObserver() = default;
  // The sources of `node` are complete; its output is not.
  virtual void before_op(OpId op, const ggml_tensor& node) = 0;
  // The output of `node` is complete and may be changed; later ops read what it is then.
  virtual void after_op(OpId op, ggml_tensor& node) = 0;
};

}  // namespace tt
