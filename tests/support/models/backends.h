#pragma once

namespace tt::test {

// ggml's backends, loaded once in a process: before a model is.
void need_backends();

}  // namespace tt::test
