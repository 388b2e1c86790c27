// What changed between two sessions, in one sentence, the only one: tt compare prints it, REST
// returns it, the page shows it. Pure function.
#pragma once

#include <string>

#include "analysis/report/comparison.h"

namespace tt {

// "A generated token takes 12.0 % longer in the second session, 1.32 ms instead of 1.18 ms, more
// than the steps of one session vary (99 % interval of the change: +9.1 % to +14.8 %; medians of 24
// and 22 undisturbed steps); another load of the machine may be the cause; it
// reads 26.9 MiB instead of 20.1 MiB." The left session is the first. Steps of one session share a
// machine, and two sessions may not: the interval does not contain that difference.
std::string what_changed(const Comparison& comparison);

// Where the texts of the sessions differ: "The first token that differs is token 7."
std::string tokens_text(const Comparison& comparison);

// The graphs that only one session has: "Ops that only one session runs: in 1 graph of the first and
// 2 graphs of the second. Their models differ."
std::string graphs_text(const Comparison& comparison);

// How the probabilities of chosen tokens differ: "Probabilities of 12 tokens that both sessions
// chose after the same text: the first difference at token 7 ...". Empty: not captured in both.
std::string chosen_text(const Comparison& comparison);

}  // namespace tt
