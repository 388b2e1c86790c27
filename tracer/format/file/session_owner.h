// Who writes a Running session: enough to tell a live writer from a dead one
// whose process id was given to another. Private to tracer/format.
#pragma once

#include <string>

#include "tracer/format/file/session_tables.h"

namespace tt {

// "owner.*" rows of tt_meta for this process.
Meta owner_of_this_process();

enum class Owner { None, Dead, Alive, Self };
// Whether the process that `meta` names still runs on this machine. Self: this one.
Owner owner_state(const Meta& meta);

}  // namespace tt
