// Requests of a disk beside a session, as JSON: analysis/disk/disk_reads.h.
#pragma once

#include "analysis/disk/disk_reads.h"
#include "api/json/json.h"

namespace tt {

Json to_json(const DiskReads& reads, const TracedDisk& disk);

}  // namespace tt
