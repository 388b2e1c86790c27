#include "api/json/analysis/validation_json.h"

namespace tt {

Json to_json(const Validation& validation) {
  Json checks = Json::array();
  for (const CheckResult& check : validation.checks) {
    checks.push_back({{"check", to_text(check.check)},
                      {"verdict", to_text(check.status)},
                      {"items_checked", check.items_checked},
                      {"wrong", check.wrong},
                      {"summary", check.summary},
                      {"evidence", check.evidence}});
  }
  return {{"passed", validation.passed()},
          {"verdict", validation.verdict()},
          {"checks", std::move(checks)}};
}

}  // namespace tt
