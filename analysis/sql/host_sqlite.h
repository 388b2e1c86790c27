// Included before every source file of the loadable extension (-include), so that each
// sqlite3_...() call goes to the SQLite of the host program. Two copies of SQLite in one
// process must not be used: closing a file in one copy drops the POSIX locks of the other, and
// a connection of one cannot be used with the other.
#pragma once

#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT3
