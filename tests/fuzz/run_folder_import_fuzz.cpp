// Imports a run folder of arbitrary files: the result is a valid session, or no file.
//
// An input is a concatenation of the files, each after a line "==> NAME <==" as `head` writes
// it. The line break before such a line is not part of the file.
#include <array>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/fuzz/imported.h"

namespace {

// The files that the import reads.
constexpr std::array<std::string_view, 5> kFiles = {"trace_metadata.json", "accesses.csv",
                                                    "tensor_access.bin", "tensor_names.txt",
                                                    "gguf_structure.csv"};

void unpack(std::string_view input, const std::filesystem::path& folder) {
  std::filesystem::create_directory(folder);
  const auto marker = [](std::string_view name) { return "==> " + std::string(name) + " <==\n"; };
  for (const std::string_view name : kFiles) {
    const std::string begin = marker(name);
    const std::size_t at = input.find(begin);
    if (at == std::string_view::npos) continue;
    std::string_view text = input.substr(at + begin.size());
    for (const std::string_view next : kFiles)
      text = text.substr(0, text.find("\n" + marker(next)));
    std::ofstream(folder / name, std::ios::binary) << text;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tt;
  static const fuzz::Scratch scratch;
  unpack({reinterpret_cast<const char*>(data), size}, scratch / "run");
  fuzz::expect_valid_session(
      {data, size},
      [] { return exchange::import_run_folder(scratch / "run", scratch / "s.ttrace"); },
      scratch / "s.ttrace");
  scratch.clear();
  return 0;
}
