#include "cli/text_table.h"

#include <algorithm>
#include <cassert>

#include "cli/console.h"

namespace lmemo::cli {

size_t width_of(std::string_view utf8) {
  return static_cast<size_t>(std::count_if(
      utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void TextTable::add(const std::vector<std::string>& cells) {
  assert(cells.size() == columns_.size());
  std::vector<std::string> row;
  for (const std::string& cell : cells) row.push_back(printable(cell));
  rows_.push_back(std::move(row));
}

std::vector<std::string> TextTable::lines(size_t indent) const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_)
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], width_of(row[column]));
  std::vector<std::string> lines;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - width_of(row[column]), ' ');
      if (column > 0) line += "  ";
      line += columns_[column] == Align::left ? row[column] + padding : padding + row[column];
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    lines.push_back(line + "\n");
  }
  return lines;
}

std::string TextTable::text(size_t indent) const {
  std::string text;
  for (const std::string& line : lines(indent)) text += line;
  return text;
}

std::string wrapped(std::string_view paragraph, size_t columns, size_t indent) {
  std::string text;
  size_t used = indent;
  while (!paragraph.empty()) {
    const size_t length = std::min(paragraph.find(' '), paragraph.size());
    const std::string_view word = paragraph.substr(0, length);
    if (!text.empty() && used + 1 + width_of(word) > columns) {
      text += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!text.empty()) {
      text += ' ';
      ++used;
    }
    text += word;
    used += width_of(word);
    paragraph.remove_prefix(std::min(length + 1, paragraph.size()));
  }
  return text;
}

}  // namespace lmemo::cli
