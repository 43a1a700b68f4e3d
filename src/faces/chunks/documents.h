// The documents in the bytes of a range: lines of JSON with a text, or a whole file.
#pragma once

#include <functional>
#include <string_view>

#include "faces/chunks/plan.h"
#include "sources/json_lines.h"

namespace lmemo::chunks {

// Behind the bytes of a range there must be this much readable memory.
inline constexpr size_t kRangePadding = kLinePadding;

struct Document {
  std::string_view text;  // Empty if there is a problem.
  uint64_t line = 1;
  LineVerdict verdict;
};

// Calls `visit` for each document, also for those that cannot be read. Blank lines are no documents.
void for_each_document(SourceType type, std::string_view bytes, uint64_t offset, uint64_t first_line,
                       JsonLineParser& parser, const FieldPath& field,
                       const std::function<void(const Document&)>& visit);

// The start of the SHA-256 of a text.
std::array<std::byte, 16> short_digest(std::string_view text);

bool is_blank(std::string_view line);

}  // namespace lmemo::chunks
