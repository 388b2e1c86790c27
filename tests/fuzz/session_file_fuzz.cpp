// A .ttrace file of arbitrary bytes. A file that passes the check is read to its end; of any
// other file, the readable part is read. Every query runs on it.
#include "tests/fuzz/all_queries.h"
#include "tests/fuzz/limits.h"
#include "tests/fuzz/scratch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tt;
  static const fuzz::Scratch scratch;
  const auto file = scratch / "s.ttrace";
  fuzz::write_file(file, {data, size});
  const auto opened = [&] {
    const fuzz::Limits limits("check");
    const auto problems = check_session(file);
    auto reader = SessionReader::open(file);
    if (problems && problems->empty()) {
      const bool read =
          reader && reader->for_each_step(StepId{0}, UINT32_MAX, [](const Step&) { return true; });
      if (!read) fuzz::report_finding("a session that passed the check cannot be read");
    }
    return reader;
  };
  if (const auto reader = opened()) fuzz::run_all_queries({data, size}, file, *reader);
  scratch.clear();
  return 0;
}
