// Many texts from Python, without a copy where that is possible: lists of str or bytes, numpy arrays of them, and
// columns that offer the Arrow C data interface (pyarrow, polars, pandas, HuggingFace datasets, …).
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string_view>
#include <vector>

namespace lmemo::python {

// The UTF-8 of a str (kept by Python inside it) or of a bytes object, for as long as the object lives.
std::string_view text_view(nanobind::handle text);

class Texts {
 public:
  // Raises TypeError for what holds no texts, and ValueError for a null.
  explicit Texts(nanobind::handle texts);
  ~Texts();
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  // Valid as long as this object, also without the GIL.
  const std::vector<std::string_view>& views() const { return views_; }

 private:
  struct Chunks;

  void take_list(nanobind::handle texts);
  void take_array(nanobind::handle texts);
  void take_stream(nanobind::handle texts);

  std::vector<std::string_view> views_;
  nanobind::object kept_;  // Keeps the texts alive, whatever happens to what was given.
  std::unique_ptr<Chunks> chunks_;
};

}  // namespace lmemo::python
