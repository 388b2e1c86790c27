// What of the model files is in memory, as JSON.
#pragma once

#include <span>

#include "analysis/tables/weight_residency.h"
#include "api/json/json.h"

namespace tt {

Json ranges_json(std::span<const FileRange> ranges);
Json to_json(const ResidencyTable& table);

}  // namespace tt
