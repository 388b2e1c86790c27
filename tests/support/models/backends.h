#pragma once

namespace tt::test {

// Loads ggml's backends once per process. Call before a model is loaded.
void need_backends();

}  // namespace tt::test
