// How the door's refusals look: problems as everywhere, and for a browser that
// has no cookie a page that says how to log in.
#pragma once

#include "server/door/refusal.h"

namespace tt {

RefusalBody render_refusal(const Refusal& refusal);

}  // namespace tt
