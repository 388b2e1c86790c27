// Mounts that other processes do not see.
#pragma once

namespace tt::test {

// From here on what this thread mounts is seen by it and by the threads and processes that it
// starts, and goes with them. False: this machine does not allow it, as in a container without
// CAP_SYS_ADMIN.
bool own_mounts();

}  // namespace tt::test
