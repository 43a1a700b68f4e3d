// Columns that line up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lmemo::cli {

enum class Align { left, right };

class TextTable {
 public:
  explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}

  // Cells are made printable here. Requires: as many cells as columns.
  void add(const std::vector<std::string>& cells);
  size_t rows() const { return rows_.size(); }
  // Each line indented and ended by a newline; columns two spaces apart.
  std::vector<std::string> lines(size_t indent) const;
  std::string text(size_t indent) const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns that a text takes on a terminal; each code point counts as one.
size_t width_of(std::string_view utf8);

// Breaks a paragraph at spaces. Lines after the first are indented by `indent`.
std::string wrapped(std::string_view paragraph, size_t columns, size_t indent);

}  // namespace lmemo::cli
