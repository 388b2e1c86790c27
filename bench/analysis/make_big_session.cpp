// make_big_session FROM TO [ACCESSES]: writes the session that benches ask.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <print>
#include <string>

#include "bench/analysis/big_session.h"

int main(int argc, char** argv) {
  std::string from, to;
  std::uint64_t accesses = 100'000'000;
  CLI::App app("A long session made from a short one, by repeating its generated steps",
               "make_big_session");
  app.add_option("from", from, "A finished session, .ttrace")->required();
  app.add_option("to", to, "The session to write")->required();
  app.add_option("accesses", accesses, "How many at least (default: 100000000)");
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
