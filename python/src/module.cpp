// The extension module lmemo._core: a list of what it offers, one init function per file.

#include <nanobind/nanobind.h>

#include "lmemo/version.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.doc() = "The compiled part of lmemo.";
  m.attr("version") = nb::str(lmemo::kVersion.data(), lmemo::kVersion.size());
}
