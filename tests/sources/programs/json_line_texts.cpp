// json_line_texts FILE FIELD: for each line that is not blank, its problem or its text in hexadecimal. For the test
// that compares with Python's json.
#include <cstdio>

#include "base/hex.h"
#include "sources/json_lines.h"

int main(int count, char** words) {
  using namespace lmemo;
  if (count != 3) return 2;
  auto reader = LineBlockReader::open(words[1]);
  const auto path = FieldPath::parse(words[2]);
  if (!reader.ok() || !path.ok()) return 1;
  JsonLineParser parser;
  while (true) {
    auto block = (*reader)->next();
    if (!block.ok()) return 1;
    if (!*block) return 0;
    for (LineCursor lines(**block); const auto line = lines.next();) {
      if (line->is_blank()) continue;
      std::string_view text;
      const LineVerdict verdict = parser.text(line->text, *path, text);
      const std::string shown =
          verdict.ok() ? "= " + to_hex(bytes_of(text)) : "! " + std::string(name_of(verdict.problem));
      std::printf("%llu %s\n", static_cast<unsigned long long>(line->number), shown.c_str());
    }
  }
}
