// Predicts the experts that the router of a layer will choose, before it has. Pure logic.
//
// There are two predictions: the experts that the layer used for the previous token, and those that
// most often followed the experts of the layer before. Which is better depends on the model and the
// text, so both are made and compared with what the router then chooses; the better one so far is
// given. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tt {

class ExpertPredictor {
 public:
  enum class By : std::uint8_t { PreviousToken, PreviousLayer };

  // The number of experts of each layer, in the order of evaluation.
  explicit ExpertPredictor(std::span<const std::uint32_t> experts);

  // At most `count` experts of the layer for which `wanted` is true, most likely first. Call
  // observe() for the layer before. Valid until the next call.
  using Wanted = std::function<bool(std::uint32_t)>;
  std::span<const std::uint32_t> predict(std::size_t layer, std::uint32_t count,
                                         const Wanted& wanted);
  // The router has chosen; without duplicates. Compares the predictions, if there are any, and
  // learns. Layers of a token that were not observed are left out.
  void observe(std::size_t layer, std::span<const std::uint32_t> chosen);
  // A token begins.
  void begin_token();

  // Of the predictions that were given so far.
  std::uint64_t predicted() const { return predicted_; }
  std::uint64_t right() const { return right_; }
  // Share of the recent predictions that was right; 0 before there were enough.
  double recent_share() const;
  By by() const { return static_cast<By>(best()); }

 private:
  static constexpr std::size_t kKinds = 2;
  struct Score {
    std::uint64_t predicted = 0;
    double recent = 0;  // moving average of the share that was right
  };
  struct Layer {
    std::uint32_t experts = 0;
    std::vector<std::uint32_t> last;  // chosen for the last token
    // How often an expert followed one of the layer before; rows are those of the layer before.
    std::vector<float> followed;
    std::array<std::vector<std::uint32_t>, kKinds> predictions;
    std::size_t given = 0;  // which of them
  };
  std::size_t best() const;

  std::vector<Layer> layers_;
  std::vector<float> sums_;
  std::array<Score, kKinds> score_{};
  std::uint64_t predicted_ = 0, right_ = 0;
  std::size_t observed_ = SIZE_MAX;  // the last layer of this token that was observed
};

}  // namespace tt
