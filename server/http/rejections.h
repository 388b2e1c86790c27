// Renders rejections of the HTTP front end: problem JSON, or a login page for a browser
// without a session cookie.
#pragma once

#include "server/frontend/rejection.h"

namespace tt {

RejectionBody render_rejection(const Rejection& rejection);

}  // namespace tt
