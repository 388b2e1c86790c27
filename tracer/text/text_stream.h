// From token bytes to text that may be shown: whole UTF-8 characters only, and
// nothing that may turn out to be the beginning of a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tt {

class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops);

  // Takes a token's bytes, returns what the text grows by. After a stop string
  // was met, stopped() is true and the text ends before it.
  std::string push(std::string_view bytes);
  // What was held back, when generation ends otherwise. Incomplete or invalid
  // bytes become U+FFFD.
  std::string flush();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // bytes not yet given out
  bool stopped_ = false;
};

}  // namespace tt
