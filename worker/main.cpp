// tt-worker: the helper of tracer/sandbox/sandbox.h. Started by tt-server and tt with a socket as
// file descriptor 3; runs each job in a child process with limits.
#include "tracer/sandbox/worker.h"

int main() { return tt::serve_jobs({}); }
