#include "api/json/result_json.h"

#include <cmath>
#include <type_traits>
#include <variant>

namespace tt {

Json number_json(double value) {
  constexpr double kExact = 9007199254740992.0;
  if (value == std::floor(value) && std::abs(value) < kExact)
    return static_cast<std::int64_t>(value);
  return value;
}

Json json_of(const fields::Value& value) {
  return std::visit(
      []<class T>(const T& of) -> Json {
        if constexpr (std::is_same_v<T, double>) {
          return number_json(of);
        } else if constexpr (std::is_same_v<T, fields::List>) {
          Json list = Json::array();
          for (const fields::Value& item : of) list.push_back(json_of(item));
          return list;
        } else if constexpr (std::is_same_v<T, fields::Record>) {
          Json record = Json::object();
          for (const auto& [name, member] : of) record[name] = json_of(member);
          return record;
        } else {
          return of;
        }
      },
      value.of);
}

}  // namespace tt
