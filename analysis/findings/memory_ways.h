// Decides what predicted and measured speeds of ways to run a model with a memory budget say: the
// only place with these thresholds. The words are in cli/commands/memory_output.cpp. Pure
// functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tt {

enum class WaySpeed : std::uint8_t { Unknown, Slower, AsFast, Faster };
// Tokens per second of a way, and of letting the kernel decide; 0: unknown.
WaySpeed way_speed(double rate, double plain);

// The place of the fastest way; of ways that are as fast, the last one, which reads least.
// `rates`: not empty.
std::size_t fastest_way(std::span<const double> rates);

// Tokens per second that are predicted for the slowest and the fastest read of the disk: whether a
// faster disk would not help.
bool is_limited_by_computing(double low, double high);

// Shares of the used experts that are in the cache, and that would be if all experts were equally
// likely: whether it hardly matters which experts are kept.
bool is_routing_uniform(double hits, double uniform_hits);

}  // namespace tt
