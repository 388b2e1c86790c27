// Converts token bytes to text for display: complete UTF-8 characters only. Holds back text
// that may be the beginning of a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tt {

class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops);

  // Takes a token's bytes, returns the text to append. After a stop string was found,
  // stopped() is true and the text ends before it.
  std::string push(std::string_view bytes);
  // The text held back, when generation ends without a stop string. Incomplete or invalid
  // bytes become U+FFFD.
  std::string flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // bytes not yet returned
  bool stopped_ = false;
};

}  // namespace tt
