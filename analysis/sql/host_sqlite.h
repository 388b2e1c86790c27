// Put before every file of the loadable extension (-include): from here on each
// sqlite3_...() is a call into the program that loaded it. A shell that has SQLite
// built in and ours in one process would each drop the other's locks when closing
// a file that both have open, and a connection of one means nothing to the other.
#pragma once

#include <sqlite3ext.h>

SQLITE_EXTENSION_INIT3
