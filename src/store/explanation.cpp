#include "store/explanation.h"

#include <algorithm>

namespace lmemo {

std::vector<FieldDifference> differences(const Key& asked, const Key& stored) {
  std::vector<FieldDifference> result;
  const std::vector<Field> a = asked.fields(), b = stored.fields();
  // Both are sorted by name: a merge.
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].name < b[j].name)) {
      result.push_back({a[i].name, a[i].value, std::nullopt});
      ++i;
    } else if (i == a.size() || b[j].name < a[i].name) {
      result.push_back({b[j].name, std::nullopt, b[j].value});
      ++j;
    } else {
      if (!(a[i].value == b[j].value)) result.push_back({a[i].name, a[i].value, b[j].value});
      ++i, ++j;
    }
  }
  return result;
}

std::string Explanation::describe() const {
  if (is_hit) return "hit";
  if (!nearest) return "miss: no entry of this kind";
  std::string text = "miss:";
  for (size_t i = 0; i < differing.size(); ++i) {
    const FieldDifference& difference = differing[i];
    text += (i == 0 ? " " : ", ") + difference.name;
    if (difference.asked && difference.stored)
      text += " changed: " + difference.stored->describe() + " → " + difference.asked->describe();
    else if (difference.asked)
      text += " is new: " + difference.asked->describe();
    else
      text += " is gone: was " + difference.stored->describe();
  }
  return text;
}

}  // namespace lmemo
