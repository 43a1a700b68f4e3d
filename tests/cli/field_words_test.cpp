#include "cli/field_words.h"

#include <doctest/doctest.h>

namespace lmemo::cli {
namespace {

Field field(std::string_view word) {
  const auto parsed = parse_field(word);
  REQUIRE_MESSAGE(parsed.ok(), std::string(word));
  return *parsed;
}

TEST_CASE("a field on the command line has the type that it says") {
  CHECK(field("tokenizer=gpt2") == Field{"tokenizer", "gpt2"});
  CHECK(field("a=") == Field{"a", ""});
  CHECK(field("a=b=c") == Field{"a", "b=c"});
  CHECK(field("a:text=3") == Field{"a", "3"});
  CHECK(field("a:int=-3") == Field{"a", int64_t{-3}});
  CHECK(field("a:float=0.5") == Field{"a", 0.5});
  CHECK(field("a:float=3") == Field{"a", 3.0});
  CHECK(field("a:bool=true") == Field{"a", true});
  CHECK(field("a:bytes=00ff") == Field{"a", Blob{std::string("\0\xff", 2)}});
  CHECK(field("a:none=") == Field{"a", FieldValue()});
  CHECK(field("model:name:text=x") == Field{"model:name", "x"});
}

TEST_CASE("what is not a field is refused") {
  for (const char* word : {"", "a", "=x", "a:int=1.5", "a:int=99999999999999999999", "a:float=", "a:float=x",
                           "a:bool=yes", "a:bytes=0", "a:bytes=xx", "a:none=x", "a:number=1"}) {
    const auto parsed = parse_field(word);
    CHECK_MESSAGE(!parsed.ok(), word);
  }
  CHECK(parse_field("a:byte=00").error().message.find("Did you mean \"bytes\"?") != std::string::npos);
}

TEST_CASE("fields in JSON carry their types") {
  JsonWriter json;
  json.begin_object();
  add_fields(json, "fields", {{"n", int64_t{3}}, {"raw", Blob{"\x01"}}, {"x", FieldValue()}});
  json.end_object();
  CHECK(json.text().find("\"name\": \"n\",\n      \"type\": \"int\",\n      \"value\": 3") !=
        std::string::npos);
  CHECK(json.text().find("\"type\": \"bytes\",\n      \"value\": \"01\"") != std::string::npos);
  CHECK(json.text().find("\"type\": \"none\",\n      \"value\": null") != std::string::npos);
}

}  // namespace
}  // namespace lmemo::cli
