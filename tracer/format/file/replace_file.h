// Replaces a small file as a whole.
#pragma once

#include <filesystem>
#include <string_view>

namespace tt {

// Whoever reads the file finds the old text or the new one, also after a power loss. False: it
// cannot be written, and the old one is still there. Threads that replace the same file must
// exclude one another; processes need not.
bool replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tt
