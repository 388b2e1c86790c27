#include "server/sessions/set_selection.h"

#include <algorithm>
#include <format>
#include <optional>
#include <utility>

namespace tt {

std::expected<std::vector<std::string>, Problem> select_set(SessionStore& sessions,
                                                            const SetSelector& set,
                                                            std::size_t max) {
  if (!set.ids.empty()) {
    for (const std::string& id : set.ids) {
      if (sessions.file(id)) continue;
      return std::unexpected(
          Problem{ErrorCode::NotFound, std::format("There is no session {}.", shortened(id))});
    }
    return set.ids;
  }
  const auto found = sessions.list({.words = set.words,
                                    .state = set.state,
                                    .model = set.model,
                                    .page = {.from = 0, .limit = max}});
  if (!found) return std::unexpected(problem_of(found.error()));
  if (found->total == 0)
    return std::unexpected(Problem{ErrorCode::NotFound, "No session passes the filter."});
  if (found->total > max) {
    return std::unexpected(
        Problem{ErrorCode::BadRequest,
                std::format("{} sessions pass the filter, and a set has at most {}. Add a "
                            "condition, or list the ids.",
                            found->total, max)});
  }
  std::vector<std::string> ids;
  for (const SessionEntryPtr& entry : found->rows) ids.push_back(entry->id);
  std::ranges::sort(ids);
  return ids;
}

std::optional<std::string> tag_of_set(SessionStore& sessions, const std::vector<std::string>& ids) {
  std::string tags;
  for (const std::string& id : ids) {
    const auto tag = sessions.tag(id);
    if (!tag) return std::nullopt;
    tags += std::format("{} {} ", id, *tag);
  }
  return tags;
}

}  // namespace tt
