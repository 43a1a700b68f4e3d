// Any bytes as the encoding of a key: whatever is accepted is canonical, so that making the key anew gives the same bytes.
#include "bytes_in_memory.h"
#include "lmemo/key.h"
#include "store/fields_block.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  const fuzz::FuzzFile file(fuzz::bytes_from(data, size));
  const Result<Key> key = Key::from_encoding(file.bytes());
  if (!key.ok()) return 0;
  const Result<Key> again = Key::of(key->kind(), key->fields());
  fuzz::require(again.ok());
  fuzz::require(text_of(again->encoding()) == text_of(file.bytes()));
  fuzz::require(again->digest() == key->digest());
  for (const Field& field : key->fields()) {
    fuzz::require(!field.value.describe().empty());
    // A NaN is not equal to itself, but it is stored as one.
    fuzz::require(field.value.as_stored() == field.value ||
                  field.value.describe().find("nan") != std::string::npos);
  }
  std::vector<std::string_view> fields;
  fuzz::require(split_encoding(text_of(file.bytes()), fields) && fields.size() == key->fields().size());
  return 0;
}
