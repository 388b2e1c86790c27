// Renders rejections of the HTTP front end: problem JSON, or a login page for a browser
// without a session cookie.
#pragma once

#include "server/door/refusal.h"

namespace tt {

RefusalBody render_refusal(const Refusal& refusal);

}  // namespace tt
