#include "notices.h"

#include <nanobind/nanobind.h>

#include <algorithm>

#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {

std::vector<Notice> NoticeQueue::take() {
  std::vector<Notice> notices;
  for (Node* node = newest_.exchange(nullptr, std::memory_order_acquire); node != nullptr;) {
    notices.push_back(std::move(node->notice));
    delete std::exchange(node, node->older);
  }
  std::reverse(notices.begin(), notices.end());
  return notices;
}

void NoticeQueue::log(const std::vector<Notice>& notices) {
  const nb::error_scope keep_pending_error;
  try {
    const nb::object warning = nb::module_::import_("logging").attr("getLogger")("lmemo").attr("warning");
    for (const Notice& notice : notices) warning("%s", text_to_python(notice.message));
  } catch (nb::python_error& error) {  // A handler that fails must not fail the caller's work.
    error.discard_as_unraisable("lmemo notice");
  }
}

}  // namespace lmemo::python
