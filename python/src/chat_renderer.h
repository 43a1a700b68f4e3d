// transformers' chat templates for the data-set face: lmemo/_chat.py behind the C++ seam.
#pragma once

#include <nanobind/nanobind.h>

#include "lmemo/dataset.h"

namespace lmemo::python {

// `make(path, template, wants_learned)` gives a function from a list of chats (JSON) to a list of
// (text, [(begin, end)], ids or None, [learned] or None, problem). Called without the GIL, from any thread.
MakeChatRenderer chat_renderer_of(nanobind::object make);

}  // namespace lmemo::python
