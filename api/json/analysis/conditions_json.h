// The verdict on the machine and the spread of step times as JSON.
#pragma once

#include "analysis/tables/session_conditions.h"
#include "api/json/json.h"

namespace tt {

Json to_json(const SessionConditions& conditions);
Json to_json(const PhaseTimes& phase);
Json to_json(const Spread& spread);

}  // namespace tt
