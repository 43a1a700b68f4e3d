// The fields of a key as words, as JSON, and as written on the command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "lmemo/key.h"
#include "lmemo/result.h"

namespace lmemo::cli {

// n=13 text=0xab12…
std::string describe_fields(const std::vector<Field>& fields);

// "fields": [{"name": "n", "type": "int", "value": 13}, …]
void add_fields(JsonWriter& json, std::string_view member, const std::vector<Field>& fields);
// {"type": "int", "value": 13} without the braces.
void add_value(JsonWriter& json, const FieldValue& value);

// NAME=TEXT, NAME:int=3, NAME:float=0.5, NAME:bool=true, NAME:bytes=HEX, NAME:none=
Result<Field> parse_field(std::string_view word);

}  // namespace lmemo::cli
