#include "analysis/speed/speed_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

namespace tt {

namespace {

// The fastest of the blocks of each round, two per round in each of `sides`.
std::vector<double> fastest_blocks(std::initializer_list<std::span<const double>> sides) {
  std::vector<double> rounds;
  for (const std::span<const double> side : sides) {
    for (std::size_t i = 0; i < side.size(); ++i) {
      const std::size_t round = i / 2;
      if (rounds.size() <= round) {
        rounds.push_back(side[i]);
      } else {
        rounds[round] = std::min(rounds[round], side[i]);
      }
    }
  }
  return rounds;
}

// Of the two blocks of each round of one side, which are equal.
double noise_of_blocks(std::span<const double> ns) {
  std::vector<double> first, second;
  for (std::size_t i = 0; i + 1 < ns.size(); i += 2) {
    first.push_back(ns[i]);
    second.push_back(ns[i + 1]);
  }
  return noise_floor_of_fastest(first, second);
}

std::span<const double> times_to_compare(const SpeedOp& op) {
  return op.quiet_ns.size() == op.ns.size() ? op.quiet_ns : op.ns;
}

struct OpSides {
  const SpeedOp *before = nullptr, *after = nullptr;
};

std::vector<ComparedOp> compare_ops(const SpeedTest& before, const SpeedTest& after, double noise) {
  std::map<std::string, OpSides> kinds;
  for (const SpeedOp& op : before.ops) kinds[op.op].before = &op;
  for (const SpeedOp& op : after.ops) kinds[op.op].after = &op;
  std::vector<ComparedOp> rows;
  double all_before = 0, all_after = 0;
  for (const auto& [name, sides] : kinds) {
    ComparedOp& row = rows.emplace_back();
    row.op = name;
    const auto time = [](const SpeedOp* op) {
      return op == nullptr ? 0 : fastest(fastest_blocks({times_to_compare(*op)}));
    };
    row.before_ns = time(sides.before);
    row.after_ns = time(sides.after);
    all_before += row.before_ns;
    all_after += row.after_ns;
  }
  std::size_t judged = 0;
  for (ComparedOp& row : rows) {
    row.share = std::max(all_before > 0 ? row.before_ns / all_before : 0,
                         all_after > 0 ? row.after_ns / all_after : 0);
    judged += row.share >= kLeastShare && row.before_ns > 0 && row.after_ns > 0 ? 1 : 0;
  }
  for (ComparedOp& row : rows) {
    if (row.share < kLeastShare || row.before_ns <= 0 || row.after_ns <= 0) continue;
    const OpSides& sides = kinds[row.op];
    const auto left = times_to_compare(*sides.before), right = times_to_compare(*sides.after);
    const double floor = std::max({noise, noise_of_blocks(left), noise_of_blocks(right)});
    row.change = compare_samples(fastest_blocks({left}), fastest_blocks({right}), floor,
                                 1 - (1 - kConfidence) / static_cast<double>(judged));
    if (row.share * std::abs(row.change->ratio - 1) < kLeastEffect)
      row.change->verdict = SpeedVerdict::Equal;
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const ComparedOp& row) { return std::abs(row.added_ns()); });
  return rows;
}

}  // namespace

std::vector<double> SpeedTest::samples_ns() const {
  std::vector<double> samples;
  for (std::size_t i = 0; i < first_ns.size(); ++i) {
    samples.push_back(first_ns[i]);
    if (i < second_ns.size()) samples.push_back(second_ns[i]);
  }
  return samples;
}

double SpeedTest::noise() const { return noise_floor(first_ns, second_ns); }

SpeedChange SpeedTest::recording_cost() const {
  std::vector<double> plain;
  for (std::size_t i = 0; i < std::min(first_ns.size(), second_ns.size()); ++i)
    plain.push_back((first_ns[i] + second_ns[i]) / 2);
  return compare_pairs(plain, recorded_ns, noise());
}

std::vector<double> SpeedTest::rounds_ns() const {
  return first_quiet_ns.empty() ? fastest_blocks({first_ns, second_ns})
                                : fastest_blocks({first_quiet_ns, second_quiet_ns});
}

double SpeedTest::noise_of_rounds() const {
  return first_quiet_ns.empty()
             ? noise_floor_of_fastest(fastest_blocks({first_ns}), fastest_blocks({second_ns}))
             : noise_floor_of_fastest(fastest_blocks({first_quiet_ns}),
                                      fastest_blocks({second_quiet_ns}));
}

std::vector<ComparedTest> compare_speed(const std::vector<SpeedTest>& before,
                                        const std::vector<SpeedTest>& after, SpeedOrder order) {
  const double least = order == SpeedOrder::Separate ? kLeastNoiseOfRuns : kLeastNoise;
  std::vector<ComparedTest> tests;
  for (const SpeedTest& left : before) {
    const auto right = std::ranges::find_if(after, [&](const SpeedTest& test) {
      return test.n_prompt == left.n_prompt && test.n_gen == left.n_gen;
    });
    if (right == after.end()) continue;
    ComparedTest& test = tests.emplace_back();
    test.n_prompt = left.n_prompt;
    test.n_gen = left.n_gen;
    const std::vector<double> a = left.rounds_ns(), b = right->rounds_ns();
    test.before_ns = fastest(a);
    test.after_ns = fastest(b);
    test.change =
        compare_samples(a, b, std::max({least, left.noise_of_rounds(), right->noise_of_rounds()}));
    test.ops = compare_ops(left, *right, test.change.noise);
  }
  return tests;
}

}  // namespace tt
