// Imports a log of arbitrary bytes: the result is a valid session, or no file.
#include "api/exchange/import/import.h"
#include "tests/fuzz/imported.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tt;
  static const fuzz::Scratch scratch;
  fuzz::write_file(scratch / "log.ndjson", {data, size});
  fuzz::expect_valid_session(
      {data, size},
      [] { return exchange::import_log(scratch / "log.ndjson", scratch / "s.ttrace"); },
      scratch / "s.ttrace");
  scratch.clear();
  return 0;
}
