#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "lmemo/tokenizer.h"
#include "support/temp_directory.h"

namespace lmemo {
namespace {

constexpr const char* kWords =
    R"({"model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "a": 1}}, "pre_tokenizer": {"type": "WhitespaceSplit"}})";

void write(const std::filesystem::path& path, std::string_view text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("a directory is its tokenizer.json under an identity that covers what stands beside it") {
  const test::TempDirectory directory;
  CHECK(Tokenizer::load(directory.path()).error().code == ErrorCode::io_error);
  write(directory.path() / "tokenizer.json", kWords);
  const auto file = Tokenizer::load(directory.path() / "tokenizer.json");
  const auto plain = Tokenizer::load(directory.path());
  REQUIRE((file.ok() && plain.ok()));
  CHECK((*plain)->identity() != (*file)->identity());
  CHECK((*plain)->encode("a b a").value() == std::vector<uint32_t>{1, 0, 1});
  CHECK((*plain)->decode(std::vector<uint32_t>{1, 1}).value() == "a a");
  CHECK((*plain)->token_to_id("a") == 1);
  CHECK((*plain)->engine() == (*file)->engine());

  write(directory.path() / "tokenizer_config.json",
        R"({"eos_token": {"content": "u"}, "chat_template": "T"})");
  const auto chat = Tokenizer::load(directory.path());
  REQUIRE(chat.ok());
  CHECK((*chat)->identity() != (*plain)->identity());
  const auto settings = ModelSettings::read(directory.path());
  REQUIRE(settings.ok());
  CHECK(settings->special_tokens == std::vector<std::pair<std::string, std::string>>{{"eos_token", "u"}});
  CHECK(*settings->chat_template() == "T");
  CHECK(settings->identity_with((*file)->identity()) == (*chat)->identity());

  write(directory.path() / "tokenizer_config.json", "[]");
  CHECK(Tokenizer::load(directory.path()).error().message.find("tokenizer_config.json: expected an object") !=
        std::string::npos);
}

}  // namespace lmemo
