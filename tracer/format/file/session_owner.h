// The process that writes a Running session, identified by pid, start time and boot id,
// because pids are reused. Private to tracer/format.
#pragma once

#include <string>

#include "tracer/format/file/session_tables.h"

namespace tt {

// "owner.*" rows of tt_meta for this process.
Meta owner_of_this_process();

enum class Owner { None, Dead, Alive, Self };
// Whether the owner in `meta` still runs on this machine. Self: it is this process.
Owner owner_state(const Meta& meta);

}  // namespace tt
