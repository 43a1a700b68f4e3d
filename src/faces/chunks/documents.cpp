#include "faces/chunks/documents.h"

#include <algorithm>
#include <cstring>

#include "base/sha256.h"
#include "sources/source_file.h"

namespace lmemo::chunks {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

std::array<std::byte, 16> short_digest(std::string_view text) {
  std::array<std::byte, 16> start;
  std::memcpy(start.data(), sha256(bytes_of(text)).bytes.data(), start.size());
  return start;
}

void for_each_document(SourceType type, std::string_view bytes, uint64_t offset, uint64_t first_line,
                       JsonLineParser& parser, const FieldPath& field,
                       const std::function<void(const Document&)>& visit) {
  if (offset == 0 && bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  if (type == SourceType::text) {
    Document document;
    if (is_utf8(bytes))
      document.text = bytes;
    else
      document.verdict = {LineProblem::invalid_utf8, "the file is not UTF-8"};
    visit(document);
    return;
  }
  uint64_t line_number = first_line;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (!is_blank(line)) {
      Document document;
      document.line = line_number;
      document.verdict = parser.text(line, field, document.text);
      if (!document.verdict.ok()) document.text = {};
      visit(document);
    }
    ++line_number;
  }
}

}  // namespace lmemo::chunks
