// Mounts that are invisible to other processes.
#pragma once

namespace tt::test {

// From now on, mounts of this thread are visible only to it and to the threads and processes
// that it starts, and end with them. Returns false if the system does not allow it, for example
// in a container without CAP_SYS_ADMIN.
bool unshare_mounts();

}  // namespace tt::test
