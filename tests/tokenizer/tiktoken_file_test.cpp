// Rank files; python/tests/tokenizer_interface_test.py compares them with tiktoken itself.

#include <doctest/doctest.h>

#include <string>

#include "lmemo/tokenizer.h"

namespace lmemo {
namespace {

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i)
      text += i <= std::min<size_t>(bytes.size() - at, 3) ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

// All bytes, and these tokens behind them.
std::string ranks(std::initializer_list<std::string_view> tokens) {
  std::string file;
  size_t rank = 0;
  for (unsigned byte = 0; byte < 256; ++byte)
    file += base64(std::string(1, static_cast<char>(byte))) + " " + std::to_string(rank++) + "\n";
  for (const std::string_view token : tokens) file += base64(token) + " " + std::to_string(rank++) + "\n";
  return file;
}

}  // namespace

TEST_CASE("any two neighbours that are a token together merge, the lowest rank first, from left to right") {
  const auto tokenizer =
      Tokenizer::from_tiktoken(ranks({"aa", "aaa", "ba"}), {"[ab]+|[^ab]+", {{"<x>", 900}}});
  REQUIRE(tokenizer.ok());
  const auto ids = [&](std::string_view text) { return (*tokenizer)->encode(text).value(); };
  CHECK(ids("aaa") == std::vector<uint32_t>{257});
  CHECK(ids("aaaaa") == std::vector<uint32_t>{256, 257});
  CHECK(ids("baaaa") == std::vector<uint32_t>{'b', 256, 256});
  CHECK(ids("ba<x>ba") == std::vector<uint32_t>{258, 900, 258});
  CHECK((*tokenizer)->decode(ids("ba<x>\xC3\xA9"), {.skip_special_tokens = false}).value() ==
        "ba<x>\xC3\xA9");
  CHECK((*tokenizer)->vocab_size() == 260);
}

TEST_CASE("a rank file that is none is refused") {
  const auto message = [](const std::string& file, const std::string& pattern = "cl100k") {
    const auto tokenizer = Tokenizer::from_tiktoken(file, {pattern});
    return tokenizer.ok() ? "loads" : tokenizer.error().describe();
  };
  CHECK(message(ranks({})) == "loads");
  CHECK(message("") == "incompatible: tiktoken file: byte 0 has no rank; expected all 256 of them");
  CHECK(message(ranks({}) + "YQ==") ==
        "incompatible: tiktoken file, line 257: expected base64, a blank and a rank");
  CHECK(message(ranks({}) + "\xFF\xFE 5").find("line 257") != std::string::npos);
  CHECK(message(ranks({}), "gpt5").find("expected a regex or one of gpt2, ") != std::string::npos);
  CHECK(message(ranks({}), "(").find("pattern") != std::string::npos);
  CHECK(Tokenizer::load_tiktoken("/nowhere", {"gpt2"}).error().code == ErrorCode::io_error);
}

}  // namespace lmemo
