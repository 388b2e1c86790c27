#pragma once

namespace tt::test {

// Loads ggml's backends once per process. Call before a model is loaded.
void ensure_backends_loaded();

}  // namespace tt::test
