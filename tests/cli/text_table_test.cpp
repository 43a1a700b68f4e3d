#include "cli/text_table.h"

#include <doctest/doctest.h>

namespace lmemo::cli {
namespace {

TEST_CASE("columns line up, and lines end without blanks") {
  TextTable table({Align::left, Align::right, Align::left});
  table.add({"kind", "entries", "note"});
  table.add({"größe", "1,234", ""});
  CHECK(table.text(2) == "  kind   entries  note\n  größe    1,234\n");
  CHECK(table.rows() == 2);
}

TEST_CASE("a cell cannot break its table") {
  TextTable table({Align::left});
  table.add({"a\nb\x1b[2J"});
  CHECK(table.text(0) == "a\\x0ab\\x1b[2J\n");
}

TEST_CASE("paragraphs are broken at blanks") {
  CHECK(wrapped("one two three four", 9, 0) == "one two\nthree\nfour");
  CHECK(wrapped("one two three", 11, 2) == "one two\n  three");
  CHECK(wrapped("averyverylongword x", 5, 0) == "averyverylongword\nx");
  CHECK(wrapped("", 5, 0) == "");
}

}  // namespace
}  // namespace lmemo::cli
