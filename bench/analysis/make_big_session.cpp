// make_big_session FROM TO [ACCESSES]: writes a long session for benchmarks.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <print>
#include <string>

#include "bench/analysis/big_session.h"

int main(int argc, char** argv) {
  std::string from, to;
  std::uint64_t accesses = 100'000'000;
  CLI::App app("Writes a long session by repeating the generated steps of a short one",
               "make_big_session");
  app.add_option("from", from, "Finished session to extend (.ttrace)")->required();
  app.add_option("to", to, "Session file to write")->required();
  app.add_option("accesses", accesses, "Minimum number of accesses (default: 100000000)");
  CLI11_PARSE(app, argc, argv);
  const auto made = tt::bench::make_big_session(from, to, accesses);
  if (!made) {
    std::println(stderr, "make_big_session: {}", made.error().message);
    return 1;
  }
  std::println("{} steps, {} ops, {} accesses, {} bytes", made->steps, made->ops, made->accesses,
               made->file_bytes);
  return 0;
}
