// The extension module lmemo._core: a list of what it offers, one init function per file.

#include <nanobind/nanobind.h>

#include "bindings.h"
#include "lmemo/version.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  using namespace lmemo::python;

  // A store or a hit that lives until the interpreter ends is no mistake of the user's.
  nb::set_leak_warnings(false);

  m.doc() = "The compiled part of lmemo.";
  m.attr("version") = nb::str(lmemo::kVersion.data(), lmemo::kVersion.size());
  init_keys(m);
  init_hits(m);
  init_reports(m);
  init_inspection(m);
  init_stores(m);
  init_tokenizers(m);
  init_forward(m);
  init_activations(m);
  init_chunk_reading(m);
  init_datasets(m);
  init_sections(m);
  init_command_line(m);
}
