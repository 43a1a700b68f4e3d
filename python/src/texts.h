// Many texts from Python, without a copy where that is possible: lists of str or bytes, numpy arrays of them, and
// columns that offer the Arrow C data interface (pyarrow, polars, pandas, HuggingFace datasets, …).
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lmemo/tokenizer.h"

namespace lmemo::python {

// The UTF-8 of a str (kept by Python inside it) or of a bytes object, for as long as the object lives.
std::string_view text_view(nanobind::handle text);

// In memory that is kept for the next call.
using SourceTexts = std::vector<SourceText, UnwrittenAllocator<SourceText>>;

class Texts {
 public:
  // Raises TypeError for what holds no texts, and ValueError for a null.
  explicit Texts(nanobind::handle texts);
  ~Texts();
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  // Valid as long as this object, also without the GIL. A str is taken as Python keeps it: asking Python for its UTF-8
  // would take longer than many a piece of encoding, hold the GIL, and leave a second copy of every text behind.
  std::span<const SourceText> views() const { return views_; }

  // Raises what Python says about the first text that has no UTF-8, if there is one.
  void expect_utf8() const;

 private:
  struct Chunks;

  void take_list(nanobind::handle texts);
  void take_array(nanobind::handle texts);
  void take_stream(nanobind::handle texts);

  SourceTexts views_;
  nanobind::object kept_;  // Keeps the texts alive, whatever happens to what was given.
  std::unique_ptr<Chunks> chunks_;
};

}  // namespace lmemo::python
