// Sessions that are being recorded while another program truncates their -shm file.
//
// SQLite maps -shm, the index of the WAL: who accesses a page beyond its end gets SIGBUS. With this
// guard, the process goes on (mapping_guard.h), and nothing that the lost index says is used: every
// connection of the process to this session fails with an error (kSharedMemoryLost) when it next
// asks for a lock. It neither writes nor merges the WAL. When the last of them is closed, the next
// one rebuilds the index from the WAL, which has everything that was committed.
#pragma once

namespace tt {

// SQLite's result code for such a connection.
extern const int kSharedMemoryLost;

// Guards all sessions that this process opens from now on: makes a VFS the default one that passes
// everything on to the present default. Call it in `main`, once, before a session is opened, and
// after CrashMarker::install().
void guard_shared_memory();

}  // namespace tt
