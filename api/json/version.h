#pragma once

namespace tt {

inline constexpr const char* kVersion = TT_VERSION;  // of the whole product, from CMake
inline constexpr int kApiVersion = 1;                // the N of /api/vN
inline constexpr int kLiveProtocol = 3;              // of the WebSocket, api/live.md

}  // namespace tt
